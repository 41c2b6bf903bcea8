"""Reconciles an array with the states of its tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Never, TypeAlias

from holdfast.domain.record import evolve
from holdfast.domain.workloads.array.model import MOST_WAITING, ArraySpec, ArrayState, task_name
from holdfast.domain.workloads.base import Result
from holdfast.domain.workloads.children import ChildPhase, CreateChild, DeleteChild, Order, ResumeChild, SuspendChild

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.domain.workloads.children import Child

ArrayResult: TypeAlias = "Result[ArrayState, Order, Never, Never]"
SUCCEEDED, FAILED, CANCELLED = "Succeeded", "Failed", "Cancelled"


def reconcile(
    spec: ArraySpec, state: ArrayState, children: Sequence[Child], now: float, task: Callable[[int], str]
) -> ArrayResult:
    """Count the tasks that have ended, create or hold the others as there is room, and end the array when it is done.

    Args:
        spec: The array's specification.
        state: Its state after the last look.
        children: Its existing tasks; each that has ended is passed once.
        now: The time.
        task: Returns the stored specification of a task by its index.
    """
    alive = [child for child in children if child.phase is ChildPhase.ACTIVE]
    lost = lost_among(state, children)
    state = _ended(spec, _counted(state, children), len(alive), lost, now)
    if state.status:
        return Result(state=state)
    if state.stopping:
        leaving = [DeleteChild(child.name) for child in alive if child.deleting_since is None]
        return Result(state=state, orders=tuple(leaving))
    if state.held:
        waiting = [child for child in alive if not (child.active_pods or child.suspended or child.held)]
        return Result(state=state, orders=tuple(SuspendChild(child.name) for child in waiting))
    resumed = [ResumeChild(child.name) for child in alive if child.suspended]
    running = sum(child.active_pods > 0 for child in alive)
    last = min(spec.total, state.made + _room(spec, len(alive) + lost, running + lost))
    new = spec.indexes_at(state.made, last)
    orders = [CreateChild(task_name(spec.name, index), index=index, spec=task(index)) for index in new]
    return Result(state=evolve(state, made=last) if new else state, orders=(*resumed, *orders))


def lost_among(state: ArrayState, children: Sequence[Child]) -> int:
    """Count the tasks that were created but are unknown, because their rows are damaged.

    They may run, and may end in any way, so the array neither ends nor creates others in their place.

    Args:
        state: The array's state.
        children: Its existing tasks, including those that have ended and are not counted yet.
    """
    return max(0, state.made - state.succeeded - state.failed - state.cancelled - len(children))


def waits_for_lost(state: ArrayState, children: Sequence[Child], result: ArrayResult) -> bool:
    """Whether an array can make no progress because of the tasks that it has lost."""
    after = result.state
    is_settled = after.stopping or after.status or after.held or result.orders
    is_alive = any(child.phase is ChildPhase.ACTIVE for child in children)
    return not is_settled and not is_alive and lost_among(state, children) > 0


def stop(state: ArrayState, how: str, reason: str) -> ArrayState:
    """Let an array end in a way as soon as its tasks have; the first way stays."""
    return state if state.stopping or state.status else evolve(state, stopping=how, reason=reason)


def _room(spec: ArraySpec, alive: int, running: int) -> int:
    """Return how many more tasks to create now: none, or many at once."""
    waiting = alive - running
    room = MOST_WAITING - waiting if waiting <= MOST_WAITING // 2 else 0
    return max(0, room if spec.max_running is None else min(room, spec.max_running - alive))


def _counted(state: ArrayState, children: Sequence[Child]) -> ArrayState:
    """Count tasks that have just ended."""
    ended = [child.phase for child in children if child.phase is not ChildPhase.ACTIVE]
    if not ended:
        return state
    return evolve(
        state,
        succeeded=state.succeeded + ended.count(ChildPhase.SUCCEEDED),
        failed=state.failed + ended.count(ChildPhase.FAILED),
        cancelled=state.cancelled + ended.count(ChildPhase.CANCELLED),
    )


def _ended(spec: ArraySpec, state: ArrayState, alive: int, lost: int, now: float) -> ArrayState:
    """Decide whether and how the array ends."""
    without = state.failed + state.cancelled
    if state.succeeded >= spec.needed:
        state = stop(state, SUCCEEDED, f"{state.succeeded} of {spec.total} tasks succeeded")
    elif spec.max_failures is not None and state.failed > spec.max_failures:
        failed = f"{state.failed} of {spec.total} tasks failed"
        state = stop(state, FAILED, f"{failed}, more than maxFailures ({spec.max_failures})")
    elif spec.at_least is not None and spec.total - without < spec.at_least:
        state = stop(state, FAILED, f"{without} of {spec.total} tasks did not succeed, and {spec.at_least} must")
    elif state.made == spec.total and not alive and not lost:
        state = stop(state, FAILED if state.failed else CANCELLED, f"{without} of {spec.total} tasks did not succeed")
    if state.status or not state.stopping or alive:
        return state
    return evolve(state, status=state.stopping, ended_at=now)
