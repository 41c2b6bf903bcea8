"""Says what becomes of a session's failure (BEP "Native Session Retry", "Decision and dispatch")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.sessions.model import RetryState, SessionType

if TYPE_CHECKING:
    from holdfast.domain.failure import Failure
    from holdfast.domain.policy.model import Decision
    from holdfast.domain.sessions.model import SessionSpec


def state_after(spec: SessionSpec, failure: Failure | None, decision: Decision | None) -> RetryState:
    """Return the state of a session that has ended.

    In this order, which its users rely on: batch, failed, asks for retries, eligible, exhausted, retried.

    Args:
        spec: What the session is.
        failure: Its failure, if it failed.
        decision: What was decided about that.
    """
    if spec.type is not SessionType.BATCH or failure is None or not spec.policy.max_retries:
        return RetryState.NONE
    if not spec.retries_enabled:
        return RetryState.DISABLED
    if decision is None:
        return RetryState.NOT_ELIGIBLE
    if decision.grants_retry:
        return RetryState.PENDING
    if decision.code is DecisionCode.POLICY_LIMIT:
        return RetryState.EXHAUSTED
    return RetryState.DISABLED if decision.code is DecisionCode.GLOBAL_LIMIT else RetryState.NOT_ELIGIBLE
