"""Which policies apply to a job, in the order in which their rules are asked, and those that its own settings mean."""

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
from holdfast.domain.policy.model import BuiltIn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.policy.model import RetryPolicy
    from holdfast.domain.workloads.spec import JobSpec


_BUILT_IN = {BuiltIn.ALL: INFRASTRUCTURE, BuiltIn.LOST_ONLY: LOST_ONLY}


def compiled_for(
    spec: JobSpec, named: Sequence[RetryPolicy], missing: Sequence[str] = (), *, builtin: BuiltIn = BuiltIn.ALL
) -> PolicySet:
    """Compile the policies of a job: those that are named, its inline ones, then the built-in one.

    Args:
        spec: The job's.
        named: Its queue's and its own named policies, in order.
        missing: The names of those that do not exist.
        builtin: How much of the built-in one applies; jobs of other systems do as those do.
    """
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


def _built_in(spec: JobSpec, named: Sequence[RetryPolicy], builtin: BuiltIn) -> RetryPolicy | None:
    """Return what is built in for a job; where pods come in, other policies alone decide once there are any."""
    if spec.builtin is not None:
        return _BUILT_IN.get(spec.builtin)
    if spec.pod is None:
        return _BUILT_IN.get(builtin)
    return NEVER_STARTED if named else LOST_ONLY


def first_policies(spec: JobSpec) -> tuple[RetryPolicy, ...]:
    """Return what is looked at before the policies of a job and its queue: the one about its checkpoints, if any.

    Where a run is warned of its deadline sooner than a checkpoint is worth it in general, what it saves then is.
    """
    if spec.checkpointed_exit_code is None:
        return ()
    worth_s = WORTH_S
    if spec.deadline_s is not None:
        worth_s = min(worth_s, spec.deadline_s - (0.0 if spec.warning is None else spec.warning.before_s))
    return (checkpoint_policy(spec.checkpointed_exit_code, worth_s),)


def unknown_end_policy(spec: JobSpec, policies: Sequence[RetryPolicy]) -> RetryPolicy | None:
    """Return what ``onUnknownEnd`` means for a job; ``None`` if it is retried as any that was lost.

    The job itself comes before its array, and that before the first policy that says anything.

    Args:
        spec: The job.
        policies: Those that apply to it, in order.
    """
    return unknown_end(policies, before=(("job", spec.on_unknown_end), ("array", spec.array_on_unknown_end)))
