"""Whether a set is complete: how many jobs of which replicated jobs must have succeeded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.workloads.jobset.model import Operator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.workloads.jobset.model import JobSetSpec
    from holdfast.domain.workloads.jobset.state import Child


def counts(spec: JobSetSpec, group: str) -> bool:
    """Whether the jobs of a replicated job count."""
    return not spec.success.targets or group in spec.success.targets


def expected(spec: JobSetSpec) -> int:
    """Say how many jobs must succeed."""
    if spec.success.operator is Operator.ANY:
        return 1
    return sum(group.replicas for group in spec.replicated_jobs if counts(spec, group.name))


def complete(spec: JobSetSpec, succeeded: Sequence[Child]) -> bool:
    """Whether enough jobs have succeeded; a set that has no jobs at all is complete at once."""
    if not spec.replicas:
        return True
    return bool(succeeded) and sum(counts(spec, child.group) for child in succeeded) >= expected(spec)
