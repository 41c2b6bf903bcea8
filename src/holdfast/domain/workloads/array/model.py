"""Arrays: their specification, their stored record, and the specification of each task.

Tasks are jobs in their own right: each is retried by its own policies. An array creates them as places become free.
"""

from __future__ import annotations

import re
from itertools import chain, pairwise
from math import prod
from typing import TYPE_CHECKING

from holdfast.domain.job import JobState
from holdfast.domain.notifier import Notify
from holdfast.domain.record import Struct, evolve
from holdfast.domain.terms import kinds
from holdfast.domain.terms.states import ArrayPhase
from holdfast.domain.terms.workload_kinds import ARRAY
from holdfast.domain.workloads.base import Owner
from holdfast.domain.workloads.dependencies import Dependency, DependencyKind, waits_for
from holdfast.domain.workloads.spec import JobSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

MOST_TASKS = 1_000_000
MOST_WAITING = 128
"""How many tasks wait for a place at once; the others are created later."""
LINE = "line"
"""The parameter that holds a line of a file."""
INDEX = "index"
"""The placeholder for a task's index in its command."""
_NOT_IN_A_VARIABLE = re.compile(r"[^A-Z0-9]")


class Indexes(Struct, frozen=True):
    """A range of indexes."""

    first: int
    last: int
    step: int = 1

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def numbers(self) -> range:
        """The indexes as a Python range."""
        return range(self.first, self.last + 1, self.step)


class Some(Struct, frozen=True):
    """Some of an array's tasks."""

    indexes: tuple[Indexes, ...]
    """In increasing order."""
    total: int
    """Their number, which would take long to count."""


class Origin(Struct, frozen=True):
    """An array whose tasks another one reruns."""

    id: str
    name: str


class Axis(Struct, frozen=True):
    """A parameter and its values."""

    name: str
    values: tuple[str, ...]


class ArraySpec(Struct, frozen=True):
    """A validated array."""

    job: JobSpec
    """The specification of each task, before its index and parameters are filled in."""
    indexes: tuple[Indexes, ...] = ()
    """The indexes of an array without parameters."""
    axes: tuple[Axis, ...] = ()
    """Every combination of their values is a task; the last changes fastest."""
    max_running: int | None = None
    """The most tasks that run or wait at once, including those that wait for a retry."""
    max_failures: int | None = None
    """With more failed tasks than this, the others are cancelled; ``None`` is no limit."""
    at_least: int | None = None
    """How many tasks must succeed for the array to succeed; ``None`` is all. It ends as soon as they have."""
    notify: tuple[Notify, ...] = ()
    """The notifiers of the array; its tasks have none."""
    only: Some | None = None
    """In a rerun: the only tasks, with their indexes in the original array."""

    @property
    def name(self) -> str:
        """Its name, which is that of its job."""
        return self.job.name

    @property
    def size(self) -> int:
        """The number of its tasks, including those left out."""
        return prod(len(axis.values) for axis in self.axes) if self.axes else sum(map(len, self.indexes))

    @property
    def total(self) -> int:
        """The number of its tasks."""
        return self.size if self.only is None else self.only.total

    @property
    def needed(self) -> int:
        """The number of tasks that must succeed."""
        return self.total if self.at_least is None else self.at_least

    def indexes_at(self, first: int, end: int) -> Sequence[int]:
        """Return the indexes of the tasks at positions ``first`` to ``end``, from 0, without ``end``."""
        indexes: list[int] = []
        for part in self._parts:
            numbers = part.numbers
            indexes += numbers[max(0, first) : max(0, end)]
            first, end = first - len(numbers), end - len(numbers)
            if end <= 0:
                break
        return indexes

    def every_index(self) -> Iterator[int]:
        """Iterate over all indexes in order."""
        return chain.from_iterable(part.numbers for part in self._parts)

    @property
    def _parts(self) -> Sequence[Indexes]:
        if self.only is not None:
            return self.only.indexes
        return (Indexes(0, self.size - 1),) if self.axes else self.indexes

    def parameters(self, index: int) -> Mapping[str, str]:
        """Return the parameters of a task by name."""
        by_axis: dict[str, str] = {}
        for axis in reversed(self.axes):
            index, place = divmod(index, len(axis.values))
            by_axis[axis.name] = axis.values[place]
        return dict(reversed(by_axis.items()))

    def task(self, index: int, origins: Sequence[Origin] = ()) -> JobSpec:
        """Return the specification of a task, with ``{name}``, ``{index}`` and, for lines of a file, ``{}`` filled in.

        Args:
            index: The task's index.
            origins: The arrays whose task of that index it reruns, the latest first; its variables are as they were
                there.
        """
        parameters = self.parameters(index)
        values = {INDEX: str(index), **parameters}
        if LINE in parameters:
            values[""] = parameters[LINE]
        pattern = re.compile("|".join(re.escape(f"{{{name}}}") for name in values))

        def filled(text: str) -> str:
            return pattern.sub(lambda match: values[match[0][1:-1]], text)

        variables = {
            "HOLDFAST_ARRAY_INDEX": str(index),
            "HOLDFAST_ARRAY_NAME": origins[-1].name if origins else self.name,
            "HOLDFAST_ARRAY_SIZE": str(self.size),
        }
        variables |= {parameter_variable(name): value for name, value in parameters.items()}
        return evolve(
            self.job,
            name=task_name(self.name, index),
            command=tuple(map(filled, self.job.command)),
            env={**{name: filled(value) for name, value in self.job.env.items()}, **variables},
            working_dir=None if self.job.working_dir is None else filled(self.job.working_dir),
            after=self.task_waits_for(index),
            checkpoints_of=tuple(task_id(origin.id, origin.name, index) for origin in origins),
        )

    def not_waited_for(self, state: ArrayState) -> tuple[int, ...]:
        """Return the positions of the dependencies that the array as a whole does not wait for, or no longer."""
        by_index = (place for place, dependency in enumerate(self.job.after) if dependency.by_index)
        return tuple(sorted({*state.met, *by_index}))

    def task_waits_for(self, index: int) -> tuple[Dependency, ...]:
        """Return a task's own dependencies, on tasks of the same index; the array as a whole waits for the others."""
        return tuple(
            evolve(
                dependency,
                target=DependencyKind.JOB,
                name=task_name(dependency.name, index),
                id=task_id(dependency.id, dependency.name, index),
                array=dependency.id,
                by_index=False,
            )
            for dependency in self.job.after
            if dependency.by_index
        )


