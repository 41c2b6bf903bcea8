"""Which pods an unfinished Job starts and stops now, and when it may start more."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice, repeat
from typing import TYPE_CHECKING

from holdfast.domain.workloads.kubejob.backoff import remaining_s
from holdfast.domain.workloads.kubejob.model import PodOrder
from holdfast.domain.workloads.kubejob.tally import has_place, waits_until_gone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holdfast.domain.workloads.kubejob.model import KubeJobSpec, KubeJobState, Pod


@dataclass(frozen=True, slots=True)
class PodChanges:
    """What to start and stop."""

    create: tuple[PodOrder, ...] = ()
    delete: tuple[str, ...] = ()
    wake_at: float | None = None


def plan(spec: KubeJobSpec, state: KubeJobState, pods: Sequence[Pod], now: float) -> PodChanges:
    """Plan the pods of a Job that is neither suspended nor decided."""
    active = [pod for pod in pods if pod.active]
    beyond = [pod for pod in active if not has_place(spec, pod)]
    staying = [pod for pod in active if has_place(spec, pod)]
    want = wanted(spec, state, len(staying))
    if len(staying) >= want:
        surplus = sorted(staying, key=_dispensable)[: len(staying) - want]
        return PodChanges(delete=tuple(pod.name for pod in (*beyond, *surplus)))
    free = want - len(staying) - (state.terminating if waits_until_gone(spec) else 0)
    orders, wake_at = _orders(spec, state, pods, now)
    return PodChanges(tuple(islice(orders, max(0, free))), tuple(pod.name for pod in beyond), wake_at)


def wanted(spec: KubeJobSpec, state: KubeJobState, active: int) -> int:
    """Return how many pods should be active."""
    if spec.completions is None:
        # Running pods drain a work queue; after a success no new one starts.
        return min(active, spec.parallelism) if state.succeeded else spec.parallelism
    left = spec.completions - state.succeeded - len(state.failed_indexes)
    return max(0, min(spec.parallelism, left))


def _dispensable(pod: Pod) -> tuple[bool, int]:
    return pod.ready, -(pod.index or 0)


def _orders(
    spec: KubeJobSpec, state: KubeJobState, pods: Sequence[Pod], now: float
) -> tuple[Iterable[PodOrder], float | None]:
    """List what could start now, lowest index first, and when the next one that must wait could."""
    if spec.backoff_limit_per_index is not None:
        return _indexed_with_own_delay(spec, state, pods, now)
    wait = remaining_s(spec.backoff, state.backoff.failures, elapsed_s=now - state.backoff.last_failure_at)
    if wait > 0:
        return (), now + wait
    if not spec.indexed:
        return repeat(PodOrder(), spec.parallelism), None
    return map(PodOrder, _free_indexes(spec, state, pods)), None


def _indexed_with_own_delay(
    spec: KubeJobSpec, state: KubeJobState, pods: Sequence[Pod], now: float
) -> tuple[list[PodOrder], float | None]:
    ready: list[PodOrder] = []
    due: list[float] = []
    for index in _free_indexes(spec, state, pods):
        counted, ignored, last = state.index_failures.get(index, (0, 0, 0.0))
        wait = remaining_s(spec.backoff, counted + ignored, elapsed_s=now - last)
        if wait > 0:
            due.append(now + wait)
        else:
            ready.append(PodOrder(index, counted, ignored))
    return ready, min(due, default=None)


def _free_indexes(spec: KubeJobSpec, state: KubeJobState, pods: Sequence[Pod]) -> Iterator[int]:
    """Yield the unfinished indexes without an active pod, lowest first."""
    waits = waits_until_gone(spec)
    taken = {pod.index for pod in pods if pod.active or (waits and pod.deleting and not pod.ended)}
    for index in range(spec.completions or 0):
        if index not in taken and index not in state.completed_indexes and index not in state.failed_indexes:
            yield index
