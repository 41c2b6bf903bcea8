"""What `holdfast top` draws, how often it asks, and what its keys do; time is counted, and the server keeps notes."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pytest
from rich.cells import cell_len

from holdfast.cli.context import Cli
from holdfast.cli.screen.browser import Browser
from holdfast.cli.screen.frame import Paper, Rates, frame
from holdfast.errors import Conflict, Unavailable
from holdfast.wire.arrays import ArrayView
from holdfast.wire.catalogue import DeviceView, NodeView
from holdfast.wire.figures import OverviewView, QueueLoad
from holdfast.wire.jobs import JobOutcome, ResourcesView

if TYPE_CHECKING:
    from holdfast.client import Client

AT = "2026-01-01T00:00:00.000Z"
NOW_S = 1_767_225_660.0
SIZE = os.terminal_size((80, 24))


def job(job_id: str, state: str, **more: object) -> JobOutcome:
    facts: dict[str, Any] = {"resources": {"cpu": "1", "memory": "0", "gpu": 0}, "labels": {}, "submitted_at": AT}
    return JobOutcome(**{"id": job_id, "name": f"n-{job_id}", "queue": "q", "state": state, **facts, **more})


def node(name: str) -> NodeView:
    capacity, used = (ResourcesView(cpu=cpu, memory="8Gi", gpu=2) for cpu in ("4", "2"))
    return NodeView(name=name, executor="e", capacity=capacity, used=used, runs=1, seen_at=AT)


def view(running: int = 0, failing: int = 0, nodes: int = 1, devices: int = 0, ended: int = 0) -> OverviewView:
    return OverviewView(
        at=AT,
        jobs={"Running": running, "Failed": failing, "Succeeded": ended},
        queues=[QueueLoad(queue="default", jobs={"Running": running})],
        nodes=[node(f"m{number}") for number in range(nodes)],
        devices=[
            DeviceView(id=f"m0:{number}", node="m0", executor="e", index=number, state="Free", used=0.0)
            for number in range(devices)
        ],
        running=[job(f"r{n}", "Running", attempt=1, started_at=AT, progress="5/10", node="m0") for n in range(running)],
        failing=[
            job(f"f{n}", "Failed", ended_at=AT, exit_code=3, error_line="KeyError: 日本 \x1b[2J")
            for n in range(failing)
        ],
    )


@dataclass
class Server:
    """A server that notes what it is asked; every request takes a while."""

    shown: OverviewView = field(default_factory=view)
    asked: list[tuple[object, ...]] = field(default_factory=list)
    at: float = 0.0
    takes_s: float = 0.0

    def overview(self, *, limit: int, named: str) -> OverviewView:
        self.asked.append(("overview", limit, named))
        self.at += self.takes_s
        return self.shown

    def summary(self, *, within_s: int) -> object:
        self.asked.append(("summary", within_s))
        return type("Figures", (), {"ettr": 0.5})

    def cancel(self, job_id: str, *, reason: str) -> None:
        self.asked.append(("cancel", job_id, reason))

    def retry(self, job_id: str, *, reason: str) -> None:
        msg = f"job {job_id} is running {reason}"
        raise Conflict(msg)

    def why(self, job_id: str) -> None:
        msg = f"nobody knows {job_id}"
        raise Unavailable(msg)

    def browser(self) -> Browser:
        cli = Cli(stdout=io.StringIO(), now=lambda: self.at, clock=lambda: NOW_S, environ={"NO_COLOR": "1"})
        return Browser(cli)

    def looked_at_by(self, browser: Browser) -> None:
        browser.look(cast("Client", self))


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (20, 5), (200, 60), (1, 1)])
@pytest.mark.parametrize("amounts", [(0, 0, 0, 0), (3, 2, 1, 1), (100, 100, 50, 50)])
def test_a_frame_fits_its_paper_and_steers_no_terminal(size: tuple[int, int], amounts: tuple[int, ...]) -> None:
    lines = frame(view(*amounts), Rates(12.0, 0.97), "r1", NOW_S, Paper(*size, colours=False))
    assert len(lines) <= size[1]
    assert max(map(cell_len, lines)) <= max(size[0], 9), lines
    assert "\x1b" not in "".join(lines)


def test_a_frame_shows_who_runs_how_far_it_is_and_what_went_wrong() -> None:
    seen = view(2, 1, devices=1)
    facts: dict[str, Any] = {
        "total": 60,
        "waiting": 38,
        "running": 2,
        "succeeded": 19,
        "failed": 1,
        "cancelled": 0,
        "eta_s": 90.0,
    }
    seen.arrays.append(ArrayView(id="a", name="sweep", queue="q", state="Running", created_at=AT, **facts))
    text = "\n".join(frame(seen, Rates(12.0, 0.97), "", NOW_S, Paper(100, 24, colours=False)))
    assert "2 Running" in text.splitlines()[0]
    assert "12 jobs a minute  ETTR 97.0% (1h)" in text
    assert "m0  cpu [###---] 2/4  memory 8Gi/8Gi  gpu 2/2  1 runs" in text
    assert "devices   m0:0  0 used  free" in text
    assert "arrays    sweep  20 of 60 tasks ended, 2 running, 1 failed, about 1m30s left" in text
    assert "n-r0  1        1m    m0    [#####-----] 5/10" in text
    assert "exit code 3: KeyError: 日本 \\x1b[2J" in text


def test_lists_share_the_screen_and_what_is_selected_is_always_on_it() -> None:
    paper = Paper(80, 24, colours=False)
    for selected in ("r0", "r60", "f99"):
        assert any(f"n-{selected} " in line for line in frame(view(100, 100), Rates(), selected, NOW_S, paper)), (
            selected
        )
    few = frame(view(100, 1), Rates(), "", NOW_S, paper)
    assert sum(line.startswith("n-r") for line in few) == 24 - 3 - 4 - 1


def test_each_look_is_one_bounded_request_and_rests_ten_times_as_long_as_it_took() -> None:
    server = Server(takes_s=0.5)
    browser = server.browser()
    for _ in range(3):
        server.looked_at_by(browser)
    assert server.asked[:2] == [("overview", 100, "")] * 2
    assert browser.rest_s == pytest.approx(5.0)
    server.takes_s = 0.0
    server.looked_at_by(browser)
    assert browser.rest_s == 1.0


def test_the_rate_and_the_ettr_of_the_last_hour_come_after_the_first_frame() -> None:
    server = Server(view(ended=10))
    browser = server.browser()
    for ended in (10, 12, 14):
        server.shown, server.at = view(ended=ended), server.at + 1.0
        server.looked_at_by(browser)
    assert [what for what, *_ in server.asked].count("summary") == 1
    assert "120 jobs a minute  ETTR 50.0% (1h)" in browser.lines(SIZE, "")[0]


def test_a_job_is_cancelled_only_after_a_yes_and_a_refusal_is_said() -> None:
    server = Server(view(2, 1))
    browser = server.browser()
    server.looked_at_by(browser)
    for key in "jcn":
        browser.press(key)
    assert browser.lines(SIZE, "")[-1] == "nothing was done"
    for key in "cy":
        browser.press(key)
    assert server.asked[-1] == ("cancel", "r1", "from holdfast top")
    assert browser.lines(SIZE, "")[-1] == "n-r1: cancel requested"
    browser.press("r")
    assert browser.lines(SIZE, "")[-1] == "error: job r1 is running from holdfast top"
    browser.press("w")
    assert browser.lines(SIZE, "")[-1] == "nobody knows r1"


def test_a_filter_is_typed_asked_for_and_given_up() -> None:
    server = Server(view(2, 1))
    browser = server.browser()
    asks = [browser.press(key) for key in ("/", "a", "q", "backspace", "b", "enter")]
    assert asks == [False] * 5 + [True]
    server.looked_at_by(browser)
    assert server.asked == [("overview", 100, "ab")]
    assert browser.lines(SIZE, "")[-1].startswith("only names with 'ab'")
    browser.press("escape")
    server.looked_at_by(browser)
    assert server.asked[-1] == ("overview", 100, "")
    browser.press("?")
    assert "explain a job's state" in browser.lines(SIZE, "")[1]
    browser.press("q")
    assert not browser.over
    browser.press("q")
    assert browser.over
