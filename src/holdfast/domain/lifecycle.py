"""The legal moves of attempts and runs, as literal tables; open this file first.

Decides which status follows which outcome (BEP-1030, ``Handler State Transition Table`` and
``SessionPromotionHandler``; a session is an Attempt here, a kernel a Run); leaves judging outcomes to
``coordination`` and doing the work to the handlers in ``controller``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never


class AttemptStatus(StrEnum):
    """Where one try at a whole job stands."""

    PENDING = "PENDING"
    SCHEDULED = "SCHEDULED"
    PREPARING = "PREPARING"
    PREPARED = "PREPARED"
    CREATING = "CREATING"
    RUNNING = "RUNNING"
    TERMINATING = "TERMINATING"
    TERMINATED = "TERMINATED"
    """Finished, or ended by a user after it started."""
    ERROR = "ERROR"
    """Failed."""
    CANCELLED = "CANCELLED"
    """Never started."""


class RunStatus(StrEnum):
    """Where one run of an attempt stands."""

    PENDING = "PENDING"
    SCHEDULED = "SCHEDULED"
    PREPARING = "PREPARING"
    PULLING = "PULLING"
    PREPARED = "PREPARED"
    CREATING = "CREATING"
    RUNNING = "RUNNING"
    TERMINATING = "TERMINATING"
    TERMINATED = "TERMINATED"
    ERROR = "ERROR"
    CANCELLED = "CANCELLED"


ATTEMPT_TERMINAL = frozenset({AttemptStatus.TERMINATED, AttemptStatus.ERROR, AttemptStatus.CANCELLED})
RUN_TERMINAL = frozenset({RunStatus.TERMINATED, RunStatus.ERROR, RunStatus.CANCELLED})
RUN_ACTIVE = frozenset(RunStatus) - RUN_TERMINAL
_BEFORE_PREPARED = frozenset(
    {RunStatus.PENDING, RunStatus.SCHEDULED, RunStatus.PREPARING, RunStatus.PULLING},
)
_BEFORE_RUNNING = _BEFORE_PREPARED | {RunStatus.PREPARED, RunStatus.CREATING}


class Outcome(StrEnum):
    """What the coordinator makes of a handler's result (BEP-1030 ``SchedulingResult``)."""

    SUCCESS = "SUCCESS"
    NEED_RETRY = "NEED_RETRY"
    EXPIRED = "EXPIRED"
    GIVE_UP = "GIVE_UP"
    SKIPPED = "SKIPPED"


@dataclass(frozen=True, slots=True)
class TransitionStatus:
    """The statuses an outcome leads to; ``None`` leaves that one as it is."""

    attempt: AttemptStatus | None = None
    run: RunStatus | None = None


@dataclass(frozen=True, slots=True)
class StatusTransitions:
    """Where each outcome of a handler leads; ``None`` changes nothing and is only recorded."""

    success: TransitionStatus | None = None
    need_retry: TransitionStatus | None = None
    expired: TransitionStatus | None = None
    give_up: TransitionStatus | None = None

    def on(self, outcome: Outcome) -> TransitionStatus | None:
        """Return where ``outcome`` leads; a skip never leads anywhere."""
        match outcome:
            case Outcome.SUCCESS:
                return self.success
            case Outcome.NEED_RETRY:
                return self.need_retry
            case Outcome.EXPIRED:
                return self.expired
            case Outcome.GIVE_UP:
                return self.give_up
            case Outcome.SKIPPED:
                return None
            case _:
                assert_never(outcome)


@dataclass(frozen=True, slots=True)
class HandlerRow:
    """One lifecycle handler: whom it works on and where its outcomes lead."""

    name: str
    targets: frozenset[AttemptStatus]
    run_targets: frozenset[RunStatus] | None
    """Only attempts with a run in one of these; ``None`` is no filter."""
    transitions: StatusTransitions
    timeout_s: float | None
    """Default time an attempt may spend in the status before it is EXPIRED; ``None``: set per attempt, or never."""
    max_retry_count: int | None = 5
    """Default number of failures in the phase that are tried again; the next one is GIVE_UP."""


class Match(StrEnum):
    """How many runs must be in the checked statuses; all three need at least one run (semantics 6)."""

    ALL = "all"
    ANY = "any"
    NOT_ANY = "not_any"


@dataclass(frozen=True, slots=True)
class PromotionRow:
    """One promotion: attempts move on because of what their runs are, never because of work done."""

    name: str
    targets: frozenset[AttemptStatus]
    check: frozenset[RunStatus]
    match: Match
    success: AttemptStatus
    expired: AttemptStatus | None = None
    """Where an attempt that waits here too long goes: the way out by time alone."""
    timeout_s: float | None = None


