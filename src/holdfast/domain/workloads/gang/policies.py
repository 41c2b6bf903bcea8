"""The policies that apply to a job, in the order in which their rules are tried, and those that its settings imply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.policy.builtin import (
    INFRASTRUCTURE,
    LOST_ONLY,
    NEVER_STARTED,
    NO_RETRY,
    WORTH_S,
    checkpoint_policy,
    unknown_end,
)
from holdfast.domain.policy.compiled import PolicySet
from holdfast.domain.policy.model import Action, BuiltIn, RetryPolicy, Rule
from holdfast.domain.sessions.model import SessionType, session_id
from holdfast.domain.sessions.policy import POLICY_NAME, compiled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.sessions.model import SessionSpec
    from holdfast.domain.workloads.spec import JobSpec


_BUILT_IN = {BuiltIn.ALL: INFRASTRUCTURE, BuiltIn.LOST_ONLY: LOST_ONLY}


def compiled_for(
    spec: JobSpec, named: Sequence[RetryPolicy], missing: Sequence[str] = (), *, builtin: BuiltIn = BuiltIn.ALL
) -> PolicySet:
    """Compile the policies of a job: the named ones, its inline ones, then the built-in one.

    Args:
        spec: The job's specification.
        named: The named policies of its queue and its own, in order.
        missing: Names of policies that do not exist.
        builtin: How much of the built-in policy applies to native jobs; jobs of other systems follow those systems.
    """
    if spec.session is not None:
        return PolicySet.compile([_session_policy(spec.session)])
    if spec.no_retry:
        return PolicySet.compile([NO_RETRY])
    policies = [*named, *spec.inline_policies]
    return PolicySet.compile(
        policies,
        infrastructure=_built_in(spec, named, builtin),
        first=first_policies(spec),
        unknown_end=unknown_end_policy(spec, policies),
        missing=missing,
    )


def _session_policy(session: SessionSpec) -> RetryPolicy:
    """Return the one policy of a session, or one that says why nothing is retried."""
    if session.type is not SessionType.BATCH:
        why = "only batch sessions are retried"
    elif not session.retries_enabled:
        why = "retries of sessions were turned off when it was created"
    else:
        return compiled(session.policy)
    return RetryPolicy(POLICY_NAME, (Rule(Action.FAIL, "never", hold_reason=why),))


def jitter_seed(spec: JobSpec, job_id: str, retry_count: int) -> str:
    """Return what seeds the jitter of a job's next retry: its id, or that of the session that failed."""
    return job_id if spec.session is None else session_id(job_id, retry_count)


def _built_in(spec: JobSpec, named: Sequence[RetryPolicy], builtin: BuiltIn) -> RetryPolicy | None:
    """Return the built-in policy of a job; a pod with named policies has only the one for runs that never started."""
    if spec.builtin is not None:
        return _BUILT_IN.get(spec.builtin)
    if spec.pod is None:
        return _BUILT_IN.get(builtin)
    return NEVER_STARTED if named else LOST_ONLY


def first_policies(spec: JobSpec) -> tuple[RetryPolicy, ...]:
    """Return the policies that come before those of a job and its queue: the one about checkpoints, if any.

    If a run is warned of its deadline before it would have made progress in general, what it saves then counts.
    """
    if spec.checkpointed_exit_code is None:
        return ()
    worth_s = WORTH_S
    if spec.deadline_s is not None:
        worth_s = min(worth_s, spec.deadline_s - (0.0 if spec.warning is None else spec.warning.before_s))
    return (checkpoint_policy(spec.checkpointed_exit_code, worth_s),)


def unknown_end_policy(spec: JobSpec, policies: Sequence[RetryPolicy]) -> RetryPolicy | None:
    """Return the policy for ``onUnknownEnd`` of a job; ``None`` if it is retried like any lost run.

    The job's setting comes before that of its array, and then that of the first policy with one.

    Args:
        spec: The job.
        policies: Its policies, in order.
    """
    return unknown_end(policies, before=(("job", spec.on_unknown_end), ("array", spec.array_on_unknown_end)))
