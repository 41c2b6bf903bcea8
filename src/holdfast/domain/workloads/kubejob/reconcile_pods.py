"""Reconciles the pods of a job: what became of their programs, which restart, and which pods come and go.

A program that has ended may restart in its pod (``restarts``); its Job then sees no failure. All other ends are judged
as a Job judges its pods (``reconcile``).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

from holdfast.domain.job import Run
from holdfast.domain.lifecycle import RUN_TERMINAL, Interruption, RunStatus
from holdfast.domain.lifecycle.statuses import EVICTIONS, changes_nothing
from holdfast.domain.record import evolve
from holdfast.domain.workloads.kubejob.job_status import PodsStatus, attempt_steps, status_of
from holdfast.domain.workloads.kubejob.model import StopPod
from holdfast.domain.workloads.kubejob.pods import LivePod, pod_of
from holdfast.domain.workloads.kubejob.program import requested
from holdfast.domain.workloads.kubejob.reconcile import reconcile as reconcile_job
from holdfast.domain.workloads.kubejob.records import PodRecord
from holdfast.domain.workloads.kubejob.restarts import ProgramRestarts
from holdfast.domain.workloads.kubejob.tally import after_its_pod

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.domain.job import Attempt
    from holdfast.domain.lifecycle import Step
    from holdfast.domain.placement.fit import PlaceKey
    from holdfast.domain.workloads.kubejob.job_status import JobStatus
    from holdfast.domain.workloads.kubejob.model import KubeJobSpec, Pod, PodDecision, StartPod


_DOMAINS_EVERY_S = 1.0
"""How often a job looks for a free topology domain; it is not told when one is released."""


class PodsOutlook(NamedTuple):
    """The status of an attempt and its job after a look."""

    steps: tuple[tuple[Step, Attempt], ...]
    job: JobStatus | None
    """``None`` while it is deleted."""
    live: Sequence[Run]
    waits: bool
    """Whether any of its pods waits for a place."""
    look_at: float | None
    """When to look again even if nothing happens."""


class PodReconciler(ProgramRestarts):
    """Decides what follows from the facts about a job's pods, and collects orders that are carried out together."""

    def reconcile(self) -> None:
        """Bring the pods up to date, decide what follows, and order it."""
        self.refresh()
        self.await_next_programs()
        if self.record.deleting_since is None:
            self._sync()
        else:
            # After a restart, pods that were cleared since the record was last written are back.
            self.stop_all()
            self._clear()

    # which come and go

    def _sync(self) -> None:
        spec, state = self.facts.plan.current(self.record), self.record.state
        result = reconcile_job(spec, state, list(self._as_seen(spec)), self.now, cap=self.facts.cap)
        self._decided(result.decisions)
        self._clear()
        for order in result.orders:
            if isinstance(order, StopPod):
                self._stop(order.name)
            else:
                self._add(order)
        self._start_idle()
        self.record, self.wake_at = evolve(self.record, state=result.state), result.wake_at

    def _as_seen(self, spec: KubeJobSpec) -> Iterable[Pod]:
        """Show the pods as the Job controller would see them; unchanged pods reuse their last view."""
        counted, container = self.record.state.counted, self.facts.plan.program.container
        for name, pod in self.pods.items():
            is_counted, shown = name in counted, pod.shown
            if shown is None or shown[0] is not is_counted:
                shown = (
                    is_counted,
                    pod_of(pod.record, pod.run, container=container, indexed=spec.indexed, is_counted=is_counted),
                )
                self.pods[name] = evolve(pod, shown=shown)
            yield shown[1]

    def _decided(self, decisions: Iterable[PodDecision]) -> None:
        """Store the decisions about failed pods with their last programs."""
        for name, decision in decisions:
            run, declined = self.pods[name].run, self.pods[name].declined
            if run is not None and run.outcome is not None:
                failure = run.failure or self.failure_of(name, run)
                final = decision if declined is None else after_its_pod(decision, declined)
                run = evolve(run, failure=failure, decision=final)
                self.pods[name] = evolve(self.pods[name], run=run, shown=None)
                self.orders.note[run.uid] = run

    def _clear(self) -> None:
        """Forget pods that have ended, which the previous look has counted."""
        for name, pod in list(self.pods.items()):
            if pod.run is not None and pod.run.status in RUN_TERMINAL:
                del self.pods[name]
                self.orders.forget.append(pod.run.uid)

    def _add(self, order: StartPod) -> None:
        """Create a pod, whose name is unique in its job because its first run's uid is unique."""
        ranks = {pod.record.rank for pod in self.pods.values()} if order.index is None else set()
        rank = next(slot for slot in range(len(ranks) + 1) if slot not in ranks) if order.index is None else order.index
        uid = self.facts.fresh_uid(rank)
        record = PodRecord(
            name=f"{self.facts.job.name}-{rank}-{uid.rpartition('-')[2]}",
            rank=rank,
            index_failures=order.index_failures,
            index_ignored=order.index_ignored,
            in_place=self.facts.barrier.first if self.facts.plan.in_place else 0,
        )
        self.pods[record.name] = LivePod(record, first=uid)

    def _start_idle(self) -> None:
        """Start the programs of idle pods that may start: on the place they kept, or by the pending queue."""
        # Kubernetes may run two pods of one index until the earlier one is gone; here the second one waits.
        ranks = {pod.record.rank for pod in self.pods.values() if pod.run is not None}
        idle = [name for name, pod in self.pods.items() if pod.run is None and not pod.request]
        for name in idle:
            record, kept = self.pods[name].record, self.pods[name].kept
            if record.rank in ranks or not self.may_start(record):
                continue
            if kept is not None and self.facts.useless(kept):
                self.give_up_place(name)
                kept = None
            if kept is None:
                self.enqueue.append(name)
            else:
                self.give_back(name)
                uid = self.facts.fresh_uid(record.rank)
                self.start(name, uid, (kept.executor, kept.node), kept.devices)
                if kept.devices:
                    # The run inherits its predecessor's devices.
                    self.orders.grants[uid] = (kept.devices,)

    def may_start(self, record: PodRecord) -> bool:
        """Whether an idle pod may start a program now; one that restarts in place waits at the barrier."""
        if record.held or (record.due is not None and record.due > self.now):
            return False
        return not self.facts.plan.in_place or record.in_place in {0, self.facts.barrier.current}

    def start(self, name: str, uid: str, place: PlaceKey, devices: tuple[str, ...]) -> None:
        """Start a pod's next program on its place."""
        pod, attempt = self.pods[name], self.attempt
        run = Run(
            uid=uid,
            job_id=attempt.job_id,
            attempt=attempt.number,
            rank=pod.record.rank,
            status=RunStatus.CREATING,
            status_since=self.now,
            executor=place[0],
            node=place[1],
            request=requested(self.facts.job, pod.record),
            devices=devices,
            generation=self.record.generation,
        )
        record = evolve(pod.record, run=uid, due=None, waiting=False, place_given_up=False, taken="")
        self.pods[name] = evolve(pod, record=record, run=run, request="", shown=None)
        self.orders.start.append(run)
        if run.dispatch > attempt.dispatch:
            self.attempt = evolve(attempt, dispatch=run.dispatch)

    # the status of its job

    def outlook(self, *, awaits_domain: bool) -> PodsOutlook:
        """Derive the status of the attempt and the job from the pods.

        Args:
            awaits_domain: Whether the job waits for a topology domain.
        """
        live: list[Run] = []
        running, waiting = False, awaits_domain
        given_up = self.now + _DOMAINS_EVERY_S if waiting else inf
        due = self.wake_at if self.wake_at is not None and self.wake_at > self.now else inf
        for pod in self.pods.values():
            waiting = waiting or bool(pod.request)
            # A pod that is due already waits for a place.
            if pod.record.due is not None and pod.record.due > self.now:
                due = min(due, pod.record.due)
            if pod.run is not None and pod.run.status not in RUN_TERMINAL:
                live.append(pod.run)
                running = running or pod.run.status is RunStatus.RUNNING
                given_up = min(given_up, self.give_up_time(pod.run) or inf)
        pods = {PodsStatus.RUNNING} if running else set[PodsStatus]()
        if self.record.deleting_since is not None or self.record.state.condition("FailureTarget") is not None:
            pods.add(PodsStatus.STOPPING)
        steps = tuple(attempt_steps(self.attempt, pods, self.now))
        look_at, job_status, job = min(due, given_up), None, self.facts.job
        if self.record.deleting_since is None:
            wake_at = due if due < inf else None
            most, in_set = self.facts.plan.spec.parallelism, job.child is not None
            job_status = status_of(
                self.record, in_set=in_set, placed=bool(live), waiting=waiting, wake_at=wake_at, parallelism=most
            )
        return PodsOutlook(steps, job_status, live, waiting, look_at if look_at < inf else None)

    # requests from outside

    def stop_all(self, *, again: bool = False) -> bool:
        """Stop all pods; returns whether any is gone at once or has ended meanwhile, so that the job needs a look."""
        due = False
        for name in list(self.pods):
            due = self._stop(name, again=again) or due
        return due

    def _stop(self, name: str, *, again: bool = False) -> bool:
        pod = self.pods[name]
        if pod.run is None:
            self.withdraw(name)
            self.give_back(name)
            del self.pods[name]
            return True
        run = self.facts.runs.get(pod.run.uid, pod.run)
        if run.status in RUN_TERMINAL:
            return True
        why = Interruption.HOLD if self.record.suspended and self.record.deleting_since is None else None
        if again or run.interrupted is not why or run.status is not RunStatus.TERMINATING:
            stopped = evolve(run, status=RunStatus.TERMINATING, status_since=self.now, interrupted=why)
            self.put_run(name, stopped)
        return False

    def evict(self, why: Interruption, reason: str, *, node: str, uid: str) -> None:
        """Stop the pods that must leave their places; each then fails by a disruption."""
        for name, pod in list(self.pods.items()):
            if pod.kept is not None and not uid and node in {"", pod.kept.node}:
                self.give_up_place(name)
            if pod.run is None or node not in {"", pod.run.node} or uid not in {"", pod.run.uid}:
                continue
            run = self.facts.runs.get(pod.run.uid, pod.run)
            stopping = run.status is RunStatus.TERMINATING
            if run.status not in RUN_TERMINAL and not changes_nothing(why, run.interrupted, stopping=stopping):
                eviction = (reason or pod.record.taken) if why in EVICTIONS else ""
                self.change(name, evolve(self.pods[name].record, taken=eviction))
                self.put_run(name, evolve(run.entered(RunStatus.TERMINATING, self.now), interrupted=why))

    def release(self) -> None:
        """Release the pods that a policy holds."""
        for name, pod in list(self.pods.items()):
            self.change(name, evolve(pod.record, held=""))

    def requeue(self) -> None:
        """Withdraw waiting pods from the pending queue, to be queued again with a new priority."""
        for name in self.pods:
            self.withdraw(name)

    def resume(self) -> None:
        """Restore the pods that a job had when the last controller stopped."""
        for record in self.record.pods:
            name, run = record.name, self.facts.runs.get(record.run)
            self.pods[name] = LivePod(record, run)
            if record.waiting and run is not None:
                self.record_last_failure(name, run)
                self.await_next(name, run)
            if self.pods[name].run is None and self.record.deleting_since is not None:
                self.give_back(name)
                del self.pods[name]
