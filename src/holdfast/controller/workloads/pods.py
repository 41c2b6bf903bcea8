"""The pods of Kubernetes Jobs: their plans, the facts for looks at them, and the orders that follow.

Plans come from the Job's rules and from its own specification or the template in its set.
``domain.workloads.kubejob.reconcile_pods`` decides the orders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.controller.bounded_cache import BoundedCache
from holdfast.controller.publisher import containers, sooner, write_order
from holdfast.controller.workloads.domains import Domains
from holdfast.domain.job import JobState
from holdfast.domain.placement.scheduling import GroupKey, Waiting
from holdfast.domain.record import evolve
from holdfast.domain.workloads.children import CreateChild
from holdfast.domain.workloads.jobset.children import plan_of, pod_environment
from holdfast.domain.workloads.jobset.state import SetEvent
from holdfast.domain.workloads.kubejob.model import POD_BACKOFF
from holdfast.domain.workloads.kubejob.pods import Barrier, PodFacts, TimeLimits
from holdfast.domain.workloads.kubejob.program import PodPlan
from holdfast.domain.workloads.kubejob.reconcile_pods import PodReconciler

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.controller import policy_catalog
    from holdfast.controller.active import Active
    from holdfast.controller.state import ControllerState
    from holdfast.controller.workloads.memory import JobWork, SetWork
    from holdfast.domain.job import ChildOf, Job, Run
    from holdfast.domain.policy.model import Backoff
    from holdfast.domain.workloads.kubejob.model import KubeJobSpec
    from holdfast.domain.workloads.kubejob.pods import LivePod
    from holdfast.domain.workloads.kubejob.program import Program
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.ports.engine import RunOrder

NO_BARRIER = Barrier()
_BACKSTOP_S = 1.0
"""The controller, which counts failed pods, should see a Job's deadline pass before the pods do, by any clock."""
_MOST_PLANS = 1_024


