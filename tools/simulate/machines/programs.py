"""The truth about programs: which ones really ran, where and when.

Written by the machines (``machine``) and read by the invariants; nothing under test can see or change it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.domain.job import Resources
from tools.simulate.promises import refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from holdfast.domain.failure import RunOutcome
    from holdfast.ports.engine import Observation, RunOrder


@dataclass(slots=True)
class Program:
    """One program that was started."""

    order: RunOrder
    machine: str
    started_at: float
    ended_at: float | None = None
    well: bool = False
    """Whether it ended by itself with code 0."""
    wiped: bool = False
    """Whether its machine forgot everything after it was started."""

    @property
    def placement(self) -> str:
        """The attempt and dispatch it belongs to: the first and the last number of its uid."""
        return f"{self.order.attempt}.{self.order.uid.rpartition('-')[2]}"


class Programs:
    """All programs that ever ran."""

    def __init__(self) -> None:
        """Begin with nothing started."""
        self.on_start: Callable[[Program], None] = lambda _: None
        """Called with each program that starts."""
        self.on_end: Callable[[Program, RunOutcome], None] = lambda *_: None
        """Called with each program that ends, unless its machine forgot it, and how."""
        self.by_uid: dict[str, Program] = {}
        self._live: dict[str, dict[str, Program]] = {}
        self._beside: list[tuple[str, Program, Program]] = []
        self._over: list[str] = []
        self._of_pods: dict[str, list[Program]] = {}
        self.pods: Collection[str] = ()
        """Ids of jobs whose programs come and go one by one, each in a place of its own."""

    def seen(self, machine: str, order: RunOrder, observation: Observation) -> None:
        """Take in how a machine sees one of its runs now."""
        program = self.by_uid.get(order.uid)
        outcome = observation.outcome
        if observation.started_at is not None and (program is None or program.wiped):
            program = self._started(machine, order, observation.started_at)
        if program is not None and outcome is not None and program.ended_at is None:
            self._ended(program, outcome.ended_at, well=outcome.succeeded)
            self.on_end(program, outcome)

    def again(self, order: RunOrder) -> None:
        """Note that a machine was asked to plan a run; twice is once too often."""
        known = self.by_uid.get(order.uid)
        if known is not None and not (known.wiped and known.ended_at is not None):
            refuse("started-once", f"{order.uid} was started at {known.started_at:.3f} and begins again")

    def wiped(self, machine: str, now: float) -> int:
        """End everything on a machine that is lost with all it knew; returns how many programs that killed."""
        killed = 0
        for program in self.by_uid.values():
            if program.machine == machine:
                program.wiped = True
                if program.ended_at is None:
                    self._ended(program, now, well=False)
                    killed += 1
        return killed

    def judge_starts(self) -> None:
        """Judge the programs that seemed to start beside others, once every machine has told what ended by now."""
        for promise, program, other in self._beside:
            if other.ended_at is None or other.ended_at > program.started_at:
                since = f"since {other.started_at:.3f}"
                where = f"{program.order.uid} on {program.machine} at {program.started_at:.3f}"
                refuse(promise, f"{where} starts beside {other.order.uid} on {other.machine} {since}")
        self._beside.clear()
        for job_id in self._over:
            if self._live.get(job_id):
                refuse("nothing-outlives", f"{job_id} is over, and {list(self._live[job_id])} run")
        self._over.clear()

    def suspect(self, promise: str, program: Program, other: Program) -> None:
        """Break a promise if a program that starts now really starts beside another; ``judge_starts`` knows."""
        self._beside.append((promise, program, other))

    def must_be_gone(self, job_id: str) -> None:
        """Have it judged whether anything of a job still runs."""
        self._over.append(job_id)

    def live(self) -> Iterator[Program]:
        """Go through what runs now."""
        for programs in self._live.values():
            yield from programs.values()

    def of(self, job_id: str, attempt: int, dispatch: int) -> list[Program]:
        """List the programs of one placement of an attempt."""
        beginning, end = f"{job_id}-{attempt}-", f"-{dispatch}"
        return [each for uid, each in self.by_uid.items() if uid.startswith(beginning) and uid.endswith(end)]

    def of_attempt(self, job_id: str, attempt: int) -> list[Program]:
        """List the programs of an attempt at a job made of pods."""
        return [each for each in self._of_pods.get(job_id, ()) if each.order.attempt == attempt]

    def used(self) -> dict[tuple[str, str], Resources]:
        """Sum what really runs, by machine and node."""
        used: dict[tuple[str, str], Resources] = {}
        for program in self.live():
            key = (program.machine, program.order.node)
            used[key] = used.get(key, Resources(0)) + program.order.resources
        return used

    def _started(self, machine: str, order: RunOrder, at: float) -> Program:
        program = Program(order, machine, at)
        self.by_uid[order.uid] = program
        beside = self._live.setdefault(order.job_id, {})
        for other in beside.values():
            if self._excludes(program, other):
                self.suspect("never-twice", program, other)
        beside[order.uid] = program
        if order.job_id in self.pods:
            self._of_pods.setdefault(order.job_id, []).append(program)
        self.on_start(program)
        return program

    def _excludes(self, program: Program, other: Program) -> bool:
        """Whether two programs of one job may not run at once."""
        if program.order.job_id in self.pods:
            return program.order.attempt != other.order.attempt or program.order.rank == other.order.rank
        return program.placement != other.placement

    def _ended(self, program: Program, at: float, *, well: bool) -> None:
        program.ended_at, program.well = at, well
        del self._live[program.order.job_id][program.order.uid]
