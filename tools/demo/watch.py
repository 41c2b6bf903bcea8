"""Follows the batch until nothing moves any more: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Self

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tools.demo.batch import SETS, STORIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console, RenderableType

    from holdfast.client import Client
    from holdfast.wire.jobs import JobSummary
    from holdfast.wire.jobsets import JobSetSummary

AT_REST = frozenset({"Succeeded", "Failed", "Cancelled", "Held"})
STATES = ("Queued", "Running", "BackOff", "Held", "Succeeded", "Failed", "Cancelled")
COLOURS = {
    "Running": "cyan",
    "BackOff": "yellow",
    "Restarting": "yellow",
    "Held": "magenta",
    "Succeeded": "green",
    "Completed": "green",
    "Failed": "red",
}
_LOOK_EVERY_S = 0.1


def watch(client: Client, console: Console, *, patience_s: float) -> bool:
    """Follow all jobs and job sets; returns whether they finished in time."""
    give_up = time.monotonic() + patience_s
    with _view(console) as view:
        while True:
            jobs, sets = list(client.jobs()), list(client.job_sets())
            view.show([job for job in jobs if job.job_set is None], sets)
            if all(job.state in AT_REST for job in jobs) and all(one.terminal for one in sets):
                return True
            if time.monotonic() > give_up:
                return False
            time.sleep(_LOOK_EVERY_S)


def coloured(state: str) -> Text:
    """Write a state in its colour."""
    return Text(state, style=COLOURS.get(state, "dim"))


def _view(console: Console) -> LiveView | PlainView:
    return LiveView(console) if console.is_terminal else PlainView(console)


class LiveView:
    """A bar, the counts by state, the jobs with a story, and the job sets."""

    def __init__(self, console: Console) -> None:
        """Prepare the view."""
        self._live = Live(console=console, refresh_per_second=10, transient=True)

    def __enter__(self) -> Self:
        """Begin."""
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End; the view disappears."""
        self._live.stop()

    def show(self, jobs: Sequence[JobSummary], sets: Sequence[JobSetSummary]) -> None:
        """Draw the present state."""
        counts = Counter(job.state for job in jobs)
        done = sum(counts[state] for state in AT_REST)
        line = Text("  ").join(Text.assemble(coloured(state), f" {counts[state]}") for state in STATES if counts[state])
        self._live.update(
            Group(ProgressBar(total=max(1, len(jobs)), completed=done, width=60), line, _stories(jobs, sets))
        )


def _stories(jobs: Sequence[JobSummary], sets: Sequence[JobSetSummary]) -> RenderableType:
    table = Table(box=None, pad_edge=False, show_header=False)
    for job in jobs:
        if job.name in STORIES:
            table.add_row(job.name, f"attempt {job.attempt}", coloured(job.state), Text(job.reason, style="dim"))
    for one in sets:
        table.add_row(one.name, _restarts(one), coloured(one.state), Text(one.message, style="dim"))
    return table


def _restarts(one: JobSetSummary) -> str:
    return "1 restart" if one.restarts_counted == 1 else f"{one.restarts_counted} restarts"


class PlainView:
    """One line whenever a job with a story or a job set moves, or the others have come further."""

    def __init__(self, console: Console) -> None:
        """Prepare the view."""
        self._console = console
        self._seen: dict[str, tuple[str, int]] = {}

    def __enter__(self) -> Self:
        """Begin."""
        self._began = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        """End; the lines stay."""

    def show(self, jobs: Sequence[JobSummary], sets: Sequence[JobSetSummary]) -> None:
        """Print what moved."""
        for one in sets:
            seen = (one.state, one.restarts_counted)
            if one.name in SETS and self._seen.get(one.name, ("Pending", 0)) != seen:
                self._say(f"{one.name}: {one.state}, {_restarts(one)}" + (f" ({one.message})" if one.message else ""))
                self._seen[one.name] = seen
        for job in jobs:
            now = (job.state, job.attempt)
            if job.name in STORIES and self._seen.get(job.name, ("Queued", 0)) != now:
                self._say(
                    f"{job.name}: {job.state}, attempt {job.attempt}" + (f" ({job.reason})" if job.reason else "")
                )
                self._seen[job.name] = now
        done = sum(job.state in AT_REST for job in jobs)
        if done * 4 // max(1, len(jobs)) > self._seen.get("", ("", 0))[1]:
            self._seen[""] = ("", done * 4 // len(jobs))
            self._say(f"{done} of {len(jobs)} jobs finished")

    def _say(self, line: str) -> None:
        print(f"[{time.monotonic() - self._began:5.1f} s] {line}", file=self._console.file, flush=True)
