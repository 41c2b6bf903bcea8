"""Where Holdfast does otherwise than a case of Fluster's expects, on purpose: which cases, in what, and why.

The reasons stand in docs/fluster.md, too. What a case expects beside what is different has to be as it says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.record import Struct
from holdfast.service.manifests.fluster import GRACE_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from tools.cases.results import Case


class Deviation(Struct, frozen=True):
    """One thing that is different."""

    reason: str
    concerns: Callable[[Case], bool]
    """Whether a case asks for what is different."""
    fields: frozenset[str] = frozenset()
    """What of its expectations; without any, all of them."""


def _has(*names: str) -> Callable[[Case], bool]:
    return lambda case: not {*names}.isdisjoint(case["expect"])


def _members_differ(case: Case) -> bool:
    given = case["given"]
    budgets = given.get("max_retries_failure")
    return isinstance(budgets, list) or any(name == "j1" or name.startswith("j1.") for name in given)


def _has_other_grace(case: Case) -> bool:
    return bool(case["given"].get("term_timeout_ms", GRACE_S * 1000) != GRACE_S * 1000)


def _is_launching(case: Case) -> bool:
    return "RunJob" in str(case["when"]) and "worker_healthy" in case["expect"]


DEVIATIONS = (
    Deviation(
        "a gang is one job with replicas, which have one budget and one state: there are no members that differ",
        _members_differ,
    ),
    Deviation(
        "a worker that could not start a job gets further work: what failed may be the job's own bundle or environment."
        " One that is short of something gets none, and its jobs' attempts are charged to nobody",
        _is_launching,
        frozenset({"worker_healthy"}),
    ),
    Deviation(
        "programs have 5 s between SIGTERM and SIGKILL, and no call says otherwise",
        _has_other_grace,
    ),
    Deviation(
        "there is no action log: what was tried, and why it failed, is in the job's events and in holdfast why",
        _has("action_log"),
        frozenset({"action_log", "worker_healthy"}),
    ),
    Deviation(
        "work directories are below our own ids: names of jobs may be any text, of which two could be alike on a disk,"
        " or too long for it",
        _has("workdir_basename"),
        frozenset({"workdir_basename"}),
    ),
    Deviation(
        "a stale report is not logged: executors tell all they have at each exchange, so that it is nothing rare",
        _has("log"),
        frozenset({"log"}),
    ),
    Deviation(
        "a budget for all failures of all tasks of a job is Iris' own: Fluster's launches have none",
        lambda case: "max_task_failures" in case["given"],
    ),
)


def deviations_of(case: Case) -> list[Deviation]:
    """Return what of a case is different here."""
    return [one for one in DEVIATIONS if one.concerns(case)]
