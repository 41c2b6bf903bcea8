"""Checks the coordinator's judgement: give up, expire, retry, count, merge history, resolve options."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.domain.job import Attempt
from holdfast.domain.lifecycle import (
    ATTEMPT_TERMINAL,
    DETECT_FAILURE,
    GANG_PROMOTIONS,
    HANDLERS,
    SCHEDULE,
    AttemptStatus,
    EntityKind,
    HistoryRow,
    Outcome,
    RunStatus,
    attempt_id,
)
from holdfast.domain.lifecycle.engine import (
    REPORTED,
    HandlerOptions,
    is_expired,
    judge_failure,
    judge_waiting,
    promotes,
    resolve_options,
)
from holdfast.domain.lifecycle.history import merge_row
from holdfast.domain.workloads.gang.flight import after as after_step
from tools.cases.controller_world import history_after_raising
from tools.cases.prose import before_upstream, limit, number, seconds_ago
from tools.cases.results import Case, Mismatch, Skip

if TYPE_CHECKING:
    from collections.abc import Callable

_NOW = 1_000_000.0
_TIMEOUT_S = 900.0
_LIMIT = 5.0
_OUTCOME = re.compile(r"\b(give_up|expired|need_retry|skipped)\b", re.IGNORECASE)
_REPORTS_SKIP = re.compile(r"reports skipped|is skipped|handler skips", re.IGNORECASE)
_KNOWN_WORDS = re.compile(r"attempts|max_retry_count|ago\b|timeout|SKIPPED|no failure")
_HANDLERS = {
    "schedule-sessions": "ScheduleAttempts",
    "prepare-sessions": "PrepareAttempts",
    "start-sessions": "StartAttempts",
    "terminate-sessions": "TerminateAttempts",
}
_LIMIT_NAMES = {"timeout": "timeout_s", "max_retry_count": "max_retries"}
_NOT_OURS = {
    "lock": "handlers take no locks of their own: one leader owns lifecycle state (architecture, decision 7)",
    "resource group": "resource groups need Backend.AI's front door, not built yet",
    "broadcast": "broadcast events need Backend.AI's front door, not built yet",
    "marks": "loops are level-triggered and need no marks (architecture, decision 5)",
    "allocations reset": "runs are not reset: an attempt that goes back gets new runs with fresh uids (decision 8)",
}


def check(case: Case) -> list[Mismatch]:
    """Check one rule of the coordinator."""
    given, when = case["given"], case["when"]
    for matches, checker in _CHECKERS:
        if matches(given, when):
            return checker(case)
    text = f"{given} {when} {case['expect']}"
    reason = next((reason for word, reason in _NOT_OURS.items() if word in text), None)
    raise Skip(reason or "its prose is about something that no checker knows")


def _row(
    phase: str, outcome: Outcome, *, attempts: int = 1, to: AttemptStatus | None = None, error: str = ""
) -> HistoryRow:
    pending = AttemptStatus.PENDING
    kind, name = EntityKind.ATTEMPT, attempt_id("job", 1)
    return HistoryRow(
        kind, name, 0, phase, pending, to or pending, outcome, _NOW, _NOW, error_code=error, attempts=attempts
    )


def _options(text: str) -> HandlerOptions:
    has_limit, retries = limit(text, "max_retry_count", "max_retries", "max")
    has_timeout, timeout = limit(text, "timeout")
    retries = retries if has_limit else _LIMIT
    return HandlerOptions(timeout if has_timeout else _TIMEOUT_S, None if retries is None else int(retries))


def _check_classified(case: Case) -> list[Mismatch]:
    text = case["given"]
    expected = _OUTCOME.search(before_upstream(case["expect"]) or case["expect"])
    if expected is None or not _KNOWN_WORDS.search(text):
        msg = "its prose names no facts to judge, or no outcome that is expected"
        raise Skip(msg)
    since = _NOW - (seconds_ago(text) or 0.0)
    if _REPORTS_SKIP.search(text):
        outcome = judge_waiting(_options(text), since=since, now=_NOW)
    else:
        outcome = judge_failure(_tries(text), _options(text), since=since, now=_NOW)
    got, wanted = outcome.value.lower(), expected[1].lower()
    return [] if got == wanted else [Mismatch("outcome", wanted, got)]


def _tries(text: str) -> int:
    """Count the failures a case speaks of; skips and other phases count none."""
    if "no failure recorded" in text:
        return 0
    skipped = re.search(r"(\d+) SKIPPED", text)
    if skipped:
        return 0
    count = number(text, "phase_attempts", "attempts") or 0
    phases = re.findall(r"'([a-z]+-[a-z-]+)'", text)
    last, now = (phases[0], phases[-1]) if phases else ("phase", "phase")
    return count if last == now else 0


def _check_ticks(case: Case) -> list[Mismatch]:
    """Let a handler fail again and again, and see what history says after so many failures."""
    failures = number(case["expect"], "attempts")
    allowed = number(case["given"], "max_retry_count")
    if failures is None or allowed is None:
        msg = "its prose names no number of failures"
        raise Skip(msg)
    attempt, last = Attempt("job", 1), None
    outcomes = []
    for _ in range(failures + 1):
        outcome = judge_failure(attempt.tries, HandlerOptions(None, allowed), since=_NOW, now=_NOW)
        outcomes.append(outcome)
        if outcome is Outcome.NEED_RETRY:
            last = merge_row(last, _row(SCHEDULE.name, outcome))
        attempt = after_step(attempt, outcome, None, _NOW)
    got = {"rows": 1 if last and last.seq == 0 else 2, "attempts": last.attempts if last else 0, "last": outcomes[-1]}
    expected = {"rows": 1, "attempts": failures, "last": Outcome.GIVE_UP}
    return [Mismatch(what, expected[what], got[what]) for what in expected if expected[what] != got[what]]


def _check_merged(case: Case) -> list[Mismatch]:
    """Record two steps that differ as the case says, and count the rows."""
    text = case["given"]
    pair = re.search(
        r"(SKIPPED|NEED_RETRY|SUCCESS|EXPIRED|GIVE_UP) then (SKIPPED|NEED_RETRY|SUCCESS|EXPIRED|GIVE_UP)", text
    )
    both = Outcome.SKIPPED if "both skip" in text else Outcome.NEED_RETRY
    outcomes = (Outcome(pair[1]), Outcome(pair[2])) if pair else (both, both)
    other = {word for word in ("phase", "error_code", "to_status") if re.search(rf"different (?:\w+/)*{word}", text)}
    first = _row("phase", outcomes[0])
    second = _row(
        "other" if "phase" in other else "phase",
        outcomes[1],
        to=AttemptStatus.SCHEDULED if "to_status" in other else None,
        error="other" if "error_code" in other else "",
    )
    last = merge_row(first, second)
    got = {"rows": 1 if last.seq == first.seq else 2, "attempts": last.attempts}
    expected: dict[str, int] = {"rows": 2 if "two rows" in case["expect"] else 1}
    if (attempts := number(case["expect"], "attempts")) is not None:
        expected["attempts"] = attempts
    return [Mismatch(what, value, got[what]) for what, value in expected.items() if value != got[what]]


def _check_result_type(_: Case) -> list[Mismatch]:
    names, expected = sorted(REPORTED), [Outcome.FAILURE, Outcome.SKIPPED, Outcome.SUCCESS]
    return [] if names == expected else [Mismatch("what a handler can say", expected, names)]


def _check_resolved(case: Case) -> list[Mismatch]:
    """Resolve a handler's options from a default and overrides written in braces."""
    text = case["given"]
    default = re.search(r"default \{([^}]*)\}", text)
    override = re.search(r"by_handler \{'([a-z-]+)':\s*\{([^}]*)\}", text)
    asked = re.search(r"resolve\('([a-z-]+)'\)", case["when"])
    if default is None or asked is None or asked[1] not in _HANDLERS:
        msg = "its prose names no options to resolve"
        raise Skip(msg)
    row = next(row for row in HANDLERS if row.name == _HANDLERS[asked[1]])
    by_handler = {_HANDLERS.get(override[1], override[1]): _braces(override[2])} if override else {}
    got = resolve_options(row, {row.name: _braces(default[1])}, by_handler).max_retries
    wanted = before_upstream(case["expect"])
    stated = re.search(r"max_retry_count\D*?(\d+)", wanted)
    expected = (
        None if "unlimited" in wanted else int(stated[1]) if stated else _braces(default[1]).get("max_retries", _LIMIT)
    )
    return [] if got == expected else [Mismatch("max_retry_count", expected, got)]


