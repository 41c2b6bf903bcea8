"""Reads the pace of a set's uncounted restarts from an annotation, in either form of manifest."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from holdfast.dialects.reading import Fields
from holdfast.domain.policy.model import SetAction
from holdfast.domain.record import evolve
from holdfast.domain.units import format_duration
from holdfast.domain.workloads.jobset.model import RestartPace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.dialects.jobset.wording import ManifestNotes
    from holdfast.domain.workloads.jobset.model import FailurePolicy
    from holdfast.errors import Problem

RESTART_PACE = "holdfast.dev/restart-pace"
"""For a set: ``atOnce=20,initialDelay=1s,maxDelay=5m,within=1m,resetAfter=10m``, or ``none`` for upstream's pace."""
UPSTREAM = "none"
_AT_ONCE, _WHOLE = "atOnce", re.compile(r"[0-9]{1,10}")
_MOST_AT_ONCE = 10**9
_DEFAULT = RestartPace()
_UNCOUNTED = frozenset(
    {SetAction.RESTART_JOB_SET_UNCOUNTED, SetAction.RESTART_GROUP_UNCOUNTED, SetAction.RESTART_JOB_UNCOUNTED}
)


def annotated_pace(
    policy: FailurePolicy | None, metadata: Fields, annotations: Mapping[str, str], notes: ManifestNotes
) -> FailurePolicy | None:
    """Give a failure policy the pace from its set's annotation."""
    text = annotations.get(RESTART_PACE)
    if text is None:
        return policy
    pace = None if text.strip() == UPSTREAM else _read(text, metadata)
    if policy is not None and _is_paced(policy):
        return evolve(policy, pace=pace)
    where = metadata.at(f"annotations.{RESTART_PACE}")
    notes.warn(where, "has no effect: no rule without a back-off restarts anything uncounted")
    return policy


def _is_paced(policy: FailurePolicy) -> bool:
    rules = policy.rules if policy.backoff is None else ()
    return any(rule.action in _UNCOUNTED and rule.backoff is None for rule in rules)


def warn_of_annotated(metadata: Fields, annotations: Mapping[str, str], notes: ManifestNotes) -> None:
    """Warn of the annotation on the template of a set's jobs, where it has no effect."""
    if RESTART_PACE in annotations:
        where = metadata.at(f"annotations.{RESTART_PACE}")
        notes.warn(where, "has no effect here", hint="annotate the JobSet itself")


def _read(text: str, metadata: Fields) -> RestartPace:
    parts: dict[str, Any] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, _, value = (word.strip() for word in part.partition("="))
        parts[name] = int(value) if name == _AT_ONCE and _WHOLE.fullmatch(value) else value
    problems: list[Problem] = []
    pace = _read_parts(Fields(parts, "", problems))
    at = metadata.at(f"annotations.{RESTART_PACE}")
    metadata.problems += [evolve(problem, path=f"{at}.{problem.path}") for problem in problems]
    return pace


def _read_parts(fields: Fields) -> RestartPace:
    at_once = fields.integer(_AT_ONCE, low=0, high=_MOST_AT_ONCE)
    initial_s, longest_s = fields.duration("initialDelay"), fields.duration("maxDelay")
    within_s, reset_after_s = fields.duration("within"), fields.duration("resetAfter")
    fields.finish()
    backoff = evolve(
        _DEFAULT.backoff,
        initial_s=_DEFAULT.backoff.initial_s if initial_s is None else initial_s,
        max_s=max(_DEFAULT.backoff.max_s or 0.0, initial_s or 0.0) if longest_s is None else longest_s,
    )
    if longest_s is not None and backoff.initial_s > longest_s:
        fields.problem("maxDelay", f"is shorter than the initialDelay of {format_duration(backoff.initial_s)}")
    pace = evolve(
        _DEFAULT,
        at_once=_DEFAULT.at_once if at_once is None else at_once,
        backoff=backoff,
        within_s=_DEFAULT.within_s if within_s is None else within_s,
        reset_after_s=_DEFAULT.reset_after_s if reset_after_s is None else reset_after_s,
    )
    if pace.reset_after_s < pace.within_s:
        hint = "what fails again within that time is not healthy yet"
        fields.problem("resetAfter", f"is shorter than the {format_duration(pace.within_s)} of within", hint=hint)
    return pace
