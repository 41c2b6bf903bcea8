"""What the pods of some jobs have in common: the Job's rules, the program, and what their set says about restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.domain.placement.fit import Shape
from holdfast.domain.record import Struct, evolve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.containers import Capability
    from holdfast.domain.job import Job, Resources
    from holdfast.domain.workloads.kubejob.model import KubeJobSpec
    from holdfast.domain.workloads.kubejob.program import Program
    from holdfast.domain.workloads.kubejob.stored import KubeJobRecord, PodRecord


class PodPlan(Struct, frozen=True):
    """What the pods of some jobs have in common."""

    spec: KubeJobSpec
    program: Program
    policies: tuple[str, ...] = ()
    """Named policies that may restart a failed pod before its job sees the failure."""
    topology: str | None = None
    template: Mapping[str, Any] | None = None
    """The pod template as written."""
    in_place: bool = False
    """Whether its set restarts programs in place."""
    max_restarts: int = 0
    """Of its set."""
    needs: frozenset[Capability] = frozenset()
    """What an engine must be capable of to run them."""

    def shape(self, job: Job, record: PodRecord, *, domain: str = "") -> Shape:
        """Return the shape of a pod's next program; ``domain`` is the one its job has to itself."""
        selector = dict(self.program.node_selector)
        if self.topology is not None and domain:
            selector[self.topology] = domain
        labels, avoided = tuple(sorted(selector.items())), record.avoid_devices
        tried, request, near = frozenset(record.avoid_nodes), requested(job, record), record.avoid_node
        return Shape(request, 1, labels, near, self.needs, avoid_devices=avoided, avoid_nodes=tried)

    def current(self, record: KubeJobRecord) -> KubeJobSpec:
        """Return a Job's rules with its set's changes: its size, and whether it is suspended."""
        spec = self.spec
        if spec.suspend is not record.suspended:
            spec = evolve(spec, suspend=record.suspended)
        size = (record.parallelism, record.completions)
        if record.parallelism is not None and size != (spec.parallelism, spec.completions):
            spec = evolve(spec, parallelism=record.parallelism, completions=record.completions)
        return spec


def requested(job: Job, record: PodRecord) -> Resources:
    """Return what a pod's next program asks for."""
    return job.request if record.memory is None else evolve(job.request, memory=record.memory)
