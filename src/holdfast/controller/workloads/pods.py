"""Pods of Kubernetes Jobs: has them placed, starts their programs, and restarts those that are to go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.controller.workloads.domains import Domains
from holdfast.controller.workloads.memory import PodWork, failure_of
from holdfast.domain.failure import EndedBy, in_words
from holdfast.domain.job import JobState, Run
from holdfast.domain.lifecycle import RUN_TERMINAL, Interruption, RunStatus
from holdfast.domain.placement.fit import Shape
from holdfast.domain.placement.scheduling import GroupKey, Waiting
from holdfast.domain.policy.model import Action, Backoff
from holdfast.domain.record import evolve
from holdfast.domain.shortage import met
from holdfast.domain.units import format_duration
from holdfast.domain.workloads.gang.interruption import EVICTIONS, changes_nothing
from holdfast.domain.workloads.jobset.state import Event
from holdfast.domain.workloads.kubejob.model import RestartPolicy
from holdfast.domain.workloads.kubejob.observed import failed_by_itself, is_disruption
from holdfast.domain.workloads.kubejob.restarts import RestartContext, after_failure
from holdfast.domain.workloads.kubejob.stored import PodRecord
from holdfast.ports.requests import RequestKind

if TYPE_CHECKING:
    from holdfast.controller.active import Active
    from holdfast.controller.kind import Taking
    from holdfast.controller.policy_catalog import Judging
    from holdfast.controller.state import ControllerState
    from holdfast.controller.workloads.memory import JobWork, KnownSets
    from holdfast.controller.workloads.plans import PodPlan
    from holdfast.domain.failure import Failure
    from holdfast.domain.job import Job, Resources
    from holdfast.domain.placement.fit import PlaceKey
    from holdfast.domain.policy.model import Decision
    from holdfast.domain.workloads.kubejob.model import StartPod

CRASH_BACKOFF = Backoff(initial_s=10.0, max_s=300.0, multiplier=2.0)
"""The kubelet's: 10 s doubling to five minutes."""
_STOPPED = frozenset({EndedBy.CASCADE, EndedBy.SUSPENSION})
_NOTHING_GRANTED: tuple[tuple[str, ...], ...] = ((),)


