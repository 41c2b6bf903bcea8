"""Restarts a set, a replicated job or a job on a user's request, without counting against a limit or any back-off.

It only marks attempts as previous; the next pass does the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from holdfast.domain.record import evolve
from holdfast.domain.workloads.jobset.model import job_name
from holdfast.domain.workloads.jobset.state import SetEvent, Transition, backoff_keys, restarting
from holdfast.errors import Conflict, NotFound

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from holdfast.domain.workloads.jobset.model import JobSetSpec, ReplicatedJob
    from holdfast.domain.workloads.jobset.state import JobSetState


_T = TypeVar("_T")
REASON = "RestartedByUser"


def restart_set(spec: JobSetSpec, state: JobSetState, now: float) -> Transition:
    """Restart every job, even finished ones.

    Raises:
        Conflict: The set has ended.
    """
    _check_alive(spec, state)
    new = evolve(state, restarts=state.restarts + 1, left_failed={}, not_before={}, streaks={}, healthy_since=None)
    return restarting(new, REASON, "a user restarts the jobset", now)


def restart_group(spec: JobSetSpec, state: JobSetState, group: str) -> Transition:
    """Restart every job of a replicated job.

    Raises:
        Conflict: The set has ended.
        NotFound: It has no such replicated job.
    """
    replicated = _group(spec, state, group)
    names = {job_name(spec.name, group, index) for index in range(replicated.replicas)}
    own = {key for name in names for key in backoff_keys(group, name)[1:]}
    new = evolve(
        state,
        group_restarts={**state.group_restarts, group: state.group_restarts.get(group, 0) + 1},
        left_failed={name: attempt for name, attempt in state.left_failed.items() if name not in names},
        not_before=_without(state.not_before, own),
        streaks=_without(state.streaks, own),
        healthy_since=None,
    )
    return Transition(new, (SetEvent("Normal", REASON, f"a user restarts replicatedJob {group}"),))


def restart_job(spec: JobSetSpec, state: JobSetState, group: str, index: int) -> Transition:
    """Restart one job.

    Raises:
        Conflict: The set has ended.
        NotFound: It has no such job.
    """
    replicated, name = _group(spec, state, group), job_name(spec.name, group, index)
    if not 0 <= index < replicated.replicas:
        msg = f"jobset {spec.name} has no job {name}"
        raise NotFound(msg)
    key = backoff_keys(group, name)[-1]
    own = dict(state.job_restarts.get(group, {}))
    own[index] = own.get(index, 0) + 1
    new = evolve(
        state,
        job_restarts={**state.job_restarts, group: own},
        left_failed={job: attempt for job, attempt in state.left_failed.items() if job != name},
        not_before=_without(state.not_before, {key}),
        streaks=_without(state.streaks, {key}),
        healthy_since=None,
    )
    return Transition(new, (SetEvent("Normal", REASON, f"a user restarts job {name}"),))


def _without(kept: Mapping[str, _T], keys: Container[str]) -> Mapping[str, _T]:
    return {key: value for key, value in kept.items() if key not in keys}


def _group(spec: JobSetSpec, state: JobSetState, name: str) -> ReplicatedJob:
    _check_alive(spec, state)
    if name not in spec.by_name:
        msg = f"jobset {spec.name} has no replicatedJob {name}"
        raise NotFound(msg, hint=f"it has {', '.join(spec.by_name) or 'none'}")
    return spec.by_name[name]


def _check_alive(spec: JobSetSpec, state: JobSetState) -> None:
    if state.terminal:
        msg = f"jobset {spec.name} has ended: {state.terminal}"
        raise Conflict(msg)
