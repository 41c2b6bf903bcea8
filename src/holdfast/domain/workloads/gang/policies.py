"""Which policies apply to a job, in the order in which their rules are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.policy.builtin import INFRASTRUCTURE, LOST_ONLY, NEVER_STARTED, NO_RETRY
from holdfast.domain.policy.compiled import PolicySet
from holdfast.domain.policy.model import BuiltIn
from holdfast.domain.workloads.gang.checkpoints import first_policies
from holdfast.domain.workloads.gang.unknown_end import unknown_end_policy

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