def spans(indexes: Iterable[int]) -> Some:
    """Write indexes as ranges."""
    ordered = sorted(set(indexes))
    starts = [
        0,
        *(place for place, (index, other) in enumerate(pairwise(ordered), 1) if other != index + 1),
        len(ordered),
    ]
    parts = (Indexes(ordered[first], ordered[end - 1]) for first, end in pairwise(starts) if first < end)
    return Some(tuple(parts), len(ordered))


def parameter_variable(name: str) -> str:
    """Name the environment variable of a parameter."""
    return f"HOLDFAST_PARAM_{_NOT_IN_A_VARIABLE.sub('_', name.upper())}"


def task_name(array: str, index: int) -> str:
    """Name a task."""
    return f"{array}-{index}"


def task_id(array: str, name: str, index: int) -> str:
    """Return the id of a task, from the id and the name of its array."""
    return f"{array}-{task_name(name, index)}"


class ArrayState(Struct, frozen=True):
    """The progress of an array."""

    made: int = 0
    """How many tasks were created, in order of their positions."""
    succeeded: int = 0
    """How many tasks did; until the array has ended, this is only counted in memory, not stored."""
    failed: int = 0
    cancelled: int = 0
    stopping: str = ""
    """How it will end once its tasks have; no more tasks are created then."""
    status: str = ""
    """``Succeeded``, ``Failed`` or ``Cancelled``, once it has ended."""
    reason: str = ""
    """Why it ended, or will end, like this."""
    ended_at: float | None = None
    met: tuple[int, ...] = ()
    """Positions of the dependencies that it no longer waits for."""
    held: str = ""
    """Why it is held: none of its tasks starts or is created until it is released."""

    def counted(self, jobs: Mapping[str, int]) -> ArrayState:
        """Return the state with its tasks counted by the states of their jobs."""
        counts = (jobs.get(state, 0) for state in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED))
        succeeded, failed, cancelled = counts
        return evolve(self, succeeded=succeeded, failed=failed, cancelled=cancelled)


class Array(Owner, frozen=True, kw_only=True):
    """The stored record of an array."""

    state: ArrayState = ArrayState()
    origins: tuple[Origin, ...] = ()
    """In a rerun: the array whose tasks it reruns, the origin of that one, and so on."""

    kind = ARRAY
    info = kinds.ARRAY
    noun = info.noun

    def phase(self, spec: ArraySpec) -> str:
        """Return its phase."""
        state = self.state
        if self.deleting:
            return ArrayPhase.DELETING
        if state.status or state.stopping:
            return state.status or ArrayPhase.STOPPING
        if state.held:
            return ArrayPhase.HELD
        if state.made:
            return ArrayPhase.RUNNING
        return ArrayPhase.WAITING if self.waits_for(spec) else ArrayPhase.QUEUED

    def waits_for(self, spec: ArraySpec) -> str:
        """Say what it waits for as a whole, before its tasks are created."""
        after, state = spec.job.after, self.state
        met = spec.not_waited_for(state)
        began = state.made or state.stopping or state.status
        return "" if began or len(met) == len(after) else waits_for(after, met)

    def reason(self, spec: ArraySpec) -> str:
        """Say why it is in its phase: why it ended, why it is held, or what it waits for."""
        held = self.state.held if self.phase(spec) == ArrayPhase.HELD else ""
        return self.state.reason or held or self.waits_for(spec)

    @property
    def ended(self) -> str:
        """How it ended; empty until then."""
        return self.state.status

    @property
    def ended_because(self) -> str:
        """Why it ended like this."""
        return self.state.reason

    @property
    def held_because(self) -> str:
        """Why it is held; empty if it is not."""
        return self.state.held

    @property
    def counts(self) -> Mapping[str, int]:
        """The numbers of its tasks by how they ended."""
        state = self.state
        return {"succeeded": state.succeeded, "failed": state.failed, "cancelled": state.cancelled}