def _braces(text: str) -> dict[str, float | None]:
    pairs = re.findall(r"(\w+)\s*:\s*(null|\d+)", text)
    return {_LIMIT_NAMES.get(key, key): None if value == "null" else float(value) for key, value in pairs}


def _check_ways_out(_: Case) -> list[Mismatch]:
    """Check that time alone leads out of every status: by a handler, a promotion, or an attempt's deadline."""
    out: set[AttemptStatus] = set()
    for row in HANDLERS:
        if Outcome.EXPIRED in row.transitions:
            out |= row.targets
    for promotion in GANG_PROMOTIONS:
        if promotion.expired is not None:
            out |= promotion.targets
    if promotes(DETECT_FAILURE, [RunStatus.ERROR]):
        out |= DETECT_FAILURE.targets
    stuck = sorted(set(AttemptStatus) - ATTEMPT_TERMINAL - out)
    late = is_expired(_NOW - _TIMEOUT_S - 1, _TIMEOUT_S, _NOW)
    return [] if not stuck and late else [Mismatch("statuses without a way out", [], stuck)]


def _check_raising(case: Case) -> list[Mismatch]:
    """Check that an exception in a handler is a failure of everything it worked on."""
    group = re.search(r"group of (\d+) sessions", case["given"])
    if group is None or "all" not in case["expect"]:
        msg = "its prose names no group of sessions"
        raise Skip(msg)
    count = int(group[1])
    rows = history_after_raising(count)
    outcomes = [row.outcome for row in rows if row.message]
    expected = [Outcome.NEED_RETRY] * count
    return [] if outcomes == expected else [Mismatch("recorded outcomes", expected, outcomes)]


_CHECKERS: tuple[tuple[Callable[[str, str], bool], Callable[[Case], list[Mismatch]]], ...] = (
    (lambda _, when: when.startswith("resolve("), _check_resolved),
    (lambda _, when: when == "record", _check_merged),
    (lambda given, when: "run ticks" in when and "always fails" in given, _check_ticks),
    (lambda given, when: given == "handler code" and "result types" in when, _check_result_type),
    (lambda given, when: "any non-terminal status" in given and "timeout" in when, _check_ways_out),
    (lambda given, when: "execute() raises" in given and when == "tick", _check_raising),
    (lambda _, when: "classify" in when, _check_classified),
)
