"""Says what becomes of a session's failure (BEP "Native Session Retry", "Decision and dispatch")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.sessions.model import RetryState, SessionType
from holdfast.domain.sessions.policy import eligible_cause

if TYPE_CHECKING:
    from holdfast.domain.failure import Failure
    from holdfast.domain.policy.model import Decision
    from holdfast.domain.sessions.model import SessionSpec


def state_after(spec: SessionSpec, failure: Failure | None, decision: Decision | None, retry_count: int) -> RetryState:
    """Return the state of a session that has ended.

    The first question that it fails decides, in the document's order: is it batch, has it failed, does it ask for
    retries, is the cause eligible, and is a retry left. Only then does it matter whether the operator allows retries.

    Args:
        spec: What the session is.
        failure: Its failure, if it failed.
        decision: What was decided about that.
        retry_count: How many sessions came before it in its chain.
    """
    policy = spec.policy
    if spec.type is not SessionType.BATCH or failure is None or not policy.max_retries:
        return RetryState.NONE
    if eligible_cause(failure.cause) not in policy.eligible_causes:
        return RetryState.NOT_ELIGIBLE
    if retry_count >= policy.max_retries:
        return RetryState.EXHAUSTED
    return RetryState.PENDING if decision is not None and decision.grants_retry else RetryState.DISABLED
