"""Restarts programs in the pod they belong to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.controller.workloads.pod_queue import fresh_uid
from holdfast.domain.classify import classify
from holdfast.domain.delay import delay_s
from holdfast.domain.failure import EndedBy, in_words
from holdfast.domain.lifecycle import RUN_TERMINAL, RunStatus
from holdfast.domain.policy.decide import decide
from holdfast.domain.policy.model import Action, Backoff, RetryHistory
from holdfast.domain.units import format_duration
from holdfast.domain.workloads.gang.conclusion import that_still_fits
from holdfast.domain.workloads.jobset.state import Event
from holdfast.domain.workloads.kubejob.model import RestartPolicy
from holdfast.domain.workloads.kubejob.observed import is_disruption

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.controller.active import Active
    from holdfast.controller.policy_catalog import PolicyCatalog
    from holdfast.controller.state import ControllerState
    from holdfast.controller.workloads.memory import JobWork, PodWork
    from holdfast.controller.workloads.owners import Owners
    from holdfast.controller.workloads.plans import PodPlan
    from holdfast.controller.workloads.pod_queue import PodQueue
    from holdfast.domain.failure import RunOutcome
    from holdfast.domain.job import Job, Run
    from holdfast.domain.workloads.kubejob.stored import PodRecord

CRASH_BACKOFF = Backoff(initial_s=10.0, max_s=300.0, multiplier=2.0)
"""The kubelet's: 10 s doubling to five minutes."""


