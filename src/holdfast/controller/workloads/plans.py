"""What the pods of a job are made from: the Job's rules, the program, and the environment of each pod.

They come from the job's own specification, or from the template in its set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.controller.bounded_cache import BoundedCache
from holdfast.controller.publisher import containers, sooner
from holdfast.domain.record import evolve
from holdfast.domain.workloads.children import CreateChild
from holdfast.domain.workloads.jobset.children import plan_of, pod_environment
from holdfast.domain.workloads.kubejob.model import POD_BACKOFF
from holdfast.domain.workloads.kubejob.plan import PodPlan
from holdfast.ports.engine import RunOrder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.controller.active import Active
    from holdfast.controller.workloads.memory import JobWork, SetWork
    from holdfast.domain.job import ChildOf, Job, Run
    from holdfast.domain.policy.model import Backoff
    from holdfast.domain.workloads.kubejob.model import KubeJobSpec
    from holdfast.domain.workloads.kubejob.program import Program
    from holdfast.domain.workloads.spec import JobSpec

_BACKSTOP_S = 1.0
"""The controller, which counts failed pods, should be first to see a Job's deadline pass, by any clock."""
_MOST_PLANS = 1_024


class Plans:
    """Plans by replicated job and by specification, made once each."""

    def __init__(self, sets: Mapping[str, SetWork], backoff: Backoff = POD_BACKOFF) -> None:
        """Remember where sets are found, and the operator's back-off for pods."""
        self._sets = sets
        self._backoff = backoff
        self._of_groups: dict[str, dict[str, PodPlan]] = {}
        self._of_specs: BoundedCache[PodPlan] = BoundedCache(_MOST_PLANS)

    def forget(self, set_id: str) -> None:
        """Forget what was made for a set that is gone or has changed."""
        self._of_groups.pop(set_id, None)

    def of(self, job: Job, spec: JobSpec) -> PodPlan:
        """Return the plan of a job."""
        kube = spec.kube
        if kube is None:
            if job.child is None:
                msg = f"job {job.id} has no pods"
                raise ValueError(msg)
            return self._of_groups.get(job.child.set_id, {}).get(job.child.group) or self._made(job.child)
        found = self._of_specs.get(job.spec)
        if found is None:
            made = evolve(self._plan(kube.spec, kube.program, kube.raw), policies=spec.retry_policies)
            found = self._of_specs.keep(job.spec, made)
        return found

    def _made(self, at: ChildOf) -> PodPlan:
        spec_of_set = self._sets[at.set_id].spec
        group = spec_of_set.by_name[at.group]
        plan = self._plan(group.job, group.program, group.template.get("spec", {}))
        made = self._of_groups.setdefault(at.set_id, {})[at.group] = plan_of(plan, spec_of_set, group)
        return made

    def _plan(self, spec: KubeJobSpec, program: Program, written: Mapping[str, Any]) -> PodPlan:
        if spec.backoff == POD_BACKOFF:
            spec = evolve(spec, backoff=self._backoff)
        return PodPlan(spec, program, template=written.get("template"), needs=program.needs)

    def told(self, job: Job, work: JobWork, run: Run) -> dict[str, str]:
        """Return the environment variables the pod of a run is given."""
        own = {"JOB_NAME": job.name, "JOB_UID": job.id, "POD_NAME": work.pod_names.get(run.uid, "")}
        job_set = self._sets.get(job.child.set_id) if job.child is not None else None
        if job.child is None or job_set is None:
            return {**own, "JOB_COMPLETION_INDEX": str(run.rank)}
        spec, at, record = job_set.spec, job.child, work.record
        place = spec.offsets[at.group] + at.index
        created = CreateChild(job.name, at.group, at.index, place, record.restart, record.job_restart)
        return {**own, **pod_environment(spec, created, run.rank, uid=job_set.row.id)}

    def order(self, active: Active, work: JobWork, run: Run, now: float) -> RunOrder:
        """Write the order for a run of an attempt.

        Its deadline is the pod's own, or a little after that of its job, which a running controller enforces first.
        """
        job = active.job
        plan = self.of(job, active.spec)
        program, deadline_s = plan.program, plan.program.deadline_s
        of_job, started_at = plan.spec.active_deadline_s, work.record.state.started_at
        if of_job is not None and started_at is not None:
            deadline_s = sooner(deadline_s, of_job + _BACKSTOP_S, since=started_at, now=now)
        pod = work.pods.get(work.pod_names.get(run.uid, ""))
        return RunOrder(
            uid=run.uid,
            job_id=job.id,
            job_name=job.name,
            attempt=run.attempt,
            rank=run.rank,
            size=plan.spec.completions or plan.spec.parallelism,
            containers=containers(program, self.told(job, work, run), run.request),
            resources=run.request,
            node=run.node,
            deadline_s=deadline_s,
            grace_s=program.grace_s if work.grace_s is None else work.grace_s,
            stall=program.stall,
            warning=program.warning,
            volumes=program.volumes,
            devices=program.devices,
            gpus=run.devices,
            node_selector=program.node_selector,
            avoid_node=None if pod is None else pod.record.avoid_node,
            avoid_nodes=() if pod is None else pod.record.avoid_nodes,
            queue=job.queue,
            submitted_by=job.submitted_by,
            submitter_uid=job.submitter_uid,
            template=plan.template,
        )
