"""The live line of those who wait, on a terminal that only remembers what was written to it."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pyte
import pytest

from holdfast.cli import exit_codes
from holdfast.cli.context import Cli
from holdfast.cli.render.words import bar, cut
from holdfast.cli.watching.endings import MOST_TOLD
from holdfast.cli.watching.live import live_line
from holdfast.cli.watching.waiting import WaitGoal, wait_for
from holdfast.errors import NotFound
from holdfast.wire.jobs import JobOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.client import Client

AT = "2026-01-01T00:00:00.000Z"
COLUMNS, LINES = 80, 10


class Stream(io.StringIO):
    """A terminal without a size."""

    def isatty(self) -> bool:
        return True

    def screen(self) -> list[str]:
        """Show what a person sees now."""
        shown = pyte.Screen(COLUMNS, LINES)
        pyte.Stream(shown).feed(self.getvalue().replace("\n", "\r\n"))
        return [line.rstrip() for line in shown.display if line.strip()]


@dataclass
class Jobs:
    """A client whose jobs are in the next states with every look; it counts what it is asked."""

    looks: list[dict[str, str]]
    progress: str = ""
    asked: list[str] = field(default_factory=list)

    def states(self, ids: Sequence[str]) -> dict[str, str]:
        self.asked.append("states")
        return {one: state for one, state in self._next().items() if one in ids}

    def job_outcomes(self, *, ids: Sequence[str]) -> Iterator[JobOutcome]:
        self.asked.append("outcomes")
        return iter([self._view(one, state) for one, state in self._next().items() if one in ids])

    def logs(self, reference: str, *, tail: int) -> None:
        assert tail == 1
        self.asked.append("logs")
        raise NotFound(reference)

    def _next(self) -> dict[str, str]:
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def _view(self, name: str, state: str) -> JobOutcome:
        resources: dict[str, Any] = {"cpu": "1", "memory": "0", "gpu": 0}
        facts: dict[str, Any] = {"attempt": 1, "submitted_at": AT, "resources": resources, "labels": {}}
        return JobOutcome(id=name, name=name, queue="q", state=state, progress=self.progress, **facts)


class Served(Cli):
    """Surroundings with a server."""

    @staticmethod
    def is_unserved() -> bool:
        return False


@dataclass
class Person:
    """Somebody at a terminal who looks at it whenever nothing happens."""

    err: Stream = field(default_factory=Stream)
    at: float = 0.0
    seen: list[list[str]] = field(default_factory=list)
    presses_at: float | None = None
    """When Ctrl-C is pressed."""

    def sleep(self, seconds: float) -> None:
        self.at += seconds
        self.seen.append(self.err.screen())
        if self.presses_at is not None and self.at >= self.presses_at:
            raise KeyboardInterrupt

    def waits(self, jobs: Jobs, ids: Sequence[str], **environ: str) -> int:
        cli = Served(stdout=io.StringIO(), stderr=self.err, now=lambda: self.at, sleep=self.sleep, environ=environ)
        return wait_for(cast("Client", jobs), ids, WaitGoal(), cli)


def test_one_job_is_told_in_one_line_which_is_gone_at_the_end() -> None:
    person = Person()
    looks = [{"train": "Queued"}, {"train": "Running"}, {"train": "Running"}, {"train": "Succeeded"}]
    assert person.waits(Jobs(looks, "30/100 (2.1/s, 33s left)"), ["train"]) == exit_codes.OK
    assert [len(screen) for screen in person.seen] == [1, 1, 1]
    assert person.seen[0] == ["train: Queued, attempt 1, 0s"]
    assert person.seen[1] == ["train: Running, [######--------------] 30/100 (2.1/s, 33s left), 0s"]
    assert person.err.screen() == ["train: Succeeded"]
    assert "\x1b[3" not in person.err.getvalue(), "no colours"


def test_many_jobs_are_counted_by_state_with_one_request_each_time() -> None:
    ids = [f"j{number}" for number in range(5000)]
    half = dict(zip(ids, ["Running", "Succeeded"] * 2500, strict=True))
    jobs, person = Jobs([dict.fromkeys(ids, "Queued"), half, dict.fromkeys(ids, "Succeeded")]), Person()
    assert person.waits(jobs, ids) == exit_codes.OK
    assert [screen[0] for screen in person.seen] == [
        "5,000 jobs: 5,000 Queued, 0s",
        "5,000 jobs: 2,500 Running, 2,500 Succeeded, 1s",
    ]
    assert jobs.asked == ["states"] * 3 + ["outcomes"] + ["logs"] * MOST_TOLD
    assert "and 4,980 more: 4,980 Succeeded" in person.err.getvalue()


def test_a_dumb_terminal_and_a_file_get_plain_lines_only() -> None:
    looks = [{"train": "Running"}, {"train": "Failed"}]
    dumb = Person()
    assert dumb.waits(Jobs(list(looks)), ["train"], TERM="dumb") == exit_codes.FAILED
    assert dumb.err.getvalue() == "train: Failed (job train)\n"


def test_ctrl_c_leaves_the_jobs_and_says_so() -> None:
    person = Person(presses_at=3.0)
    ids = ["a", "b"]
    assert person.waits(Jobs([{"a": "Succeeded", "b": "Running"}]), ids) == exit_codes.INTERRUPTED
    assert person.err.screen() == ["no longer waiting: 1 of 2 jobs continue and were not cancelled"]


def test_what_others_say_comes_above_the_line_and_an_open_line_is_left_alone() -> None:
    err, out = Stream(), Stream()
    with live_line(Cli(stdout=out, stderr=err, environ={})) as (line, above):
        line.draw("first")
        above.say("said")
        line.draw("second")
        assert err.screen() == ["said", "second"]
        above.stdout.write("loading...")
        line.draw("third")
        assert err.screen() == ["said"]
        above.stdout.writelines([" done\n"])
        line.draw("x" * 300)
        assert err.screen() == ["said", "x" * (COLUMNS - 2) + "…"]
    assert (err.screen(), out.getvalue()) == (["said"], "loading... done\n")


@pytest.mark.parametrize(
    ("told", "drawn"),
    [("5/10", "[##--]"), ("5 / 10 steps", "[##--]"), ("0/0", ""), ("20/10", "[####]"), ("loss 0.5/1", ""), ("", "")],
)
def test_a_bar_is_drawn_of_what_says_how_far_it_is(told: str, drawn: str) -> None:
    assert bar(told, 4) == drawn


def test_a_text_is_cut_by_the_columns_it_takes() -> None:
    assert [cut("abcdef", 4), cut("abcd", 4), cut("日本語", 4)] == ["abc…", "abcd", "日 …"]