class Pods:
    """The pods of all Kubernetes Jobs."""

    def __init__(
        self,
        state: ControllerState,
        judging: policy_catalog.PolicyJudge,
        sets: Mapping[str, SetWork],
        *,
        backoff: Backoff,
        crash_backoff: Backoff,
        patience_s: float,
    ) -> None:
        """Wire it.

        Args:
            state: The controller's state.
            judging: Collects what failures are judged by.
            sets: The job sets of jobs, by id.
            backoff: The back-off before a Job replaces failed pods, if its manifest specifies none.
            crash_backoff: The back-off of ``OnFailure``.
            patience_s: How long after its grace period a stopped program may take to be confirmed gone.
        """
        self._state = state
        self._judging = judging
        self._sets = sets
        self._backoff = backoff
        self._crash_backoff = crash_backoff
        self._patience_s = patience_s
        self.waiting: dict[str, tuple[Active, JobWork, str]] = {}
        """Names of the pods in the pending queue, by placement id."""
        self.domains = Domains(state, judging.catalog)
        self.awaiting_domain: dict[str, None] = {}
        """Ids of jobs that wait for a topology domain."""
        self._plans_of_groups: dict[str, dict[str, PodPlan]] = {}
        """Plans by set and replicated job; each is made once."""
        self._plans_of_specs: BoundedCache[PodPlan] = BoundedCache(_MOST_PLANS)

    # Plans.

    def forget_plans(self, set_id: str) -> None:
        """Forget the plans of a set that is gone or has changed."""
        self._plans_of_groups.pop(set_id, None)

    def plan(self, job: Job, spec: JobSpec) -> PodPlan:
        """Return the plan of a job."""
        kube = spec.kube
        if kube is None:
            if job.child is None:
                msg = f"job {job.id} has no pods"
                raise ValueError(msg)
            return self._plans_of_groups.get(job.child.set_id, {}).get(job.child.group) or self._plan_in_set(job.child)
        cached = self._plans_of_specs.get(job.spec)
        if cached is None:
            new_plan = evolve(self._made_from(kube.spec, kube.program, kube.raw), policies=spec.retry_policies)
            cached = self._plans_of_specs.keep(job.spec, new_plan)
        return cached

    def _plan_in_set(self, at: ChildOf) -> PodPlan:
        spec_of_set = self._sets[at.set_id].spec
        group = spec_of_set.by_name[at.group]
        plan = self._made_from(group.job, group.program, group.template.get("spec", {}))
        planned = self._plans_of_groups.setdefault(at.set_id, {})[at.group] = plan_of(plan, spec_of_set, group)
        return planned

    def _made_from(self, spec: KubeJobSpec, program: Program, written: Mapping[str, Any]) -> PodPlan:
        if spec.backoff == POD_BACKOFF:
            spec = evolve(spec, backoff=self._backoff)
        return PodPlan(spec, program, template=written.get("template"), needs=program.needs)

    def order(self, active: Active, work: JobWork, run: Run, now: float) -> RunOrder:
        """Write the order for a run of an attempt.

        Its deadline is the pod's own, or a little after that of its job, which a running controller enforces first.
        """
        job = active.job
        plan = self.plan(job, active.spec)
        program, deadline_s = plan.program, plan.program.deadline_s
        of_job, started_at = plan.spec.active_deadline_s, work.record.state.started_at
        if of_job is not None and started_at is not None:
            deadline_s = sooner(deadline_s, of_job + _BACKSTOP_S, since=started_at, now=now)
        pod = work.pods.get(work.pod_names.get(run.uid, ""))
        of_pod = containers(program, self._told(job, work, run), run.request)
        size = plan.spec.completions or plan.spec.parallelism
        return evolve(
            write_order(job, run, program, of_pod, size=size, avoids=None if pod is None else pod.record),
            deadline_s=deadline_s,
            grace_s=program.grace_s if work.grace_s is None else work.grace_s,
            volumes=program.volumes,
            devices=program.devices,
            template=plan.template,
        )

    def _told(self, job: Job, work: JobWork, run: Run) -> dict[str, str]:
        """Return the environment variables that describe a pod to its program."""
        own = {"JOB_NAME": job.name, "JOB_UID": job.id, "POD_NAME": work.pod_names.get(run.uid, "")}
        job_set = self._sets.get(job.child.set_id) if job.child is not None else None
        if job.child is None or job_set is None:
            return {**own, "JOB_COMPLETION_INDEX": str(run.rank)}
        spec, at, record = job_set.spec, job.child, work.record
        place = spec.offsets[at.group] + at.index
        created = CreateChild(job.name, at.group, at.index, place, record.restart, record.job_restart)
        return {**own, **pod_environment(spec, created, run.rank, uid=job_set.row.id)}

    # Facts.

    def look(self, active: Active, work: JobWork, now: float) -> PodReconciler:
        """Begin a look at the pods of a job."""
        plan, spec, catalog = self.plan(active.job, active.spec), active.spec, self._judging.catalog
        warned_s = 0.0 if spec.warning is None else spec.warning.before_s
        patience = TimeLimits(warned_s + spec.grace_s + self._patience_s, catalog.starts_within_s(active.job.queue))
        facts = PodFacts(
            job=active.job,
            attempt=active.attempt,
            plan=plan,
            runs=active.runs,
            barrier=self._barrier(active.job) if plan.in_place else NO_BARRIER,
            categories=catalog.categories,
            cap=catalog.catalogue.settings.global_max_retries,
            patience=patience,
            since=self._state.since,
            fresh_uid=active.fresh_uid,
            judging=lambda run: self._judging.of_pod(plan.policies, run, now),
            useless=self._useless,
            backoff=self._crash_backoff,
        )
        look = PodReconciler(facts, work.record, work.pods, now, last_failure=work.last_failure)
        look.wake_at = work.wake_at
        return look

    def _barrier(self, job: Job) -> Barrier:
        work = self._sets.get(job.child.set_id) if job.child is not None else None
        if work is None:
            return NO_BARRIER
        state = work.row.state
        uncounted = state.restarts - state.restarts_counted
        return Barrier(state.in_place_previous, state.in_place_current, uncounted)

    def _useless(self, kept: Run) -> bool:
        """Whether a kept place is useless: its node is drained or short, a device faulty, or all is paused."""
        catalogue = self._judging.catalog.catalogue
        if catalogue.paused is not None:
            return True
        cordon = catalogue.cordons.get(kept.node)
        if cordon is not None and cordon.drain:
            return True
        # A controller that has just started knows its nodes before their executors have reported to it.
        node = self._state.nodes.get((kept.executor, kept.node))
        if node is None or node.short is not None:
            return node is not None
        return any(device.trouble and device.id in kept.devices for device in node.devices)

    # Orders.

    def carry_out(self, active: Active, work: JobWork, look: PodReconciler, now: float) -> None:
        """Carry out the orders of a look, and keep what it found."""
        state, orders = self._state, look.orders
        if look.attempt is not active.attempt:
            state.note_attempt(active, look.attempt)
        state.carry_out(active, orders)
        for request in look.dequeue:
            self.waiting.pop(request, None)
            state.wait_no_more(request)
        for name in look.enqueue:
            self._ask_place(name, active, work, look, now)
        job_set = self._sets.get(active.job.child.set_id) if look.notices and active.job.child is not None else None
        if job_set is not None:
            state.log_of_set(job_set.row, [SetEvent(*news) for news in look.notices], now)
        if orders.start or orders.forget:
            work.pod_names = {pod.run.uid: name for name, pod in look.pods.items() if pod.run is not None}
        work.pods, work.record = look.pods, look.record
        work.last_failure, work.wake_at = look.last_failure, look.wake_at
        if work.record.deleting_since is None:  # Pods that never had a program are created anew and need no record.
            kept = tuple([pod.record for pod in look.pods.values() if pod.record.run])
            if kept != work.record.pods:
                work.record = evolve(work.record, pods=kept)

    def _ask_place(self, name: str, active: Active, work: JobWork, look: PodReconciler, now: float) -> None:
        """Queue a pod for a place; if its job needs a topology domain, the pod waits for that first."""
        job, plan, pod = active.job, look.facts.plan, look.pods[name]
        if plan.topology is not None and not self._has_domain(active, look, pod, now):
            return
        request = active.fresh_uid(pod.record.rank) if pod.record.run else pod.first
        look.pods[name] = evolve(pod, request=request)
        self.waiting[request] = (active, work, name)
        retry = pod.record.restarts + pod.record.index_failures > 0
        shape = plan.shape(job, pod.record, domain=look.record.domain)
        waiting = Waiting(-job.priority, job.seq, request, now, pod=True, user=job.submitted_by)
        self._state.wait(GroupKey(job.queue, shape, retry), waiting, job_id=job.id)

    def _has_domain(self, active: Active, look: PodReconciler, pod: LivePod, now: float) -> bool:
        job_id, plan = active.attempt.job_id, look.facts.plan
        if look.record.domain:
            return True
        key, shape = plan.topology or "", plan.shape(active.job, pod.record)
        domain = self.domains.claim(key, job_id, shape)
        if not domain:
            self.awaiting_domain[job_id] = None
            if active.job.state is JobState.QUEUED:
                self._state.note_reason(job_id, self.domains.why_not(key, shape), now)
            return False
        self.awaiting_domain.pop(job_id, None)
        look.record = evolve(look.record, domain=domain)
        return True
