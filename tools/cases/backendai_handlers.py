"""Checks BEP-1030's handler table: what each outcome of each handler leads to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.domain.job import Attempt
from holdfast.domain.lifecycle import (
    HANDLERS,
    AttemptHandler,
    AttemptStatus,
    EntityKind,
    HistoryRow,
    Outcome,
    TransitionStatus,
    attempt_id,
)
from holdfast.domain.lifecycle.engine import HandlerOptions, judge_failure, judge_waiting
from holdfast.domain.lifecycle.history import merge_row
from holdfast.domain.workloads.gang.flight import after as after_step
from tools.cases.prose import before_upstream
from tools.cases.results import Mismatch, Skip

if TYPE_CHECKING:
    from tools.cases.results import Case

_OURS = {
    "ScheduleNewSessions": "ScheduleAttempts",
    "ScheduleSessions": "ScheduleAttempts",
    "PrepareSessions": "PrepareAttempts",
    "StartSessions": "StartAttempts",
    "TerminateSessions": "TerminateAttempts",
}
_WHEN = re.compile(r"processes (\w+) with outcome (\w+)")
_START = re.compile(r"session ([A-Z]+)(?: \(or ([A-Z]+)\))?")
_TIMEOUT_S = 900.0
_LIMIT = 5
_NOW = 1_000_000.0


def check(case: Case) -> list[Mismatch]:
    """Judge what the handler reported, apply the outcome, and compare statuses, history and tries.

    Where a case names two statuses to start from, its history speaks of the first.
    """
    when, start = _WHEN.search(case["when"]), _START.search(case["given"])
    if when is None or start is None or when[1] not in _OURS:
        msg = "its prose names no handler, outcome and status that the table has"
        raise Skip(msg)
    row = next(row for row in HANDLERS if row.name == _OURS[when[1]])
    mismatches: list[Mismatch] = []
    for status in filter(None, start.groups()):
        mismatches += _check_from(case, row, AttemptStatus(status), when[2])
    if start[2]:
        mismatches = [found for found in mismatches if found.what != f"{start[2]}: from"]
    return mismatches


def _check_from(case: Case, row: AttemptHandler, status: AttemptStatus, named: str) -> list[Mismatch]:
    if status not in row.targets:
        return [Mismatch(f"{row.name} takes {status}", True, False)]  # noqa: FBT003 - a value, not a switch
    tries = _LIMIT if "used up" in case["given"] else 0
    since = _NOW - _TIMEOUT_S - 1 if "exceeds the handler timeout" in case["given"] else _NOW - 1
    outcome = _judged(case["given"], tries, since)
    before = Attempt("job", 1, status=status, status_since=since, tries=tries)
    target = row.transitions.get(outcome, TransitionStatus())
    after = after_step(before, outcome, target.status, _NOW)
    kind, name = EntityKind.ATTEMPT, attempt_id("job", 1)
    history = merge_row(None, HistoryRow(kind, name, 0, row.name, status, after.status, outcome, _NOW, _NOW))
    got = {
        "outcome": outcome.value.lower(),
        "session": after.status.value,
        "kernels": "unchanged" if target.children is None else target.children.value,
        "result": history.outcome.value,
        "from": history.from_status,
        "to": history.to_status,
        "tries added": after.tries - before.tries if after.status is status else 0,
    }
    expected = {"outcome": named, **_expected(before_upstream(case["expect"]), status)}
    return [Mismatch(f"{status}: {what}", value, got[what]) for what, value in expected.items() if got[what] != value]


def _judged(given: str, tries: int, since: float) -> Outcome:
    options = HandlerOptions(_TIMEOUT_S, _LIMIT)
    if "reports success" in given:
        return Outcome.SUCCESS
    if "reports skipped" in given:
        return judge_waiting(options, since=since, now=_NOW)
    return judge_failure(tries, options, since=since, now=_NOW)


def _expected(text: str, status: AttemptStatus) -> dict[str, object]:
    expected: dict[str, object] = {}
    patterns = {
        "session": r"session -> ([A-Z]+)",
        "kernels": r"kernels -> ([A-Z]+)",
        "result": r"result=([A-Z_]+)",
        "from": r"from ([A-Z]+) to",
        "to": r"from [A-Z]+ to ([A-Z]+)",
    }
    for what, pattern in patterns.items():
        if found := re.search(pattern, text):
            expected[what] = found[1]
    if "status unchanged" in text or "from==to" in text:
        expected |= {"session": status.value, "kernels": "unchanged", "from": status.value, "to": status.value}
    if "try count +1" in text:
        expected["tries added"] = 1
    if "NOT incremented" in text:
        expected["tries added"] = 0
    if not expected:
        msg = "its prose names no status that is expected"
        raise Skip(msg)
    return expected
