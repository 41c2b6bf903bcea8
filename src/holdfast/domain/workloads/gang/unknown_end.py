"""What becomes of a job when nobody knows how its run ended, as a policy: asked after the user's rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.policy.builtin import unknown_end

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.policy.model import RetryPolicy
    from holdfast.domain.workloads.spec import JobSpec


def unknown_end_policy(spec: JobSpec, policies: Sequence[RetryPolicy]) -> RetryPolicy | None:
    """Return what ``onUnknownEnd`` means for a job; ``None`` if it is retried as any that was lost.

    The job itself comes before its array, and that before the first policy that says anything.

    Args:
        spec: The job.
        policies: Those that apply to it, in order.
    """
    return unknown_end(policies, before=(("job", spec.on_unknown_end), ("array", spec.array_on_unknown_end)))