class ContainerRestarts:
    """Restarts programs in their pods."""

    def __init__(
        self,
        state: ControllerState,
        pod_queue: PodQueue,
        catalog: PolicyCatalog,
        *,
        draw: Callable[[], float],
        owners: Owners,
        backoff: Backoff = CRASH_BACKOFF,
    ) -> None:
        """Remember what it works with.

        Args:
            state: The controller's memory.
            pod_queue: Where pods wait for a place.
            catalog: The operator's policies.
            draw: For random jitter.
            owners: The job sets of jobs.
            backoff: For ``OnFailure``.
        """
        self._state = state
        self._pod_queue = pod_queue
        self._catalog = catalog
        self._draw = draw
        self._set_state = owners.state_of
        self._tell = owners.tell
        self._backoff = backoff

    def await_next_programs(self, active: Active, work: JobWork, plan: PodPlan, now: float) -> None:
        """Make pods whose program has ended wait for the next one, where there is to be one."""
        if work.record.deleting_since is not None or work.record.suspended:
            return
        if not (plan.in_place or plan.policies or plan.spec.restart_policy is RestartPolicy.ON_FAILURE):
            return
        for name, pod in work.pods.items():
            if pod.run is None and plan.in_place:
                self._catch_up(active, pod)
            if pod.run is None or name in work.record.state.counted:
                continue
            if plan.in_place and pod.run.status not in RUN_TERMINAL:
                self._stop_straggler(active, pod, now)
            elif pod.run.status in RUN_TERMINAL and pod.run.outcome is not None and not pod.run.outcome.succeeded:
                self._ended(active, pod, plan, pod.run.outcome, now)

    def _catch_up(self, active: Active, pod: PodWork) -> None:
        """Let a pod that runs nothing catch up with the others' restart in place, even if it is pending already."""
        first = self.first_in_place(active.job)
        if pod.record.in_place < first:
            self._pod_queue.remove(pod)
            pod.record = replace(pod.record, in_place=first)

    def _stop_straggler(self, active: Active, pod: PodWork, now: float) -> None:
        """Stop a program of an earlier generation than the one at the barrier."""
        state, run = self._set_state(active.job), pod.run
        if state is None or run is None or state.in_place_previous is None:
            return
        if pod.record.in_place <= state.in_place_previous and run.status is not RunStatus.TERMINATING:
            pod.run = run.entered(RunStatus.TERMINATING, now)
            self._state.put_run(active, pod.run)

    def _ended(self, active: Active, pod: PodWork, plan: PodPlan, outcome: RunOutcome, now: float) -> None:
        record = self._after(active, pod.record, plan, outcome, now)
        if record is None:
            return
        run, pod.record, pod.run = pod.run, replace(record, waiting=True), None
        if run is None:
            return
        self._state.forget_run(active, run.uid)
        if plan.in_place and not is_disruption(outcome):
            self._keep_place(active, pod, run)

    def _after(
        self, active: Active, record: PodRecord, plan: PodPlan, outcome: RunOutcome, now: float
    ) -> PodRecord | None:
        """Return the record of a pod whose program will restart; ``None`` when the pod has ended."""
        if plan.in_place:
            state = self._set_state(active.job)
            previous = -1 if state is None or state.in_place_previous is None else state.in_place_previous
            if outcome.ended_by is not EndedBy.CASCADE:
                failure = classify(outcome, rank=record.rank, categories=self._catalog.categories)
                message = f"pod {record.name}: {in_words(failure)}; the set restarts in place"
                self._tell(active.job, Event("Warning", "RestartInPlace", message), now)
            return replace(record, in_place=max(record.in_place, previous) + 1, due=None)
        again = self._by_policy(active, record, plan, outcome, now) if plan.policies else None
        if again is not None:
            return again
        if plan.spec.restart_policy is not RestartPolicy.ON_FAILURE or is_disruption(outcome):
            return None
        restarts = record.restarts + 1
        due = now + delay_s(self._backoff, restarts, seed=record.name)
        return replace(record, restarts=restarts, due=due)

    def _by_policy(
        self, active: Active, record: PodRecord, plan: PodPlan, outcome: RunOutcome, now: float
    ) -> PodRecord | None:
        failure = classify(outcome, rank=record.rank, categories=self._catalog.categories)
        history = RetryHistory(
            job_id=active.attempt.job_id,
            attempt=1 + record.restarts,
            counters=tuple(record.counters.items()),
            total=sum(record.counters.values()),
            memory=record.memory or active.job.request.memory,
        )
        decision = decide(
            self._catalog.named(plan.policies), failure, history, self._catalog.catalogue.settings, draw=self._draw()
        )
        places = list(self._state.capacity.places.values())
        shape = self._pod_queue.shape(active.job, replace(record, memory=decision.memory), plan)
        decision = that_still_fits(decision, shape, places)
        what = (
            f"pod {record.name}: {in_words(failure)}; policy {decision.policy}, rule {decision.rule}: {decision.reason}"
        )
        if decision.action is Action.HOLD:
            held = Event("Warning", "HeldByPolicy", f"{what}; release job {active.job.name} to retry")
            self._tell(active.job, held, now)
            return replace(record, restarts=record.restarts + 1, due=None, held=decision.reason)
        if not decision.runs_again:
            self._tell(active.job, Event("Warning", "RetryPolicyGaveUp", what), now)
            return None
        wait = f"; again in {format_duration(decision.delay_s)}" if decision.delay_s else ""
        self._tell(active.job, Event("Normal", "RetriedByPolicy", f"{what}{wait}"), now)
        counters = dict(record.counters)
        if decision.counter is not None:
            counters[decision.counter] = counters.get(decision.counter, 0) + 1
        return replace(
            record,
            restarts=record.restarts + 1,
            due=now + decision.delay_s,
            counters=counters,
            avoid_node=decision.avoid_node,
            memory=decision.memory or record.memory,
        )

    def release(self, work: JobWork) -> None:
        """Let pods that a policy holds go on."""
        for pod in work.pods.values():
            pod.record = replace(pod.record, held="")

    def first_in_place(self, job: Job) -> int:
        """Return which restart in place a new pod begins with: the one its set has reached or is gathering for."""
        state = self._set_state(job)
        return 0 if state is None or state.in_place_previous is None else state.in_place_previous + 1

    def may_start(self, job: Job, pod: PodWork, plan: PodPlan, now: float) -> bool:
        """Whether a pod without a program may have one now; one that restarts in place waits at the barrier."""
        if pod.record.held or (pod.record.due is not None and pod.record.due > now):
            return False
        if not plan.in_place or pod.record.in_place == 0:
            return True
        state = self._set_state(job)
        return state is not None and state.in_place_current == pod.record.in_place

    def start(self, active: Active, work: JobWork, pod: PodWork, plan: PodPlan, now: float) -> None:
        """Start a pod's program: on the place it kept, else in the pending queue."""
        kept = pod.kept
        if kept is None:
            self._pod_queue.add(active, work, pod, plan, now)
            return
        self.forget(pod)
        uid = fresh_uid(active, pod.record.rank)
        self._pod_queue.start(active, pod, uid, (kept.executor, kept.node), now)

    def resume(self, active: Active, pod: PodWork, plan: PodPlan) -> None:
        """Restore a pod that was waiting to restart when the last controller stopped; in place, it keeps its place."""
        if not pod.record.waiting:
            return
        run, pod.run = pod.run, None
        if run is None:
            return
        self._state.forget_run(active, run.uid)
        if plan.in_place and run.outcome is not None and not is_disruption(run.outcome):
            self._keep_place(active, pod, run)

    def _keep_place(self, active: Active, pod: PodWork, run: Run) -> None:
        """Keep a pod's place while it waits at the barrier."""
        pod.kept = replace(run, uid=f"{run.uid}/kept")
        self._state.keep_place(pod.kept, active.job.queue)

    def forget(self, pod: PodWork) -> None:
        """Give back the place a pod kept."""
        if pod.kept is not None:
            self._state.give_place_back(pod.kept.uid)
        pod.kept = None
