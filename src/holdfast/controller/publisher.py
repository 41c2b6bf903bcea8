"""Publishes the results of a tick: its events, written with its changes, and the desired set of each executor.

Changed sets are published only after the commit that made them true.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.domain.lifecycle import Interruption, RunStatus
from holdfast.domain.placement.pressure import HARD_GRACE_S
from holdfast.domain.record import evolve
from holdfast.domain.sessions.model import kernel_variables
from holdfast.domain.terms.settings import Streams
from holdfast.ports.engine import Container, RunOrder, StopReason
from holdfast.ports.exchange import DesiredRun

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.controller.active import Active
    from holdfast.controller.reconcile import Quarantine
    from holdfast.controller.state import ControllerState
    from holdfast.domain.job import Job, Resources, Run
    from holdfast.domain.workloads.kubejob.program import ContainerSpec, Program
    from holdfast.domain.workloads.kubejob.records import PodRecord
    from holdfast.domain.workloads.spec import JobSpec

_PREPARES = frozenset({RunStatus.PREPARING, RunStatus.PULLING, RunStatus.PREPARED})
_RUNS = frozenset({RunStatus.CREATING, RunStatus.RUNNING})
_SHORTEST_S = 0.001
"""Not 0, which could be read as no deadline."""
_INTERRUPTED = {
    Interruption.HOLD: StopReason.SUSPENSION,
    Interruption.RELEASE: StopReason.SUSPENSION,
    Interruption.DRAIN: StopReason.DRAIN,
    Interruption.PREEMPT: StopReason.PREEMPTION,
    Interruption.EVICT: StopReason.EVICTION,
    Interruption.EVICT_NOW: StopReason.EVICTION,
}


class Publisher:
    """Desired sets by executor."""

    def __init__(self, state: ControllerState, quarantine: Quarantine) -> None:
        self._state = state
        self._quarantine = quarantine
        self._sets: dict[str, dict[str, DesiredRun]] = {}
        self.published: dict[str, Mapping[str, DesiredRun]] = {}
        """By executor, as of the last commit."""

    def publish(self, now: float) -> frozenset[str]:
        """Update the sets with every changed run; returns the executors whose set changed.

        If an order cannot be written, the run stays as it was published: a new run is not started, or is stopped.
        """
        changed: set[str] = set()
        runs = self._state.take_runs_changed().values()
        try:
            for active, run in runs:
                self._follow(active, run, now, changed)
        except Exception:  # noqa: BLE001 - failures are found and reported run by run
            for active, run in runs:
                follow = partial(self._follow, active, run, now, changed)
                self._quarantine.attempt_anyway(active.job.kind, run.job_id, now, "writing its orders", follow)
        for executor in changed:
            self.published[executor] = dict(self._sets[executor])
        return frozenset(changed)

    def _follow(self, active: Active, run: Run, now: float, changed: set[str]) -> None:
        desired_runs = self._sets.setdefault(run.executor, {})
        present = desired_runs.get(run.uid)
        order = active.order or partial(_order, active)
        prepare = run.status in _PREPARES
        if prepare or run.status in _RUNS:
            if present is not None and present.prepare is prepare:
                return
            desired_runs[run.uid] = DesiredRun(order(run, now), prepare=prepare)
        elif run.status is RunStatus.TERMINATING:
            kept = present.order if present is not None and present.stop is None else order(run, now)
            if run.interrupted is Interruption.EVICT_NOW:
                kept = evolve(kept, grace_s=min(kept.grace_s, HARD_GRACE_S))
            desired_runs.pop(run.uid, None)  # Stop requests keep their order: children before their parents.
            desired_runs[run.uid] = DesiredRun(kept, stop=stop_reason(active, run, now))
        elif desired_runs.pop(run.uid, None) is None:
            return
        changed.add(run.executor)


def _order(active: Active, run: Run, now: float) -> RunOrder:
    """Write everything that an engine needs to start a run of a gang.

    Its deadline is the attempt's or the rest of the job's, whichever is shorter; an engine enforces it even without a
    controller.
    """
    job, spec = active.job, active.spec
    return evolve(
        write_order(job, run, spec, _containers(active, run), size=job.gang, avoids=job),
        deadline_s=sooner(spec.deadline_s, spec.total_deadline_s, since=job.ready_at or job.submitted_at, now=now),
        grace_s=spec.grace_s,
        checkpointed_exit_code=spec.checkpointed_exit_code,
        inputs=spec.inputs,
        preparation=spec.prepare,
        keeps_work=spec.keeps_work,
        identity=bool(spec.identity),
        ports=spec.ports,
        separate_logs=spec.logs is Streams.SEPARATE,
        checkpoints_of=spec.checkpoints_of,
    )


def write_order(
    job: Job,
    run: Run,
    program: JobSpec | Program,
    containers: tuple[Container, ...],
    *,
    size: int,
    avoids: Job | PodRecord | None,
) -> RunOrder:
    """Write the parts of an order that all kinds of workloads share.

    Args:
        job: The job.
        run: The run.
        program: What it runs, including what to watch and which nodes qualify.
        containers: The containers to start.
        size: The number of runs.
        avoids: The unit that restarts together, which says what to avoid.
    """
    return RunOrder(
        uid=run.uid,
        job_id=job.id,
        job_name=job.name,
        attempt=run.attempt,
        rank=run.rank,
        size=size,
        containers=containers,
        resources=run.request,
        node=run.node,
        stall=program.stall,
        warning=program.warning,
        gpus=run.devices,
        node_selector=program.node_selector,
        avoid_node=None if avoids is None else avoids.avoid_node,
        avoid_nodes=() if avoids is None else avoids.avoid_nodes,
        queue=job.queue,
        submitted_by=job.submitted_by,
        submitter_uid=job.submitter_uid,
    )


def _containers(active: Active, run: Run) -> tuple[Container, ...]:
    job, spec = active.job, active.spec
    if spec.pod is None:
        env = spec.env
        if spec.session is not None:
            env = {**env, **kernel_variables(job.id, job.retries, run.rank, job.gang)}
        container = Container(
            command=spec.command,
            env=env,
            secrets=spec.secrets,
            working_dir=spec.working_dir,
            resources=run.request,
        )
        return (container,)
    name = spec.pod.pod_name(job.id, active.attempt.number)
    return containers(spec.pod.program, {"JOB_NAME": job.name, "JOB_UID": job.id, "POD_NAME": name}, run.request)


def containers(program: Program, variables: Mapping[str, str], request: Resources) -> tuple[Container, ...]:
    """Write the containers of a pod with these variables and resources."""
    return tuple([_container(program, variables, request, container) for container in program.containers])


def _container(program: Program, variables: Mapping[str, str], request: Resources, spec: ContainerSpec) -> Container:
    command, env = spec.for_pod(variables)
    return Container(
        name=spec.container,
        role=spec.role,
        image=spec.image,
        command=command,
        is_arguments=spec.is_arguments,
        env=env,
        working_dir=spec.working_dir,
        resources=spec.resources if spec is not program else program.own or request,
        memory_limit=program.grown(spec.memory_limit, request.memory),
        ports=spec.ports,
        mounts=spec.mounts,
    )


def sooner(deadline_s: float | None, total_s: float | None, *, since: float, now: float) -> float | None:
    """Return the shorter of a deadline and the rest of a total one; always more than 0."""
    if total_s is None:
        return deadline_s
    left_s = max(since + total_s - now, _SHORTEST_S)
    return left_s if deadline_s is None else min(deadline_s, left_s)


def stop_reason(active: Active, run: Run, now: float) -> StopReason:
    """Return why a run is to be stopped."""
    if active.job.cancel_requested:
        return StopReason.USER
    if run.interrupted is not None:
        return _INTERRUPTED[run.interrupted]
    total_s = active.spec.total_deadline_s
    if total_s is not None and now >= (active.job.ready_at or active.job.submitted_at) + total_s:
        return StopReason.DEADLINE
    return StopReason.CASCADE
