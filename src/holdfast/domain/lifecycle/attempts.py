"""The legal moves of attempts and their runs, as literal tables; open this file first.

After BEP-1030, ``Handler State Transition Table`` and ``SessionPromotionHandler``; a session is an Attempt here, a
kernel a Run.
"""

from __future__ import annotations

from holdfast.domain.lifecycle.statuses import RUN_ACTIVE, RUN_TERMINAL, AttemptStatus, Ending, RunStatus
from holdfast.domain.lifecycle.table import (
    JUDGED,
    EntityKind,
    HandlerRow,
    Lifecycle,
    Match,
    Outcome,
    PromotionRow,
    RequestRow,
    TransitionStatus,
)
from holdfast.domain.record import evolve

A, R = AttemptStatus, RunStatus
AttemptHandler = HandlerRow[AttemptStatus, RunStatus]
AttemptPromotion = PromotionRow[AttemptStatus, RunStatus]
_BEFORE_PREPARED = frozenset({R.PENDING, R.SCHEDULED, R.PREPARING, R.PULLING})
_BEFORE_RUNNING = _BEFORE_PREPARED | {R.PREPARED, R.CREATING}


def _to(attempt: AttemptStatus, run: RunStatus) -> TransitionStatus[AttemptStatus, RunStatus]:
    return TransitionStatus(attempt, run)


SCHEDULE = HandlerRow(
    "ScheduleAttempts",
    frozenset({A.PENDING}),
    None,  # the document filters by kernel here, but an attempt gets its runs only with its place
    {
        Outcome.SUCCESS: _to(A.SCHEDULED, R.SCHEDULED),
        Outcome.EXPIRED: _to(A.CANCELLED, R.CANCELLED),
        Outcome.GIVE_UP: _to(A.CANCELLED, R.CANCELLED),
    },
)
PREPARE = HandlerRow(
    "PrepareAttempts",
    frozenset({A.SCHEDULED, A.PREPARING}),
    frozenset({R.SCHEDULED, R.PREPARING, R.PULLING}),  # only SCHEDULED in the document, where PREPARING would hang
    {
        Outcome.SUCCESS: _to(A.PREPARING, R.PREPARING),
        Outcome.EXPIRED: _to(A.PENDING, R.PENDING),
        Outcome.GIVE_UP: _to(A.PENDING, R.PENDING),
    },
    timeout_s=900.0,
)
START = HandlerRow(
    "StartAttempts",
    frozenset({A.PREPARED}),
    frozenset({R.PREPARED}),
    {
        Outcome.SUCCESS: _to(A.CREATING, R.CREATING),
        Outcome.EXPIRED: _to(A.PENDING, R.PENDING),
        Outcome.GIVE_UP: _to(A.PENDING, R.PENDING),
    },
    timeout_s=600.0,
)
TERMINATE = HandlerRow(
    "TerminateAttempts",
    frozenset({A.TERMINATING}),
    frozenset(RUN_ACTIVE),
    {
        Outcome.SUCCESS: _to(A.TERMINATED, R.TERMINATED),
        Outcome.EXPIRED: _to(A.TERMINATED, R.TERMINATED),
        Outcome.GIVE_UP: _to(A.TERMINATED, R.TERMINATED),
    },
    max_retries=None,  # runs that may still run are given up by time alone: a lease, the grace and a margin
)
HANDLERS: tuple[AttemptHandler, ...] = (SCHEDULE, PREPARE, START, TERMINATE)

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
PROMOTIONS: tuple[AttemptPromotion, ...] = (
    PROMOTE_TO_PREPARED,
    PROMOTE_TO_RUNNING,
    PROMOTE_TO_TERMINATED,
    DETECT_TERMINATION,
)
"""BEP-1030's four promotions, for sessions: the main kernel's end, or the failure of any, ends the session."""

DETECT_FAILURE = PromotionRow(
    "DetectFailure",
    frozenset({A.PREPARING, A.PREPARED, A.RUNNING}),
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
DETECT_FAILURE_TO_PREPARE = evolve(DETECT_FAILURE, targets=frozenset({A.PREPARING, A.PREPARED}))
GANG_PROMOTIONS: tuple[AttemptPromotion, ...] = (
    DETECT_FAILURE,  # first: an attempt that lost a run is not prepared, although no run is still preparing
    PROMOTE_TO_PREPARED,
    PROMOTE_TO_RUNNING,
    PROMOTE_TO_TERMINATED,
    DETECT_COMPLETION,
)
"""Holdfast's promotions: ``DetectTermination`` is split in two, because a rank that succeeds must not end its gang, but
one that cannot be prepared must."""

_STOPPED = {
    A.PENDING: A.CANCELLED,
    **dict.fromkeys((A.SCHEDULED, A.PREPARING, A.PREPARED, A.CREATING, A.RUNNING), A.TERMINATING),
}
CANCEL_JOB = RequestRow("CancelJob", _STOPPED)
TOTAL_DEADLINE = RequestRow("TotalDeadline", _STOPPED)
HOLD_JOB = RequestRow("HoldJob", _STOPPED)
DRAIN_NODE = RequestRow("DrainNode", _STOPPED)
PREEMPT_JOB = RequestRow("PreemptJob", _STOPPED)
EVICT_JOB = RequestRow("EvictJob", _STOPPED)
REQUESTS = (CANCEL_JOB, TOTAL_DEADLINE, HOLD_JOB, DRAIN_NODE, PREEMPT_JOB, EVICT_JOB)

ATTEMPTS = Lifecycle(EntityKind.ATTEMPT, JUDGED, HANDLERS, GANG_PROMOTIONS, REQUESTS)
SESSIONS = Lifecycle(EntityKind.ATTEMPT, JUDGED, HANDLERS, (DETECT_FAILURE_TO_PREPARE, *PROMOTIONS), REQUESTS)
"""The moves of the attempts of sessions: those of the document, but a kernel that cannot be prepared ends the session,
which nothing would otherwise."""

ENDING_STATUS: dict[Ending, AttemptStatus] = {
    Ending.SUCCEEDED: A.TERMINATED,
    Ending.CANCELLED: A.TERMINATED,
    Ending.FAILED: A.ERROR,
    Ending.NEVER_STARTED: A.CANCELLED,
}
"""Every ending passes through TERMINATING and then to one of these."""

RUN_PULLING = RequestRow("ReportPulling", {R.PREPARING: R.PULLING})
RUN_PREPARED = RequestRow("ReportPrepared", {R.PREPARING: R.PREPARED, R.PULLING: R.PREPARED})
RUN_STARTED = RequestRow("ReportRunning", {R.CREATING: R.RUNNING})
RUN_ENDED = RequestRow("ReportEnd", dict.fromkeys(RUN_ACTIVE, R.TERMINATED))
"""The run succeeded, or was stopped with its job."""
RUN_NEVER_STARTED = RequestRow("ReportNoStart", dict.fromkeys(RUN_ACTIVE, R.CANCELLED))
"""The run was stopped with its job before it started."""
RUN_FAILED = RequestRow("ReportFailure", dict.fromkeys(RUN_ACTIVE, R.ERROR))
RUNS = (RUN_PULLING, RUN_PREPARED, RUN_STARTED, RUN_ENDED, RUN_NEVER_STARTED, RUN_FAILED)
"""The moves by an executor's reports about a run; from any other status a report is late and moves nothing."""
