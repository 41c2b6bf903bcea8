"""What becomes of a session's failure, in the order in which its document asks; cases are named by their ids."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.domain.failure import Cause, Failure
from holdfast.domain.policy.decide import decide
from holdfast.domain.policy.model import RetryHistory, RetrySettings
from holdfast.domain.sessions.model import RetryState, SessionSpec, SessionType
from holdfast.domain.sessions.policy import effective
from holdfast.domain.sessions.retry_state import state_after
from holdfast.domain.workloads.gang.policies import compiled_for
from holdfast.domain.workloads.spec import JobSpec

if TYPE_CHECKING:
    from collections.abc import Callable

BATCH, INTERACTIVE, INFERENCE = SessionType
TWO = {"max_retries": 2}
ONLY_LOST = {"max_retries": 2, "eligible_causes": ["agent_transient"]}
EXIT = Cause.KERNEL_NONZERO_EXIT


def after(
    fields: dict[str, Any],
    cause: Cause | None,
    retry_count: int = 0,
    cap: int | None = None,
    *,
    kind: SessionType = BATCH,
    enabled: bool = True,
) -> RetryState:
    """Judge a session by the product's own policies, and say what becomes of it."""
    session = SessionSpec(kind, effective(fields), retries_enabled=enabled)
    failure = None if cause is None else Failure(cause, frozenset())
    counters = (("session/eligible", retry_count),)
    history = RetryHistory("session", retry_count + 1, counters, retry_count)
    policies = compiled_for(JobSpec("job", ("true",), session=session), [])
    decision = None if failure is None else decide(policies, failure, history, RetrySettings(cap))
    state = state_after(session, failure, decision, retry_count)
    assert (state is RetryState.PENDING) == (decision is not None and decision.grants_retry)
    return state


@pytest.mark.parametrize(
    ("judged", "expected"),
    [
        pytest.param(partial(after, TWO, EXIT, kind=INTERACTIVE), RetryState.NONE, id="RD-002"),
        pytest.param(partial(after, TWO, EXIT, kind=INFERENCE), RetryState.NONE, id="inference"),
        pytest.param(partial(after, TWO, None), RetryState.NONE, id="RC-013"),
        pytest.param(partial(after, {}, EXIT), RetryState.NONE, id="no-retries"),
        pytest.param(partial(after, {}, EXIT, cap=0), RetryState.NONE, id="asks-for-none"),
        pytest.param(partial(after, ONLY_LOST, EXIT), RetryState.NOT_ELIGIBLE, id="RC-010"),
        pytest.param(partial(after, ONLY_LOST, EXIT, 2), RetryState.NOT_ELIGIBLE, id="not-eligible-on-the-last"),
        pytest.param(partial(after, ONLY_LOST, EXIT, cap=0), RetryState.NOT_ELIGIBLE, id="not-eligible-at-the-cap"),
        pytest.param(
            partial(after, ONLY_LOST, EXIT, enabled=False), RetryState.NOT_ELIGIBLE, id="not-eligible-when-off"
        ),
        pytest.param(partial(after, TWO, Cause.VALIDATION_ERROR), RetryState.NOT_ELIGIBLE, id="RC-008"),
        pytest.param(partial(after, TWO, Cause.QUOTA_EXCEEDED, 2), RetryState.NOT_ELIGIBLE, id="RC-009"),
        pytest.param(partial(after, TWO, Cause.STALLED), RetryState.PENDING, id="stalled"),
        pytest.param(partial(after, TWO, EXIT, 0), RetryState.PENDING, id="first"),
        pytest.param(partial(after, TWO, EXIT, 1), RetryState.PENDING, id="second"),
        pytest.param(partial(after, TWO, EXIT, 2), RetryState.EXHAUSTED, id="last"),
        pytest.param(partial(after, TWO, EXIT, 2, cap=2), RetryState.EXHAUSTED, id="last-at-the-cap"),
        pytest.param(partial(after, TWO, EXIT, 1, cap=1), RetryState.DISABLED, id="capped"),
        pytest.param(partial(after, TWO, EXIT, 0, cap=0), RetryState.DISABLED, id="kill-switch"),
        pytest.param(partial(after, TWO, EXIT, enabled=False), RetryState.DISABLED, id="switched-off"),
    ],
)
def test_the_first_question_that_a_session_fails_decides_what_becomes_of_it(
    judged: Callable[[], RetryState], expected: RetryState
) -> None:
    assert judged() is expected
