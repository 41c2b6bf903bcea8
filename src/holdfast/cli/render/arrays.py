"""How arrays are printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.render.words import age, pairs, when
from holdfast.domain.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.render.output import Output
    from holdfast.cli.render.words import Table
    from holdfast.wire.arrays import ArrayView, ArrayWhy, FailureGroupView


def array_table(arrays: Sequence[ArrayView], *, now_s: float, wide: bool = False) -> Table:
    """Tabulate arrays, one a row; ages are counted to ``now_s``, in seconds since the epoch."""
    if wide:
        return _WIDE, [_wide(array) for array in arrays]
    rows = [
        (
            array.name,
            array.state,
            f"{_over(array)}/{array.total}",
            str(array.running),
            str(array.failed),
            eta(array),
            age(array.created_at, now_s),
            reason_of(array),
        )
        for array in arrays
    ]
    return ("NAME", "STATE", "DONE", "RUNNING", "FAILED", "ETA", "AGE", "REASON"), rows


_WIDE = (
    *("ID", "NAME", "QUEUE", "STATE", "TOTAL", "WAITING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED", "ETA"),
    *("CREATED", "ENDED", "USER", "LABELS", "REASON"),
)


def _wide(array_view: ArrayView) -> tuple[str, ...]:
    counts = (
        array_view.total,
        array_view.waiting,
        array_view.running,
        array_view.succeeded,
        array_view.failed,
        array_view.cancelled,
    )
    times = (when(array_view.created_at), when(array_view.ended_at))
    shared = (*times, array_view.submitted_by, pairs(array_view.labels), reason_of(array_view))
    return (
        array_view.id,
        array_view.name,
        array_view.queue,
        array_view.state,
        *map(str, counts),
        eta(array_view),
        *shared,
    )


def reason_of(array: ArrayView) -> str:
    """Write an array's reason, and which array it reruns."""
    of = "" if array.rerun_of is None else f"rerun of {array.rerun_of.name}: {array.indices}"
    return "; ".join(filter(None, (array.reason, of)))


def _over(array: ArrayView) -> int:
    return array.succeeded + array.failed + array.cancelled


def with_arrays(table: Table, arrays: Sequence[ArrayView], *, now_s: float) -> Table:
    """Add arrays to a table of jobs, one a row."""
    columns, rows = table
    facts = [
        {
            "ID": array.id,
            "NAME": array.name,
            "QUEUE": array.queue,
            "STATE": array.state,
            "SUBMITTED": when(array.created_at),
            "AGE": age(array.created_at, now_s),
            "USER": array.submitted_by,
            "LABELS": pairs(array.labels),
            "REASON": progress(array),
        }
        for array in arrays
    ]
    return columns, [*rows, *(tuple(shown_facts.get(column, "") for column in columns) for shown_facts in facts)]


def eta(array: ArrayView) -> str:
    """Write about how long an array still takes; empty if unknown."""
    return "" if array.eta_s is None else format_duration(max(1, round(array.eta_s)))


def progress(array: ArrayView) -> str:
    """Write an array's progress in one line."""
    parts = [f"{_over(array)} of {array.total} tasks ended"]
    counts = ((array.running, "running"), (array.failed, "failed"), (array.cancelled, "cancelled"))
    parts += [f"{count} {word}" for count, word in counts if count]
    left = eta(array)
    return ", ".join([*parts, *([f"about {left} left"] if left else [])])


def _example(group: FailureGroupView) -> str:
    """Return the example of a group without the decision, which is printed beside it."""
    return group.example.replace(f"; {group.decision}", "", 1).removesuffix(".")


def print_array_why(why: ArrayWhy, output: Output) -> None:
    """Print an array's state, its failed tasks by their failure, and its cancelled tasks by their reason."""
    output.heading(why.headline)
    for group in why.groups:
        code = "" if group.exit_code is None else f", exit code {group.exit_code}"
        tasks = "task" if group.count == 1 else "tasks"
        output.text("")
        output.paragraph(f"{group.count} {tasks} failed with {group.cause or 'no known cause'}{code}: {group.indexes}.")
        output.paragraph(f"Decided: {group.decision or 'nothing'}. Example: {_example(group)}.")
    for cancelled in why.cancelled:
        tasks = "task was" if cancelled.count == 1 else "tasks were"
        output.text("")
        output.paragraph(f"{cancelled.count} {tasks} cancelled: {cancelled.indexes}. Example: {cancelled.example}.")
    if why.omitted:
        output.text("")
        output.paragraph(f"{why.omitted} earlier failures were not examined.")
    if why.reruns:
        output.text("")
        output.paragraph(f"Rerun in: {', '.join(rerun.name for rerun in why.reruns)}.")
    shown = [*(group.indexes for group in why.groups), *(group.indexes for group in why.cancelled)]
    if shown:
        first = shown[0].partition(",")[0].partition("-")[0]
        output.text("")
        output.paragraph(f"For one task: holdfast why {why.array.name}-{first}")
