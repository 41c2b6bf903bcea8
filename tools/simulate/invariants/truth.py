"""Checks what really runs, at the moment a machine starts, sees or forgets something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.lifecycle import RUN_TERMINAL, RunStatus
from holdfast.domain.placement.fit import Shape, on_nodes
from tools.simulate.clocks import A_MOMENT_S
from tools.simulate.promises import refuse

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from holdfast.domain.job import Resources
    from holdfast.ports.engine import RunOrder
    from tools.simulate.clocks import Readings
    from tools.simulate.invariants.record import Record
    from tools.simulate.machines.programs import Program


class TruthChecks:
    """What must hold of programs."""

    def __init__(
        self, record: Record, capacity: Mapping[tuple[str, str], Resources], controllers_clocks: Readings
    ) -> None:
        """Remember what was committed, every node's capacity by machine and name, and what due times are read from."""
        self._clocks = controllers_clocks
        self._record = record
        self._capacity = capacity
        self.cluster: Collection[str] = ()
        """Names of what is counted for the whole cluster, and not on nodes."""

    def ordered(self, order: RunOrder) -> None:
        """Check an order as its machine takes it."""
        if order.uid not in self._record.runs:
            refuse("stored-first", f"{order.uid} is started and is not stored")
        if self._record.runs[order.uid].status is RunStatus.RUNNING:
            refuse("started-once", f"{order.uid} was seen to run, is missing, and is started again")

    def forgotten(self, uid: str) -> None:
        """Check a result as it is forgotten."""
        run = self._record.runs.get(uid)
        if run is None or run.status not in RUN_TERMINAL:
            refuse("stored-last", f"the result of {uid} is forgotten while it is stored as {run and run.status}")

    def started(self, program: Program, used: Mapping[tuple[str, str], Resources]) -> None:
        """Check a program that has just started."""
        order = program.order
        before = self._record.attempts[order.job_id].get(order.attempt - 1)
        due = before.retry_at if before is not None else None
        due = self._record.begun_anew.get((order.job_id, order.attempt - 1), due)
        early = due is not None and self._clocks.latest(program.started_at) < due - A_MOMENT_S
        if early and order.job_id not in self._record.released:
            refuse("back-off-waits", f"{order.uid} started at {program.started_at:.3f}, {due:.3f} is when it is due")
        key = (program.machine, order.node)
        asked = on_nodes(Shape(used[key]), self.cluster).request
        if not asked.fits(self._capacity[key]):
            refuse("no-node-overloaded", f"{key} runs {asked} and has {self._capacity[key]}")