class Pods:
    """The pods of all Kubernetes Jobs."""

    def __init__(
        self, state: ControllerState, judging: Judging, sets: KnownSets, *, backoff: Backoff = CRASH_BACKOFF
    ) -> None:
        """Remember what it works with.

        Args:
            state: The controller's state.
            judging: What a decision about a failed program depends on.
            sets: The job sets of jobs.
            backoff: For ``OnFailure``.
        """
        self._state = state
        self._judging = judging
        self._sets = sets
        self._backoff = backoff
        self.waiting: dict[str, tuple[Active, JobWork, PodWork]] = {}
        """Pods in the pending queue, by placement id."""
        self.domains = Domains(state, judging.catalog)
        self.awaiting_domain: dict[str, None] = {}
        """Ids of jobs that wait for a topology domain."""

    # placed

    def add(self, active: Active, work: JobWork, plan: PodPlan, order: StartPod) -> None:
        """Make a pod; its name is unique in its job as its first run's uid is among all."""
        rank = order.index if order.index is not None else _free_slot(work)
        uid = self._state.fresh_uid(active, rank)
        record = PodRecord(
            name=f"{active.job.name}-{rank}-{active.placed}",
            rank=rank,
            index_failures=order.index_failures,
            index_ignored=order.index_ignored,
            in_place=self._first_in_place(active.job) if plan.in_place else 0,
        )
        work.pods[record.name] = PodWork(record, first=uid)

    def _enqueue(self, active: Active, work: JobWork, pod: PodWork, plan: PodPlan, now: float) -> None:
        """Put a pod in the pending queue; one whose job has no topology domain yet waits for that first."""
        job = active.job
        if plan.topology is not None and not self._has_domain(active, work, pod, plan, now):
            return
        pod.placement_id = self._state.fresh_uid(active, pod.record.rank) if pod.record.run else pod.first
        retry = pod.record.restarts + pod.record.index_failures > 0
        shape = self.shape(job, pod.record, plan, domain=work.record.domain)
        self.waiting[pod.placement_id] = (active, work, pod)
        waiting = Waiting(-job.priority, job.seq, pod.placement_id, now, pod=True, user=job.submitted_by)
        self._state.wait(GroupKey(job.queue, shape, retry), waiting, job_id=job.id)

    @staticmethod
    def shape(job: Job, record: PodRecord, plan: PodPlan, *, domain: str = "") -> Shape:
        """Return the shape of a pod's next program; ``domain`` is the one its job has to itself."""
        selector = dict(plan.program.node_selector)
        if plan.topology is not None and domain:
            selector[plan.topology] = domain
        labels, avoided = tuple(sorted(selector.items())), record.avoid_devices
        tried = frozenset(record.avoid_nodes)
        request, near = _request(job, record), record.avoid_node
        return Shape(request, 1, labels, near, plan.needs, avoid_devices=avoided, avoid_nodes=tried)

    def _has_domain(self, active: Active, work: JobWork, pod: PodWork, plan: PodPlan, now: float) -> bool:
        job_id, key = active.attempt.job_id, plan.topology or ""
        if work.record.domain:
            return True
        shape = self.shape(active.job, pod.record, plan)
        domain = self.domains.claim(key, job_id, shape)
        if not domain:
            self.awaiting_domain[job_id] = None
            if active.job.state is JobState.QUEUED:
                self._state.note_reason(job_id, self.domains.why_not(key, shape), now)
            return False
        self.awaiting_domain.pop(job_id, None)
        work.record = evolve(work.record, domain=domain)
        return True

    def remove(self, pod: PodWork) -> None:
        """Take a pod out of the pending queue."""
        if pod.placement_id:
            self.waiting.pop(pod.placement_id, None)
            self._state.wait_no_more(pod.placement_id)
            pod.placement_id = ""

    def start(self, active: Active, work: JobWork, pod: PodWork, uid: str, place: PlaceKey, now: float) -> None:
        """Start a pod's next program on the place it got."""
        executor, node = place
        attempt = active.attempt
        run = Run(
            uid=uid,
            job_id=attempt.job_id,
            attempt=attempt.number,
            rank=pod.record.rank,
            status=RunStatus.CREATING,
            status_since=now,
            executor=executor,
            node=node,
            request=_request(active.job, pod.record),
            devices=self._state.capacity.grants.get(uid, _NOTHING_GRANTED)[0],
            generation=work.record.generation,
        )
        pod.run, pod.placement_id = run, ""
        work.pod_names.pop(pod.record.run, None)
        work.pod_names[uid] = pod.record.name
        pod.record = evolve(pod.record, run=uid, due=None, waiting=False, place_given_up=False, taken="")
        self._state.place_pod(active, run)

    # restarted

    def await_next_programs(self, active: Active, work: JobWork, plan: PodPlan, now: float) -> None:
        """Make pods whose program has ended wait for the next one, where there is to be one."""
        goes_on = work.record.deleting_since is None and not work.record.suspended
        in_place = plan.in_place and goes_on
        restarts = plan.in_place or plan.policies or plan.spec.restart_policy is RestartPolicy.ON_FAILURE
        for name, pod in work.pods.items():
            if pod.run is None and in_place:
                self._catch_up(active, pod)
            if pod.run is None or name in work.record.state.counted:
                continue
            outcome = pod.run.outcome
            if pod.run.status not in RUN_TERMINAL:
                if in_place:
                    self._stop_straggler(active, pod, now)
            elif outcome is not None and not outcome.succeeded and (met(outcome) or (restarts and goes_on)):
                self._ended(active, work, pod, plan, now)

    def _catch_up(self, active: Active, pod: PodWork) -> None:
        """Let a pod that runs nothing catch up with the others' restart in place, even if it is pending already."""
        first = self._first_in_place(active.job)
        if pod.record.in_place < first:
            self.remove(pod)
            pod.record = evolve(pod.record, in_place=first)

    def _stop_straggler(self, active: Active, pod: PodWork, now: float) -> None:
        """Stop a program of an earlier generation than the one at the barrier."""
        state, run = self._sets.state_of(active.job), pod.run
        if state is None or run is None or state.in_place_previous is None:
            return
        if pod.record.in_place <= state.in_place_previous and run.status is not RunStatus.TERMINATING:
            pod.run = run.entered(RunStatus.TERMINATING, now)
            self._state.put_run(active, pod.run)

    def _ended(self, active: Active, work: JobWork, pod: PodWork, plan: PodPlan, now: float) -> None:
        """Ask whether a failed program restarts in its pod, keep what was decided with it, and tell its job's set."""
        run = pod.run
        if run is None or run.outcome is None:
            return
        failure = failure_of(pod, run, plan.program.container, self._judging.catalog.categories)
        found = after_failure(pod.record, run.outcome, failure, self._context(active, pod, plan, now))
        decision = found.decision
        if decision is not None and failure.ended_by not in _STOPPED:
            event = _event(active.job, pod.record, failure, decision, plan)
            if event is not None:
                self._sets.tell(active.job, event, now)
            if plan.in_place and not decision.grants_retry:
                work.record = evolve(work.record, failed_in_place=f"{in_words(failure)}; {decision.reason}")
            if found.record is None:
                pod.declined = decision
            else:
                pod.run = run = evolve(run, failure=failure, decision=decision)
                self._state.note_run(active, run)
        if found.record is not None:
            pod.record = evolve(found.record, waiting=True)
            self._await_next(active, pod, run, plan)

    def _await_next(self, active: Active, pod: PodWork, run: Run, plan: PodPlan) -> None:
        """Let a pod wait for its next program; in place, it keeps its place until it leaves the barrier."""
        pod.run = None
        self._state.forget_run(active, run.uid)
        if pod.record.place_given_up or not plan.in_place or run.outcome is None:
            return
        if not is_disruption(run.outcome) and not met(run.outcome):
            pod.kept = evolve(run, uid=f"{run.uid}/kept")
            self._state.keep_place(pod.kept, active.job)

    def _context(self, active: Active, pod: PodWork, plan: PodPlan, now: float) -> RestartContext:
        state, judging = self._sets.state_of(active.job), self._judging
        reached = None
        if plan.in_place:
            reached = -1 if state is None or state.in_place_previous is None else state.in_place_previous
        return RestartContext(
            job_id=active.attempt.job_id,
            ruleset=judging.named(plan.policies, self._state.capacity.places.values(), now),
            has_policies=bool(plan.policies),
            restart_policy=plan.spec.restart_policy,
            backoff=self._backoff,
            in_place=reached,
            max_in_place=plan.max_restarts + (0 if state is None else state.restarts - state.restarts_counted),
            shape=self.shape(active.job, pod.record, plan),
            now=now,
            draw=judging.draw() if plan.policies else 0.0,
            suspicion=judging.losses.suspicion(active.attempt.job_id, [pod.run]) if pod.run and plan.policies else None,
            refusals=judging.shortages.refusals([pod.run]) if pod.run else 0,
        )

    def heed(self, work: JobWork, asked: RequestKind) -> None:
        """Let pods that a policy holds go on, or have those that wait take a place in line by a new priority."""
        for pod in work.pods.values():
            if asked is RequestKind.RELEASE:
                pod.record = evolve(pod.record, held="")
            else:
                self.remove(pod)

    def _first_in_place(self, job: Job) -> int:
        """Return which restart in place a new pod begins with: the one its set has reached or is gathering for."""
        state = self._sets.state_of(job)
        return 0 if state is None or state.in_place_previous is None else state.in_place_previous + 1

    def may_start(self, job: Job, pod: PodWork, plan: PodPlan, now: float) -> bool:
        """Whether a pod without a program may have one now; one that restarts in place waits at the barrier."""
        if pod.record.held or (pod.record.due is not None and pod.record.due > now):
            return False
        if not plan.in_place or pod.record.in_place == 0:
            return True
        state = self._sets.state_of(job)
        return state is not None and state.in_place_current == pod.record.in_place

    def start_idle(self, active: Active, work: JobWork, plan: PodPlan, now: float) -> None:
        """Start the programs of pods that have none and may: on the place each kept, else in the pending queue."""
        # Kubernetes may run two pods of one index for as long as the earlier one takes to go; here it waits for that.
        taken: set[int] = set()
        idle: list[PodWork] = []
        for pod in work.pods.values():
            if pod.run is not None:
                taken.add(pod.record.rank)
            elif not pod.placement_id:
                idle.append(pod)
        for pod in idle:
            if pod.record.rank in taken or not self.may_start(active.job, pod, plan, now):
                continue
            if pod.kept is not None and self._in_trouble(pod.kept):
                self._give_up_place(pod)
            kept = pod.kept
            if kept is None:
                self._enqueue(active, work, pod, plan, now)
            else:
                self.forget(pod)
                uid = self._state.fresh_uid(active, pod.record.rank)
                if kept.devices:
                    self._state.capacity.grant({uid: (kept.devices,)})
                self.start(active, work, pod, uid, (kept.executor, kept.node), now)

    def _in_trouble(self, kept: Run) -> bool:
        """Whether a kept place is of no use: its node is drained or short, a device in trouble, or all is paused."""
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
        return any(each.trouble and each.id in kept.devices for each in node.devices)

    def resume(self, active: Active, work: JobWork, plan: PodPlan) -> None:
        """Restore the pods a job had when the last controller stopped."""
        for each in work.record.pods:
            pod = PodWork(each, active.runs.get(each.run))
            self._resume(active, work, pod, plan)
            if pod.run is not None or work.record.deleting_since is None:
                work.pods[each.name] = pod
                work.pod_names[each.run] = each.name
            else:
                self.forget(pod)

    def _resume(self, active: Active, work: JobWork, pod: PodWork, plan: PodPlan) -> None:
        run = pod.run
        if not pod.record.waiting or run is None:
            return
        if run.outcome is not None and failed_by_itself(run.outcome):
            work.last_failure = failure_of(pod, run, plan.program.container, self._judging.catalog.categories)
        self._await_next(active, pod, run, plan)

    def stop(self, active: Active, work: JobWork, pod: PodWork, now: float, *, again: bool = False) -> bool:
        """Stop a pod; returns whether the job needs another look: it is gone at once, or has ended meanwhile."""
        if pod.run is None:
            self.remove(pod)
            self.forget(pod)
            del work.pods[pod.record.name]
            return True
        pod.run = active.runs.get(pod.run.uid, pod.run)
        if pod.run.status in RUN_TERMINAL:
            return True
        why = Interruption.HOLD if work.record.suspended and work.record.deleting_since is None else None
        if again or pod.run.interrupted is not why or pod.run.status is not RunStatus.TERMINATING:
            pod.run = evolve(pod.run, status=RunStatus.TERMINATING, status_since=now, interrupted=why)
            self._state.put_run(active, pod.run)
        return False

    def evict(self, active: Active, work: JobWork, taking: Taking, now: float) -> None:
        """Stop the pods that are to leave their places; each has failed of a disruption then."""
        for pod in work.pods.values():
            if pod.kept is not None and not taking.uid and taking.node in {"", pod.kept.node}:
                self._give_up_place(pod)
            if pod.run is None or taking.node not in {"", pod.run.node} or taking.uid not in {"", pod.run.uid}:
                continue
            run = active.runs.get(pod.run.uid, pod.run)
            stopping = run.status is RunStatus.TERMINATING
            if run.status not in RUN_TERMINAL and not changes_nothing(taking.why, run.interrupted, stopping=stopping):
                pod.run = evolve(run.entered(RunStatus.TERMINATING, now), interrupted=taking.why)
                pod.record = evolve(
                    pod.record, taken=(taking.reason or pod.record.taken) if taking.why in EVICTIONS else ""
                )
                self._state.put_run(active, pod.run)

    def clear(self, active: Active, work: JobWork) -> None:
        """Forget pods that have ended; the look before has counted each."""
        for name, pod in list(work.pods.items()):
            if pod.run is not None and pod.run.status in RUN_TERMINAL:
                del work.pods[name]
                self._state.forget_run(active, pod.run.uid)
                work.pod_names.pop(pod.run.uid, None)

    def _give_up_place(self, pod: PodWork) -> None:
        """Have a pod wait for any place; the next controller must not take for kept what others may have by then."""
        self.forget(pod)
        pod.record = evolve(pod.record, place_given_up=True)

    def forget(self, pod: PodWork) -> None:
        """Give back the place a pod kept."""
        if pod.kept is not None:
            self._state.give_place_back(pod.kept.uid)
        pod.kept = None


