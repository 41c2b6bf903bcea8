"""How things move: tables of handlers, promotions and requests for each kind of entity, and the one judge of them all.

Read ``attempts`` first, the table of attempts and their runs; ``table`` says what rows are made of, ``judge`` what
becomes of a handler's report, ``history`` how each step is remembered. Leaves the handlers' work and carrying moves
out to ``controller``.
"""

from holdfast.domain.lifecycle.attempts import (
    ATTEMPTS,
    CANCEL_JOB,
    DETECT_COMPLETION,
    DETECT_FAILURE,
    DETECT_TERMINATION,
    ENDING_STATUS,
    GANG_PROMOTIONS,
    HANDLERS,
    PREPARE,
    PROMOTE_TO_PREPARED,
    PROMOTE_TO_RUNNING,
    PROMOTE_TO_TERMINATED,
    PROMOTIONS,
    SCHEDULE,
    START,
    TERMINATE,
    TOTAL_DEADLINE,
    AttemptHandler,
    AttemptPromotion,
)
from holdfast.domain.lifecycle.history import HistoryRow, Step, SubStep, attempt_id
from holdfast.domain.lifecycle.statuses import (
    ATTEMPT_TERMINAL,
    RUN_ACTIVE,
    RUN_TERMINAL,
    AttemptStatus,
    Ending,
    RunStatus,
)
from holdfast.domain.lifecycle.table import (
    EntityKind,
    HandlerRow,
    Lifecycle,
    Match,
    Outcome,
    PromotionRow,
    RequestRow,
    TransitionStatus,
)

__all__ = [
    "ATTEMPTS",
    "ATTEMPT_TERMINAL",
    "CANCEL_JOB",
    "DETECT_COMPLETION",
    "DETECT_FAILURE",
    "DETECT_TERMINATION",
    "ENDING_STATUS",
    "GANG_PROMOTIONS",
    "HANDLERS",
    "PREPARE",
    "PROMOTE_TO_PREPARED",
    "PROMOTE_TO_RUNNING",
    "PROMOTE_TO_TERMINATED",
    "PROMOTIONS",
    "RUN_ACTIVE",
    "RUN_TERMINAL",
    "SCHEDULE",
    "START",
    "TERMINATE",
    "TOTAL_DEADLINE",
    "AttemptHandler",
    "AttemptPromotion",
    "AttemptStatus",
    "Ending",
    "EntityKind",
    "HandlerRow",
    "HistoryRow",
    "Lifecycle",
    "Match",
    "Outcome",
    "PromotionRow",
    "RequestRow",
    "RunStatus",
    "Step",
    "SubStep",
    "TransitionStatus",
    "attempt_id",
]
