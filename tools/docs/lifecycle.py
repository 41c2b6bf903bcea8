"""Draws the lifecycle of attempts and writes its tables from ``domain.lifecycle``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain import lifecycle
from holdfast.domain.lifecycle import (
    AttemptHandler,
    AttemptPromotion,
    AttemptStatus,
    Outcome,
    RequestRow,
    RunStatus,
    TransitionStatus,
)
from holdfast.domain.units import format_duration
from holdfast.domain.workloads.kubejob.job_status import END_PODS, PODS
from tools.docs.source import table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_DRAWN = (Outcome.SUCCESS, Outcome.NEED_RETRY, Outcome.EXPIRED, Outcome.GIVE_UP)
_WORDS = {
    Outcome.SUCCESS: "",
    Outcome.NEED_RETRY: "needs retry",
    Outcome.EXPIRED: "expired",
    Outcome.GIVE_UP: "gave up",
}


def figure() -> str:
    """Draw every move of an attempt as a Mermaid state diagram."""
    moves: dict[tuple[str, str], list[str]] = {}
    for row in lifecycle.HANDLERS:
        if row is not lifecycle.TERMINATE:
            _handler_moves(row, moves)
    for promotion in (*lifecycle.PROMOTIONS, *lifecycle.GANG_PROMOTIONS):
        if promotion not in {lifecycle.PROMOTE_TO_TERMINATED, lifecycle.DETECT_TERMINATION}:
            _promotion_moves(promotion, moves)
    for request in lifecycle.ATTEMPTS.requests:
        for source, to in request.moves.items():
            _note(moves, source, to, request.name)
    for ending, status in lifecycle.ENDING_STATUS.items():
        _note(moves, AttemptStatus.TERMINATING, status, ending.value)
    lines = [f"    {source} --> {target}: {', '.join(labels)}" for (source, target), labels in moves.items()]
    ends = [f"    {status} --> [*]" for status in AttemptStatus if status in lifecycle.ATTEMPT_TERMINAL]
    return "\n".join(["```mermaid", "stateDiagram-v2", "    [*] --> PENDING", *lines, *ends, "```"])


def _handler_moves(row: AttemptHandler, moves: dict[tuple[str, str], list[str]]) -> None:
    for source in _ordered(row.targets):
        for outcome in _DRAWN:
            to = row.transitions.get(outcome)
            if to is not None and to.status is not None and to.status is not source:
                _note(moves, source, to.status, _WORDS[outcome] or row.name)


def _promotion_moves(row: AttemptPromotion, moves: dict[tuple[str, str], list[str]]) -> None:
    for source in _ordered(row.targets):
        _note(moves, source, row.success, row.name)
        if row.expired is not None:
            _note(moves, source, row.expired, _WORDS[Outcome.EXPIRED])


def _note(moves: dict[tuple[str, str], list[str]], source: str, target: str, label: str) -> None:
    labels = moves.setdefault((source, target), [])
    if label not in labels:
        labels.append(label)


def handlers() -> str:
    """Write the handlers' table."""
    head = ["Handler", "Works on", "SUCCESS", "NEED_RETRY", "EXPIRED", "GIVE_UP", "SKIPPED", "Timeout", "Tries"]
    return table(head, [_handler_cells(row) for row in lifecycle.HANDLERS])


def _handler_cells(row: AttemptHandler) -> list[str]:
    return [
        f"`{row.name}`",
        _names(_ordered(row.targets)),
        *(_target(row.transitions.get(outcome)) for outcome in (*_DRAWN, Outcome.SKIPPED)),
        "per job" if row.timeout_s is None else format_duration(row.timeout_s),
        "unlimited" if row.max_retries is None else f"1 + {row.max_retries}",
    ]


def _target(to: TransitionStatus[AttemptStatus, RunStatus] | None) -> str:
    if to is None:
        return "(stays)"
    parts = [f"`{to.status}`" if to.status else "(stays)", f"runs `{to.children}`" if to.children else "runs stay"]
    return ", ".join(parts)


def requests() -> str:
    """Write where what people and clocks ask for leads."""
    rows = [[f"`{row.name}`", *_request_cells(row)] for row in lifecycle.ATTEMPTS.requests]
    return table(["Request", "From `PENDING`", "From anywhere else up to `RUNNING`"], rows)


def _request_cells(row: RequestRow[AttemptStatus]) -> list[str]:
    started = {to for source, to in row.moves.items() if source is not AttemptStatus.PENDING}
    return [f"`{row.moves[AttemptStatus.PENDING]}`", _names(_ordered(frozenset(started)))]


def pod_moves() -> str:
    """Write the moves of attempts whose runs are pods."""
    ends = frozenset(lifecycle.ENDING_STATUS.values())
    rows = [
        [f"`{row.name}`", _names(_ordered(row.targets)), "; ".join(sorted(row.check)), f"`{row.success}`"]
        for row in PODS.promotions
    ]
    gone = "none of its pods is left, and no more are to come"
    rows.append([f"`{END_PODS.name}`", _names(_ordered(frozenset(END_PODS.moves))), gone, _names(_ordered(ends))])
    return table(["Move", "Works on", "When", "Leads to"], rows)


def run_moves() -> str:
    """Write where what executors report of a run leads."""
    rows = [[f"`{row.name}`", _from(row.moves.keys()), _names(set(row.moves.values()))] for row in lifecycle.RUNS]
    return table(["Report", "From", "Leads to"], rows)


def _from(statuses: Collection[RunStatus]) -> str:
    if statuses == lifecycle.RUN_ACTIVE:
        return "whatever is not terminal"
    return _names([status for status in RunStatus if status in statuses])


def promotions() -> str:
    """Write the promotions' table of Holdfast's jobs."""
    head = ["Promotion", "Works on", "When", "Leads to", "After its timeout"]
    return table(
        head,
        [
            [
                f"`{row.name}`",
                _names(_ordered(row.targets)),
                f"{_MATCH[row.match]} {_runs(row.check)}",
                f"`{row.success}`",
                f"`{row.expired}` ({format_duration(row.timeout_s)})" if row.expired and row.timeout_s else "-",
            ]
            for row in lifecycle.GANG_PROMOTIONS
        ],
    )


_MATCH = {
    lifecycle.Match.ALL: "every run is",
    lifecycle.Match.ANY: "some run is",
    lifecycle.Match.NOT_ANY: "no run is",
}


def _runs(statuses: frozenset[RunStatus]) -> str:
    if statuses == lifecycle.RUN_TERMINAL:
        return "terminal"
    if statuses == lifecycle.RUN_ACTIVE:
        return "active"
    return _names([status for status in RunStatus if status in statuses])


def _ordered(statuses: frozenset[AttemptStatus]) -> list[AttemptStatus]:
    return [status for status in AttemptStatus if status in statuses]


def _names(statuses: Iterable[str]) -> str:
    return ", ".join(f"`{status}`" for status in statuses)