def _event(job: Job, record: PodRecord, failure: Failure, decision: Decision, plan: PodPlan) -> Event | None:
    """Say in the log of the job's set what its rules do not see."""
    what = f"pod {record.name}: {in_words(failure)}"
    if plan.in_place and met(failure) is None:
        if not decision.grants_retry:
            return Event("Warning", "RestartInPlaceRefused", f"{what}; {decision.reason}")
        return Event("Warning", "RestartInPlace", f"{what}; the set restarts in place")
    if decision.policy not in plan.policies:
        return None
    what = f"{what}; policy {decision.policy}, rule {decision.rule}: {decision.reason}"
    if decision.action is Action.HOLD:
        return Event("Warning", "HeldByPolicy", f"{what}; release job {job.name} to retry")
    if not decision.grants_retry:
        return Event("Warning", "RetryPolicyGaveUp", what)
    wait = f"; retried in {format_duration(decision.delay_s)}" if decision.delay_s else ""
    return Event("Normal", "RetriedByPolicy", f"{what}{wait}")


def _request(job: Job, record: PodRecord) -> Resources:
    return job.request if record.memory is None else evolve(job.request, memory=record.memory)


def _free_slot(work: JobWork) -> int:
    taken = {pod.record.rank for pod in work.pods.values()}
    return next(slot for slot in range(len(taken) + 1) if slot not in taken)
