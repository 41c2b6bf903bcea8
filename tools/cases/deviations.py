"""Where Holdfast decides otherwise than a case of Armada's expects, on purpose: which cases, and why.

The reasons stand in docs/armada.md, too. A rule says by what a case asks whether it is about a deviation; one that
comes out as expected all the same has passed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.dialects.armada.items import CARDINALITY
from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tools.cases.results import Case


class Deviation(Struct, frozen=True):
    """One thing that is different."""

    reason: str
    concerns: Callable[[Case], bool]
    """Whether a case asks for what is different."""


def _policies(case: Case) -> list[Mapping[str, Any]]:
    return [policy for policy in (case["policy"] or {}).get("policies") or () if isinstance(policy, dict)]


def _rules(case: Case) -> Iterator[Mapping[str, Any]]:
    for policy in _policies(case):
        yield from (rule for rule in policy.get("rules") or () if isinstance(rule, dict))


def _matchers(case: Case) -> list[int]:
    return [sum(key.startswith("on") for key in rule) for rule in _rules(case)]


def _status(case: Case) -> str:
    return str(case.get("status"))


def _history(case: Case) -> Mapping[str, Any]:
    return case["history"] or {}


def _scheduler(case: Case) -> Mapping[str, Any]:
    return (case["policy"] or {}).get("scheduler") or {}


def _reads_zero_as_unlimited(case: Case) -> bool:
    limits = [_scheduler(case).get("globalMaxRetries"), *(policy.get("retryLimit") for policy in _policies(case))]
    return _status(case) == "prototype-4804" and 0 in limits and case["expect"].get("action") == "Retry"


def _looks_at_one_field(case: Case) -> bool:
    return _status(case) == "prototype-4634" and any(count > 1 for count in _matchers(case))


def _matches_without_matcher(case: Case) -> bool:
    return _status(case).startswith("prototype") and any(count == 0 for count in _matchers(case))


def _mixes_growth(case: Case) -> bool:
    recorded = _history(case).get("recorded") or {}
    kinds = {
        f"memory{kind.capitalize()}"
        for rule in _rules(case)
        for kind in ((rule.get("mutate") or {}).get("resources") or {}).get("memory") or ()
    }
    return bool(recorded.keys() - kinds) and bool(kinds)


def _retries_what_is_lost(case: Case) -> bool:
    conditions = (case["failure"] or {}).get("conditions") or ()
    return _scheduler(case).get("enabled") is False and "LeaseExpired" in conditions


def _names_pods(case: Case) -> bool:
    return _scheduler(case).get("enabled") is False and "podName" in case["expect"]


def _is_gang(case: Case) -> bool:
    job = (case["policy"] or {}).get("job") or {}
    annotated = (job.get("annotations") or {}).get(CARDINALITY, "1")
    return str((job.get("gang") or {}).get("cardinality", annotated)) != "1"


DEVIATIONS = (
    Deviation("a limit of 0 allows no retry; an early prototype read it as no limit", _reads_zero_as_unlimited),
    Deviation("all matchers of a rule must hold; an early prototype looked at one of them", _looks_at_one_field),
    Deviation(
        "a rule without a matcher is refused; for the prototypes it matched all failures", _matches_without_matcher
    ),
    Deviation(
        "memory grows by each rule that says so; upstream's release keeps to the first kind of growth", _mixes_growth
    ),
    Deviation("jobs lost with a machine are retried while policies are switched off, too", _retries_what_is_lost),
    Deviation(
        "the pod of a retry has a name of its own while policies are switched off, too: a run keeps the name that it"
        " was started with",
        _names_pods,
    ),
    Deviation("gangs of several jobs are not built yet", _is_gang),
    Deviation(
        "there are no pods to delete: all processes of a run are gone before its failure is judged",
        lambda case: case.get("kind") == "executor",
    ),
)


def deviation_of(case: Case) -> Deviation | None:
    """Return what of a case of Armada's is different here, if anything."""
    return next((one for one in DEVIATIONS if one.concerns(case)), None)
