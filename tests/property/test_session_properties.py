"""A chain of sessions is what its policy makes of how its programs end, against a model of the document alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.domain.failure import EndedBy, FailureCondition
from holdfast.domain.job import JobState
from holdfast.domain.policy.model import RetrySettings
from holdfast.domain.sessions.model import SessionResult
from holdfast.domain.sessions.policy import RetryEligibleCause, SessionRetryPolicy
from tests.unit.conftest import Lab, ends_with, exits
from tests.unit.test_session_chains import chain, enqueue

if TYPE_CHECKING:
    from collections.abc import Sequence

ENDS = {
    "success": exits(0),
    "kernel_nonzero_exit": exits(1),
    "oom_killed": ends_with(FailureCondition.OOM_KILLED, EndedBy.MEMORY),
    "image_pull_failure": ends_with(FailureCondition.IMAGE_PULL_FAILED, EndedBy.ITSELF, started=False),
    "unknown": ends_with(FailureCondition.DEADLINE_EXCEEDED, EndedBy.DEADLINE),
}
POLICIES = st.builds(
    SessionRetryPolicy,
    max_retries=st.integers(0, 4),
    retry_delay=st.just(0.001),
    eligible_causes=st.frozensets(st.sampled_from(RetryEligibleCause), min_size=3),
)


def expected_chain(policy: SessionRetryPolicy, ends: Sequence[str], cap: int | None) -> list[tuple[str | None, str]]:
    """Return the cause and the retry state of each session, by the document."""
    sessions: list[tuple[str | None, str]] = []
    for count, end in enumerate(ends):
        if end == "success":
            return [*sessions, (None, "none")]
        if not policy.max_retries:
            state = "none"
        elif end not in policy.eligible_causes:
            state = "not_eligible"
        elif count == policy.max_retries:
            state = "exhausted"
        else:
            state = "disabled" if cap is not None and count >= cap else "retried"
        sessions.append((end, state))
        if state != "retried":
            break
    return sessions


@settings(max_examples=40, deadline=None)
@given(POLICIES, st.lists(st.sampled_from([*ENDS]), min_size=5, max_size=5), st.none() | st.integers(0, 3))
def test_a_chain_has_the_sessions_that_its_document_says(
    policy: SessionRetryPolicy, ends: list[str], cap: int | None
) -> None:
    lab = Lab()
    lab.store.put_settings(RetrySettings(global_max_retries=cap), None)
    job = enqueue(lab, "chain", policy, lambda order: ENDS[ends[order.attempt - 1]])
    lab.pass_s(60, every_s=2.0)
    sessions, expected = chain(lab, job), expected_chain(policy, ends, cap)
    assert [(session.retry_cause, session.retry_state) for session in sessions] == expected
    assert all(session.result is SessionResult.FAILURE for session in sessions[:-1])
    succeeded = expected[-1][0] is None
    assert (sessions[-1].result is SessionResult.SUCCESS) is succeeded
    assert lab.job(job).state is (JobState.SUCCEEDED if succeeded else JobState.FAILED)
