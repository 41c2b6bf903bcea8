"""Arrays: what the controller does for them beyond the rules of all owners."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.compiled.codec import dump_spec, load_array
from holdfast.controller.workloads.owners import OwnerRules, Owners
from holdfast.domain.events.registry import EventRecord
from holdfast.domain.events.workloads import ArrayDeleted, ArrayEnded
from holdfast.domain.record import evolve
from holdfast.domain.terms.workload_kinds import ARRAY
from holdfast.domain.workloads.array.model import Array, ArraySpec
from holdfast.domain.workloads.array.reconcile import CANCELLED, lost_among, reconcile, stop, waits_for_lost
from holdfast.domain.workloads.base import Result
from holdfast.domain.workloads.dependencies import OnUnmet, check
from holdfast.errors import Internal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.controller.workloads.memory import Work
    from holdfast.domain.job import Job
    from holdfast.domain.workloads.array.model import ArrayState
    from holdfast.domain.workloads.array.reconcile import ArrayResult
    from holdfast.domain.workloads.children import Child
    from holdfast.ports.requests import Request


def _reconcile(spec: ArraySpec, row: Array, children: Sequence[Child], now: float) -> ArrayResult:
    return reconcile(spec, row.state, children, now, lambda index: dump_spec(spec.task(index, row.origins)))


RULES = OwnerRules(Array, lambda row: load_array(row.spec), _reconcile)


def _without_counts(row: Array) -> Array:
    return row if row.ended else evolve(row, state=row.state.counted({}), updated_at=0.0)


class Arrays(Owners[Array, ArraySpec]):
    """All arrays."""

    def take_in(self, row: Array, jobs: Iterable[Job]) -> None:
        """Add an array; the store counts its ended tasks."""
        if not row.ended:
            row = evolve(row, state=row.state.counted(self._store.count_by_state(row.id)))
        super().take_in(row, jobs)

        self._wait(self.works[row.id])

    def _wait(self, work: Work[Array, ArraySpec]) -> None:
        """Have an array looked at when the state of something it waits for changes."""
        spec, state = work.spec, work.row.state
        if spec.job.after and not state.made:
            self._state.waits.watch(work.row.id, ARRAY, spec.job.after, spec.not_waited_for(state))

    def update(self, work: Work[Array, ArraySpec], payload: str, change: str, now: float) -> None:
        """Change an array's limits; its dependencies stay."""
        super().update(work, payload, change, now)
        self._wait(work)

    def decide(self, work: Work[Array, ArraySpec], now: float) -> ArrayResult:
        """Apply the rules once all dependencies of the array are satisfied."""
        spec, state, after = work.spec, work.row.state, work.spec.job.after
        if after and not (state.made or state.stopping or state.status):
            if state.held:
                return Result(state=state)  # When it is released, it waits for what has not happened by then.
            met, waits = spec.not_waited_for(state), self._state.waits
            waits.look_up(self._store, self._state.changes)
            outlook = check(after, met, waits.standings(after, met))
            if outlook.unmet is OnUnmet.HOLD:
                return Result(state=evolve(state, met=outlook.met, held=outlook.reason))
            if outlook.unmet is None and not outlook.ready:
                return Result(state=state if outlook.met == met else evolve(state, met=outlook.met))
            waits.leave(work.row.id, after)
            if outlook.unmet is not None:
                state = stop(state, CANCELLED, outlook.reason)
        return self._look_at_tasks(work, state, now)

    def _look_at_tasks(self, work: Work[Array, ArraySpec], state: ArrayState, now: float) -> ArrayResult:
        """Apply the rules.

        Raises:
            Internal: Tasks of the array cannot be found or read, so it can never end.
        """
        children = list(work.children.values())
        result = _reconcile(work.spec, evolve(work.row, state=state), children, now)
        if waits_for_lost(state, children, result):
            message = f"of its {state.made} tasks {lost_among(state, children)} cannot be found or read"
            raise Internal(message, hint="their rows are damaged: cancel it, or restore the database from a backup")
        return result

    def forget(self, work: Work[Array, ArraySpec]) -> None:
        """Stop waiting on behalf of an array that is over."""
        if work.spec.job.after:
            self._state.waits.leave(work.row.id, work.spec.job.after)

    def put(self, work: Work[Array, ArraySpec], row: Array) -> None:
        """Change an array's record. A change of counts alone is not stored, because the specification may be large.

        Those notified of a hold are notified whatever caused it.
        """
        if _without_counts(row) == _without_counts(work.row):
            work.row = row
            return
        begins = row.state.held and not (work.row.state.held or row.state.stopping)
        work.row = row
        self._state.put_workload(row, self.told_of(row, row.updated_at) if begins else ())

    def hold(self, work: Work[Array, ArraySpec], request: Request, now: float, *, held: bool) -> None:
        """Keep tasks from starting, or let them start; running tasks continue."""
        why = (request.reason or "held by a user") if held else ""
        self.put(work, evolve(work.row, state=evolve(work.row.state, held=why), updated_at=now))

    def cancel(self, work: Work[Array, ArraySpec], reason: str, now: float) -> None:
        """Have an array create no more tasks, and cancel those it has."""
        state = stop(work.row.state, CANCELLED, reason)
        if state is not work.row.state:
            self.put(work, evolve(work.row, state=state, updated_at=now))

    def tell(self, row: Array, what: str, now: float) -> None:
        """Emit the event of an array that has ended or is deleted."""
        if what == "ended":
            state = row.state
            counts = (state.succeeded, state.failed, state.cancelled)
            event = ArrayEnded(row.id, row.name, state.status, *counts, state.reason)
            self._state.emit(EventRecord(None, now, event, row.group, row), self.told_of(row, now))
        elif what == "deleted":
            self._state.emit(EventRecord(None, now, ArrayDeleted(row.id, row.name), row.group, row))
