"""Reads ``array`` of a job's manifest: its tasks, and when the whole succeeds or fails."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from holdfast.dialects.native.envelope import read_job_name
from holdfast.dialects.reading import LONGEST_NAME, Fields, shown
from holdfast.dialects.scalars import write_number
from holdfast.domain.record import Struct, evolve
from holdfast.domain.terms.settings import UnknownEnd
from holdfast.domain.workloads.array.model import INDEX, LINE, MOST_TASKS, ArraySpec, Axis, Indexes, task_name
from holdfast.errors import InvalidManifest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.workloads.spec import JobSpec

MOST_PARAMETERS = 32
LARGEST_INDEX = 2**31 - 1
_LONGEST_INDICES = 65_536
_LONGEST_LINE = 131_071
_RANGE = re.compile(r"(\d{1,10})(?:-(\d{1,10})(?::(\d{1,10}))?)?")
_SPAN = re.compile(r"(-?\d{1,10})\.\.(-?\d{1,10})(?::(\d{1,10}))?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}")
_SYNTAX = "such as 0-99, 0-99:10 or 1,5,7-9"
_RESERVED = (INDEX, LINE)


class ArrayFields(Struct, frozen=True):
    """The fields of an array, without its job."""

    indexes: tuple[Indexes, ...] = ()
    axes: tuple[Axis, ...] = ()
    max_running: int | None = None
    max_failures: int | None = None
    at_least: int | None = None
    on_unknown_end: UnknownEnd | None = None


def read_array(spec: Fields) -> ArrayFields | None:
    """Read ``array``, where there is one."""
    part = spec.nested("array")
    if part is None:
        return None
    ways = [name for name in ("indices", "matrix", "lines") if part.has(name)]
    indexes, axes = _read_indexes(part), _read_axes(part)
    if len(ways) != 1:
        message = "needs indices, matrix or lines" if not ways else f"{' and '.join(ways)} cannot be set together"
        part.problem("", message, allowed=("indices", "matrix", "lines"))
    total = math.prod(len(axis.values) for axis in axes) if axes else sum(map(len, indexes))
    if total > MOST_TASKS:
        part.problem(ways[0] if ways else "", f"makes {total} tasks; at most {MOST_TASKS} are allowed")
    fields_read = ArrayFields(
        indexes,
        axes,
        part.integer("maxRunning", low=1, high=MOST_TASKS),
        part.integer("maxFailures", low=0, high=MOST_TASKS),
        _read_success(part, total),
        part.choice("onUnknownEnd", UnknownEnd),
    )
    part.finish()
    return fields_read


def arrayed(job: JobSpec, array: ArrayFields, metadata: Fields) -> ArraySpec:
    """Combine an array with its job."""
    limits = (array.max_running, array.max_failures, array.at_least)
    task = evolve(job, notify=(), array_on_unknown_end=array.on_unknown_end)
    array_spec = ArraySpec(task, array.indexes, array.axes, *limits, job.notify)
    _check_task_names(array_spec, metadata)
    return array_spec


def renamed(spec: ArraySpec, name: str) -> ArraySpec:
    """Return an array with another name.

    Raises:
        InvalidManifest: It cannot have that name.
    """
    fields = Fields({"name": name}, "", [])
    renamed_spec = evolve(spec, job=evolve(spec.job, name=name))
    if read_job_name(fields) is not None:
        _check_task_names(renamed_spec, fields)
    if fields.problems:
        hint = "give the new array another name (--name)"
        raise InvalidManifest(problems=[evolve(problem, hint=problem.hint or hint) for problem in fields.problems])
    return renamed_spec


def read_some_indexes(text: str) -> frozenset[int]:
    """Read a selection of an array's tasks, such as ``3,7-9``.

    Raises:
        InvalidManifest: It is not valid; with every problem.
    """
    fields = Fields({"indices": text}, "", [])
    indexes = _read_indexes(fields)
    if fields.problems:
        raise InvalidManifest(problems=fields.problems)
    return frozenset(index for part in indexes for index in part.numbers)


def _check_task_names(spec: ArraySpec, metadata: Fields) -> None:
    last = max((part.last for part in spec.indexes), default=spec.size - 1)
    if (over := len(task_name(spec.name, last)) - LONGEST_NAME) > 0:
        message = (
            f"name {shown(spec.name)} is {over} characters too long for tasks named such as {shown(f'...-{last}')}"
        )
        metadata.problem("name", message)


def _read_indexes(part: Fields) -> tuple[Indexes, ...]:
    value = part.raw("indices")
    single = isinstance(value, int) and not isinstance(value, bool)
    text = str(value) if single else part.text("indices", longest=_LONGEST_INDICES)
    indexes: list[Indexes] = []
    seen: set[int] = set()
    for word in text.split(",") if text else ():
        read = _range_of(word.strip())
        if read is None or read.last < read.first or read.step < 1 or read.last > LARGEST_INDEX:
            part.problem("indices", f"{shown(word)} is not a range of indexes", hint=_SYNTAX)
        elif len(read) > MOST_TASKS:
            part.problem("indices", f"{shown(word)} has {len(read)} indexes; at most {MOST_TASKS} are allowed")
        elif not seen.isdisjoint(numbers := range(read.first, read.last + 1, read.step)):
            part.problem("indices", f"{shown(word)} holds an index that was named before")
        else:
            seen.update(numbers)
            indexes.append(read)
    return tuple(indexes)


def _range_of(word: str) -> Indexes | None:
    match = _RANGE.fullmatch(word)
    if match is None:
        return None
    first, last, step = match.groups()
    return Indexes(int(first), int(last or first), int(step or 1))


def _read_axes(part: Fields) -> tuple[Axis, ...]:
    lines = part.texts("lines", most=MOST_TASKS, longest=_LONGEST_LINE)
    if lines is not None and not lines:
        part.problem("lines", "is empty", hint="there is nothing to do")
    axes = [] if not lines else [Axis(LINE, tuple(lines))]
    matrix = part.nested("matrix")
    if matrix is None:
        return tuple(axes)
    if not 0 < len(matrix.value) <= MOST_PARAMETERS:
        matrix.problem("", f"has {len(matrix.value)} parameters", allowed=(f"1 to {MOST_PARAMETERS}",))
        return ()
    for name in matrix.value:
        if not _NAME.fullmatch(str(name)) or name in _RESERVED:
            hint = f"letters, digits, '_' and '-', not starting with a digit; not {' or '.join(_RESERVED)}"
            matrix.problem(str(name), f"{shown(name)} is not a parameter's name", hint=hint)
        elif values := _read_values(matrix, name):
            axes.append(Axis(name, values))
    return tuple(axes)


def _read_values(matrix: Fields, name: str) -> tuple[str, ...]:
    value = matrix.raw(name)
    listed: Sequence[object] = value if isinstance(value, list) else [value]
    if not listed:
        matrix.problem(name, "has no values", hint="a parameter without values makes no tasks")
    values: list[str] = []
    for place, item in enumerate(listed):
        values += _values_of(matrix, f"{name}[{place}]" if isinstance(value, list) else name, item)
    return tuple(values)


def _values_of(matrix: Fields, at: str, value: object) -> Sequence[str]:
    """Read one value of a parameter, or several: ``1..5``."""
    if isinstance(value, bool):
        return [str(value).lower()]
    if isinstance(value, int | float):
        return [write_number(value)]
    if not matrix.check_text(at, value):
        return []
    match = _SPAN.fullmatch(str(value))
    if match is None:
        return [str(value)]
    first, last, step = int(match[1]), int(match[2]), int(match[3] or 1)
    numbers = range(first, last + 1, step) if step else range(0)
    if not 0 < len(numbers) <= MOST_TASKS:
        matrix.problem(at, f"{shown(value)} has {len(numbers)} values", allowed=(f"1 to {MOST_TASKS}",))
        return []
    return list(map(str, numbers))


def _read_success(part: Fields, total: int) -> int | None:
    """Read ``success``: ``all``, ``any``, or how many tasks must succeed."""
    value = part.raw("success")
    if value is None or value == "all":
        return None
    if value == "any":
        return 1
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= max(total, 1):
        return value
    part.problem("success", f"{shown(value)} is not one of its values", allowed=("all", "any", f"1 to {max(total, 1)}"))
    return None