A, R = AttemptStatus, RunStatus


def _to(attempt: AttemptStatus, run: RunStatus) -> TransitionStatus:
    return TransitionStatus(attempt, run)


SCHEDULE = HandlerRow(
    "ScheduleAttempts",
    frozenset({A.PENDING}),
    frozenset({R.PENDING}),
    StatusTransitions(
        success=_to(A.SCHEDULED, R.SCHEDULED),
        expired=_to(A.CANCELLED, R.CANCELLED),
        give_up=_to(A.CANCELLED, R.CANCELLED),
    ),
    timeout_s=None,
)
PREPARE = HandlerRow(
    "PrepareAttempts",
    frozenset({A.SCHEDULED, A.PREPARING}),
    frozenset({R.SCHEDULED}),
    StatusTransitions(
        success=_to(A.PREPARING, R.PREPARING),
        expired=_to(A.PENDING, R.PENDING),
        give_up=_to(A.PENDING, R.PENDING),
    ),
    timeout_s=900.0,
)
START = HandlerRow(
    "StartAttempts",
    frozenset({A.PREPARED}),
    frozenset({R.PREPARED}),
    StatusTransitions(
        success=_to(A.CREATING, R.CREATING),
        expired=_to(A.PENDING, R.PENDING),
        give_up=_to(A.PENDING, R.PENDING),
    ),
    timeout_s=600.0,
)
TERMINATE = HandlerRow(
    "TerminateAttempts",
    frozenset({A.TERMINATING}),
    frozenset(RUN_ACTIVE),
    StatusTransitions(
        success=_to(A.TERMINATED, R.TERMINATED),
        expired=_to(A.TERMINATED, R.TERMINATED),
        give_up=_to(A.TERMINATED, R.TERMINATED),
    ),
    timeout_s=None,
)
HANDLERS: tuple[HandlerRow, ...] = (SCHEDULE, PREPARE, START, TERMINATE)

PROMOTE_TO_PREPARED = PromotionRow(
    "PromoteToPrepared",
    frozenset({A.SCHEDULED, A.PREPARING}),
    _BEFORE_PREPARED,
    Match.NOT_ANY,
    A.PREPARED,
)
PROMOTE_TO_RUNNING = PromotionRow(
    "PromoteToRunning",
    frozenset({A.CREATING}),
    _BEFORE_RUNNING,
    Match.NOT_ANY,
    A.RUNNING,
    expired=A.TERMINATING,
    timeout_s=600.0,
)
PROMOTE_TO_TERMINATED = PromotionRow(
    "PromoteToTerminated",
    frozenset({A.TERMINATING}),
    frozenset(RUN_ACTIVE),
    Match.NOT_ANY,
    A.TERMINATED,
)
DETECT_TERMINATION = PromotionRow(
    "DetectTermination",
    frozenset({A.RUNNING}),
    frozenset(RUN_TERMINAL),
    Match.ANY,
    A.TERMINATING,
)
PROMOTIONS: tuple[PromotionRow, ...] = (
    PROMOTE_TO_PREPARED,
    PROMOTE_TO_RUNNING,
    PROMOTE_TO_TERMINATED,
    DETECT_TERMINATION,
)
"""BEP-1030's four, as sessions use them: the first kernel that ends, ends the session."""

DETECT_FAILURE = PromotionRow(
    "DetectFailure",
    frozenset({A.RUNNING}),
    frozenset({R.ERROR, R.CANCELLED}),
    Match.ANY,
    A.TERMINATING,
)
DETECT_COMPLETION = PromotionRow(
    "DetectCompletion",
    frozenset({A.RUNNING}),
    frozenset(RUN_TERMINAL),
    Match.ALL,
    A.TERMINATING,
)
GANG_PROMOTIONS: tuple[PromotionRow, ...] = (
    PROMOTE_TO_PREPARED,
    PROMOTE_TO_RUNNING,
    PROMOTE_TO_TERMINATED,
    DETECT_FAILURE,
    DETECT_COMPLETION,
)
"""Ours: ``DetectTermination`` split in two, because a rank that ends well must not end its gang."""


class Ending(StrEnum):
    """How an attempt ended, once all its runs are terminal."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"
    """Ended by a user after it started."""
    NEVER_STARTED = "NeverStarted"


ENDING_STATUS: dict[Ending, AttemptStatus] = {
    Ending.SUCCEEDED: A.TERMINATED,
    Ending.CANCELLED: A.TERMINATED,
    Ending.FAILED: A.ERROR,
    Ending.NEVER_STARTED: A.CANCELLED,
}
"""Every ending passes through TERMINATING and then to one of these (semantics 6)."""
