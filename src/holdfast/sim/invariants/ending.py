"""Checks a world in which nothing goes wrong any more: everything must come to its end, and nothing may be left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.dialects.codec import load_spec
from holdfast.domain.job import JobState
from holdfast.domain.placement import Place, ever_fits
from holdfast.domain.verdict import shape_of
from holdfast.sim.promises import refuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.controller.world import World
    from holdfast.domain.job import Job
    from holdfast.ports.store import Store
    from holdfast.sim.invariants.record import Record
    from holdfast.sim.machine import Machine
    from holdfast.sim.programs import Programs


class EndChecks:
    """What must hold in the end."""

    def __init__(self, record: Record, programs: Programs, machines: Sequence[Machine]) -> None:
        """Remember what was committed, what ran, and where."""
        self._record = record
        self._programs = programs
        self._machines = machines
        self._places = [
            Place((machine.name, node.name), node.capacity, node.labels)
            for machine in machines
            for node in machine.all_nodes()
        ]

    def settled(self) -> bool:
        """Whether every job has ended or waits for good reason, and all machines are empty."""
        return all(self._may_wait(job) for job in self._record.unfinished()) and not self._left()

    def _may_wait(self, job: Job) -> bool:
        if job.state is JobState.HELD:
            return True
        shape = shape_of(job, load_spec(job.spec).node_selector)
        return job.state in {JobState.QUEUED, JobState.BACKOFF} and not ever_fits(shape, self._places)

    def _left(self) -> list[str]:
        return [uid for machine in self._machines for uid in machine.observe()]

    def check(self, world: World | None, store: Store) -> None:
        """Check the end of a world, with the controller's memory and its store."""
        for job in self._record.unfinished():
            if not self._may_wait(job):
                attempts = self._record.attempts[job.id]
                refuse("all-ends", f"job {job.id} is still {job.state} ({job.reason}): {attempts.get(job.attempt)}")
        if self._left() or any(True for _ in self._programs.live()):
            refuse("nothing-left", f"machines still have {self._left()}")
        if world is None:
            refuse("all-ends", "there is no controller in the end")
        if world.ledger.charged() or world.active or world.changes or store.requests(limit=1):
            refuse("nothing-left", f"the controller still has {dict(world.ledger.charged())}, {list(world.active)}")
        self._record.compare(store)
