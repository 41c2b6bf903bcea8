"""The frame of ``holdfast top``: lines of a given size, from the server's answer and the user's selection."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from holdfast.cli.render.arrays import progress
from holdfast.cli.render.figures import states
from holdfast.cli.render.listing import GAP, fitted
from holdfast.cli.render.references import references
from holdfast.cli.render.words import age, bar, cells, cut, ending, printable, span

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.wire.catalogue import DeviceView, NodeView
    from holdfast.wire.figures import OverviewView
    from holdfast.wire.jobs import JobOutcome

KEYS = "j/k move  w why  l logs  c cancel  r retry  / filter  q quit  ? help"
_BAR = 10
_SMALL_BAR = 6
_STYLES = {"bold": "1", "dim": "2", "selected": "7", "Failed": "31", "BackOff": "33", "Held": "33;1"}
_SHARE = 4
"""Nodes, devices and arrays each get at most one line in this many, so that jobs keep most of the screen."""
_RUNNING, _FAILING = ("NAME", "ATTEMPT", "TOOK", "NODE", "PROGRESS"), ("NAME", "STATE", "ATTEMPT", "AGE", "WHY")


@dataclass(frozen=True, slots=True)
class Rates:
    """Figures that take several looks."""

    ended_a_minute: float | None = None
    ettr: float | None = None
    """Of the last hour."""


@dataclass(frozen=True, slots=True)
class Paper:
    """The area to draw on."""

    columns: int
    lines: int
    colours: bool = True

    def style(self, text: str, name: str) -> str:
        """Style a text; without colours it is left as it is."""
        code = _STYLES.get(name)
        return f"\x1b[{code}m{text}\x1b[0m" if code and self.colours and text else text

    def line(self, text: str, style: str = "") -> str:
        """Write a line, cut to the width."""
        return self.style(cut(printable(text), self.columns), style)


def frame(view: OverviewView, rates: Rates, selected: str, now_s: float, paper: Paper) -> list[str]:
    """Show everything: counts, queues, nodes, devices, arrays, jobs that run and jobs that fail.

    Args:
        view: The server's answer.
        rates: Figures from several looks.
        selected: Id of the job that is marked.
        now_s: Seconds since the epoch, UTC.
        paper: Its size; the frame is no longer.
    """
    lines = [paper.line(_head(view, rates), "bold"), paper.line(_queues(view))]
    room = max(1, paper.lines // _SHARE - 1)
    lines += _limited([_node(item) for item in view.nodes], "nodes", room, paper)
    lines += _limited([_device(item) for item in view.devices], "devices", room, paper)
    lines += _limited([f"{item.name}  {progress(item)}" for item in view.arrays], "arrays", room, paper)
    called = references((job.id, job.name) for job in (*view.running, *view.failing))
    running = [_running(job, called, now_s) for job in view.running]
    failing = [_failing(job, called, now_s) for job in view.failing]
    left = max(0, paper.lines - len(lines) - 4)
    shares = _shares(len(running), len(failing), left)
    for title, columns, rows, jobs, most in (
        (f"RUNNING {view.jobs.get('Running', 0):,}", _RUNNING, running, view.running, shares[0]),
        (f"FAILING OR FAILED {_failed(view):,}", _FAILING, failing, view.failing, shares[1]),
    ):
        first = _first_shown([job.id for job in jobs], selected, most)
        lines.append(paper.line(title, "bold"))
        lines += _table(columns, rows[first : first + most], [job.id for job in jobs[first:]], selected, paper)
    return lines[: paper.lines]


def _failed(view: OverviewView) -> int:
    return sum(view.jobs.get(state, 0) for state in ("BackOff", "Held", "Failed"))


def _first_shown(ids: Sequence[str], selected: str, most: int) -> int:
    """Return where a list begins so that the selected job is on the screen."""
    place = ids.index(selected) if selected in ids else 0
    return max(0, place - most + 1)


def _shares(running: int, failing: int, room: int) -> tuple[int, int]:
    """Share lines between two lists: half each, and what one does not need goes to the other."""
    half = room // 2
    first = min(running, max(half, room - failing))
    return first, min(failing, room - first)


def _head(view: OverviewView, rates: Rates) -> str:
    parts = [states(view.jobs)]
    if rates.ended_a_minute is not None:
        parts.append(f"{rates.ended_a_minute:,.0f} jobs a minute")
    if rates.ettr is not None:
        parts.append(f"ETTR {rates.ettr:.1%} (1h)")
    return f"holdfast  {'  '.join(parts)}"


def _queues(view: OverviewView) -> str:
    loads = [f"{queue.queue}: {states(queue.jobs)}" for queue in view.queues]
    return f"queues    {';  '.join(loads) or 'empty'}"


def _limited(texts: Sequence[str], what: str, room: int, paper: Paper) -> list[str]:
    """Write the first lines, labelled ``what``, and how many are left out."""
    shown = texts if len(texts) <= room else [*texts[: max(0, room - 1)], f"and {len(texts) - room + 1} more {what}"]
    return [paper.line(f"{name:<10}{text}") for name, text in zip_longest([what][: len(shown)], shown, fillvalue="")]


def _node(node: NodeView) -> str:
    used, capacity = node.used, node.capacity
    cpu = f"cpu {bar(f'{used.cpu}/{capacity.cpu}', _SMALL_BAR)} {used.cpu}/{capacity.cpu}"
    gpu = f"  gpu {used.gpu:g}/{capacity.gpu:g}" if capacity.gpu else ""
    return f"{node.name}  {cpu}  memory {used.memory}/{capacity.memory}{gpu}  {node.runs} runs"


def _device(device: DeviceView) -> str:
    holders = ", ".join(run.name for run in device.runs) or device.reason or device.state.lower()
    return "  ".join(filter(None, (device.id, device.type, f"{device.used:g} used", holders)))


def _running(job: JobOutcome, called: Mapping[str, str], now_s: float) -> tuple[str, ...]:
    drawn = bar(job.progress, _BAR)
    message = f"{drawn} {job.progress}" if drawn else job.progress
    return (called[job.id], str(job.attempt), span(job.started_at, None, now_s), job.node or "", message)


def _failing(job: JobOutcome, called: Mapping[str, str], now_s: float) -> tuple[str, ...]:
    since = age(job.ended_at, now_s) if job.ended_at else ""
    cause = "/".join(filter(None, (job.category, job.subcategory))) or ending(job.exit_code, job.signal, [])
    reason = ": ".join(filter(None, (cause or job.cause or "", job.error_line or job.reason)))
    return (called[job.id], job.state, str(job.attempt), since, reason)


def _table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], ids: Sequence[str], selected: str, paper: Paper
) -> list[str]:
    shown = [[printable(cell).replace("\n", " ") for cell in row] for row in rows]
    needed = [max(cells(row[place]) for row in (columns, *shown)) for place in range(len(columns))]
    widths = fitted(columns, needed, paper.columns)
    lines = [paper.style(_row(columns, widths), "dim")]
    for job_id, row in zip(ids, shown, strict=False):
        style = "selected" if job_id == selected else next((cell for cell in row if cell in _STYLES), "")
        lines.append(paper.style(_row(row, widths), style))
    return lines


def _row(texts: Sequence[str], widths: Sequence[int]) -> str:
    shown = [cut(text, width) for text, width in zip(texts, widths, strict=True)]
    return GAP.join(text + " " * (width - cells(text)) for text, width in zip(shown, widths, strict=True)).rstrip()
