"""What a job specifies for runs that saved their work and want to run again, as a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.policy.builtin import WORTH_S, checkpointed

if TYPE_CHECKING:
    from holdfast.domain.policy.model import RetryPolicy
    from holdfast.domain.workloads.spec import JobSpec


def first_policies(spec: JobSpec) -> tuple[RetryPolicy, ...]:
    """Return what is looked at before the policies of a job and its queue: the one about its checkpoints, if any.

    Where a run is warned of its deadline sooner than a checkpoint is worth it in general, what it saves then is.
    """
    if spec.checkpointed_exit_code is None:
        return ()
    worth_s = WORTH_S
    if spec.deadline_s is not None:
        worth_s = min(worth_s, spec.deadline_s - (0.0 if spec.warning is None else spec.warning.before_s))
    return (checkpointed(spec.checkpointed_exit_code, worth_s),)
