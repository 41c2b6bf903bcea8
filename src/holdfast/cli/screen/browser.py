"""The state of ``holdfast top``: the selection, what keys do, and how often the server is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.render.output import Output, Sheet
from holdfast.cli.screen.frame import KEYS, Paper, Rates, frame
from holdfast.errors import HoldfastError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import terminal_size

    from holdfast.cli.context import Cli
    from holdfast.client import Client
    from holdfast.wire.figures import OverviewView
    from holdfast.wire.jobs import JobOutcome

EVERY_S = 1.0
_SHARE = 10
"""The server works for this at most a tenth of the time: a look that took long is followed by a longer rest."""
_ETTR_EVERY_S = 60.0
_HOUR_S = 3600
_LISTED = 100
_AROUND, _FRAME_SHARE = 10, 8
"""Lines that suffice for a frame in which nothing is left out."""
_LOG_LINES = 500
_ENDED = ("Succeeded", "Failed", "Cancelled")
HELP = [
    "j, k, arrows     move",
    "enter, w         explain a job's state",
    "l                show the last lines it printed",
    "c                cancel it, after a question",
    "r                retry it",
    "/                show only jobs whose names contain a text; enter ends it, escape shows all again",
    "q                quit, or go back from one of these pages",
]


class Browser:
    """The frame or page that is shown, and the selection."""

    def __init__(self, cli: Cli, named: str = "") -> None:
        self._cli = cli
        self._client: Client | None = None
        self.view: OverviewView | None = None
        self._rates = Rates()
        self._looked_at: float | None = None
        self._ettr_at = cli.now() - _ETTR_EVERY_S + 2 * EVERY_S
        self._named = named
        """A part of the names of the jobs to list."""
        self._selected = ""
        self._page: list[str] | None = None
        self._first = 0
        self._question: tuple[str, Callable[[], object]] | None = None
        self._typing = False
        self._message = ""
        self.rest_s = EVERY_S
        self.over = False
        """Whether the person wants to leave."""

    def look(self, client: Client) -> None:
        """Ask the server once; every minute also for the ETTR, which takes it longer."""
        self._client, began = client, self._cli.now()
        before, self.view = self.view, client.overview(limit=_LISTED, named=self._named)
        self._note_rates(client, before, began)
        self._looked_at = began
        self.rest_s = max(EVERY_S, _SHARE * (self._cli.now() - began))
        jobs = self._jobs()
        if jobs and self._selected not in {job.id for job in jobs}:
            self._selected = jobs[0].id

    def _note_rates(self, client: Client, before: OverviewView | None, at: float) -> None:
        rate, ettr = self._rates.ended_a_minute, self._rates.ettr
        if before is not None and self.view is not None and self._looked_at is not None and at > self._looked_at:
            ended = [sum(view.jobs.get(state, 0) for state in _ENDED) for view in (before, self.view)]
            now = max(0, ended[1] - ended[0]) * 60 / (at - self._looked_at)
            rate = now if rate is None else 0.7 * rate + 0.3 * now
        if before is not None and at - self._ettr_at >= _ETTR_EVERY_S:
            ettr, self._ettr_at = client.summary(within_s=_HOUR_S).ettr, at
        self._rates = Rates(rate, ettr)

    def lines(self, size: terminal_size, notice: str) -> list[str]:
        """Draw the screen."""
        paper = Paper(size.columns, max(1, size.lines - 1), colours=not self._cli.environ.get("NO_COLOR"))
        if self._page is not None:
            most = max(0, len(self._page) - paper.lines)
            self._first = min(self._first, most)
            body = self._page[self._first : self._first + paper.lines]
            foot = f"{self._first + len(body)} of {len(self._page)} lines  j/k move  q back"
        else:
            body = [] if self.view is None else frame(self.view, self._rates, self._selected, self._cli.clock(), paper)
            foot = self._foot(notice)
        body += [""] * (paper.lines - len(body))
        return [*body, paper.line(foot, "dim")]

    def frame(self, columns: int, *, colours: bool) -> list[str]:
        """Draw the whole frame, however long it is."""
        if self.view is None:
            return []
        view = self.view
        long = len(view.nodes) + len(view.devices) + len(view.running) + len(view.failing)
        paper = Paper(columns, _AROUND + _FRAME_SHARE * long, colours=colours and not self._cli.environ.get("NO_COLOR"))
        return frame(self.view, self._rates, "", self._cli.clock(), paper)

    def _foot(self, notice: str) -> str:
        if self._typing:
            return f"names with: {self._named}_"
        if self._question is not None:
            return f"{self._question[0]} [y/N]"
        only = f"only names with {self._named!r}  " if self._named else ""
        return self._message or notice or only + KEYS

    def press(self, key: str) -> bool:
        """Handle a key; returns whether to ask the server again at once."""
        self._message = ""
        if self._typing:
            return self._type(key)
        if self._question is not None:
            return self._answer(key)
        moves = {"j": 1, "down": 1, "k": -1, "up": -1, "page down": 10, "page up": -10}
        if key in moves:
            self._move(moves[key])
        elif self._page is not None:
            self._page = None if key in {"q", "escape", "enter", "w", "l"} else self._page
        elif key == "/":
            self._typing = True
        elif key == "escape" and self._named:
            self._named = ""
            return True
        elif key in {"q", "escape"}:
            self.over = key == "q"
        elif key == "?":
            self._page = list(HELP)
        else:
            return self._act(key)
        return False

    def _type(self, key: str) -> bool:
        if key in {"enter", "escape"}:
            self._typing = False
            self._named = self._named if key == "enter" else ""
            return True
        if key == "backspace":
            self._named = self._named[:-1]
        elif len(key) == 1 and key.isprintable():
            self._named += key
        return False

    def _answer(self, key: str) -> bool:
        question, self._question = self._question, None
        if key.lower() == "y" and question is not None:
            self._try(question[1])
            return True
        self._message = "nothing was done"
        return False

    def _move(self, steps: int) -> None:
        if self._page is not None:
            self._first = max(0, self._first + steps)
            return
        ids = [job.id for job in self._jobs()]
        if ids:
            place = ids.index(self._selected) if self._selected in ids else 0
            self._selected = ids[max(0, min(len(ids) - 1, place + steps))]

    def _act(self, key: str) -> bool:
        job, client = self._job(), self._client
        if job is None or client is None:
            return False
        if key in {"enter", "w"}:
            self._try(lambda: self._show(_why(client, job)))
        elif key == "l":
            self._try(lambda: self._show(_log(client, job), end=True))
        elif key == "c":
            self._question = f"cancel {job.name} ({job.id})?", lambda: self._cancel(client, job)
        elif key == "r":
            self._try(lambda: self._retry(client, job))
            return True
        return False

    def _try(self, act: Callable[[], object]) -> None:
        """Do something, and show the error if it is refused."""
        try:
            act()
        except Unavailable as error:
            self._message = str(error).splitlines()[0]
        except HoldfastError as error:
            self._message = f"error: {error.message}"

    def _show(self, lines: list[str], *, end: bool = False) -> None:
        self._page, self._first = lines, len(lines) if end else 0

    def _cancel(self, client: Client, job: JobOutcome) -> None:
        client.cancel(job.id, reason="from holdfast top")
        self._message = f"{job.name}: cancel requested"

    def _retry(self, client: Client, job: JobOutcome) -> None:
        client.retry(job.id, reason="from holdfast top")
        self._message = f"{job.name}: retry requested"

    def _jobs(self) -> list[JobOutcome]:
        return [] if self.view is None else [*self.view.running, *self.view.failing]

    def _job(self) -> JobOutcome | None:
        return next((job for job in self._jobs() if job.id == self._selected), None)


def _why(client: Client, job: JobOutcome) -> list[str]:
    """Explain a job, wrapped to the terminal's width."""
    why, sheet = client.why(job.id), Sheet()
    output = Output(sheet)
    output.heading(why.headline)
    for sentence in why.summary:
        output.paragraph(sentence)
    return sheet.lines


def _log(client: Client, job: JobOutcome) -> list[str]:
    sheet = Sheet()
    output = Output(sheet)
    for line in client.logs(job.id, tail=_LOG_LINES).text.splitlines():
        output.text(line)
    return sheet.lines or ["it has printed nothing"]
