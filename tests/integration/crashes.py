"""Rounds that end in order whoever is killed in them: what the programs wrote must fit what the engine says of them."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

import psutil

from holdfast.domain.failure import EndedBy
from holdfast.ports.engine import StopReason
from tests import strace
from tests.integration.conftest import Machine, ours

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from holdfast.domain.failure import RunOutcome
    from holdfast.ports.engine import RunOrder
    from tests.strace import Point, Tell

ENDS_WITH = 6
PATIENCE_S = 30.0
AT_ONCE = 2
"""Rounds that run beside each other; each waits most of its time."""


class Round:
    """One machine, on which one process is killed at one point."""

    def __init__(self, folder: Path, point: Point | None) -> None:
        (folder / "runs").mkdir(parents=True)
        self.folder, self.point = folder, point
        self.directory = folder / "runs"
        self.machine: Machine
        self.orders: dict[str, RunOrder] = {}
        self.gates: dict[str, int] = {}
        self.begun = time.monotonic()
        self.told: dict[str, RunOutcome] = {}
        """What the engine has said of ends, by uid: it cannot take that back."""
        self.known: set[str] = set()
        """Programs whose ends nobody may lose."""
        self.stopped: set[str] = set()
        self.refused: set[str] = set()
        """Those that cannot be started."""
        self.died = threading.Event()
        self.follower: strace.Follower | None = None
        (folder / "ledger").touch()

    def follow(self, line: str, died: Callable[[], object] = lambda: None) -> None:
        """Follow a process of the next shim, from its birth to its point."""

        def notice() -> None:
            died()
            self.died.set()

        (self.folder / "follow").write_text(line)
        self.follower = strace.Follower(self.folder, self.point, notice)

    def open(self) -> None:
        """Begin as a server does: what it wants and does not see it orders, also once more."""
        if hasattr(self, "machine"):
            self.machine.open()
        else:
            self.machine = Machine(self.directory)
        self.machine.engine.on_change(self.look)
        wanted = [order for order in self.orders.values() if order.uid not in self.told]
        self.machine.engine.start(wanted)
        self.look()

    def look(self) -> None:
        for uid, seen in self.machine.engine.observe().items():
            if seen.outcome is not None:
                assert self.told.setdefault(uid, seen.outcome) == seen.outcome, (self.told[uid], seen.outcome)

    def start(self, name: str, *, waits: bool = False) -> None:
        """Start a program that keeps the books and ends with 6, when it is let go if it waits."""
        uid, ledger, gate = "$HOLDFAST_ATTEMPT_UID", self.folder / "ledger", self.folder / name
        if waits:
            os.mkfifo(gate)
            self.gates[name] = os.open(gate, os.O_RDWR)
        wait = f"read x <> {gate}" if waits else ":"
        script = f"echo begins {uid} >> {ledger}; {wait}; echo ends {uid} >> {ledger}; exit {ENDS_WITH}"
        self.orders[name] = self.machine.start("sh", "-c", script)

    def start_none(self, name: str) -> None:
        """Order what cannot be started."""
        self.orders[name] = self.machine.start("/there/is/no/program")
        self.refused.add(name)

    def stop(self, name: str) -> None:
        """Have a program stopped at once."""
        self.stopped.add(name)
        self.machine.engine.stop([(self.orders[name].uid, 0.0, StopReason.USER)])

    def forget(self, *names: str) -> None:
        self.machine.engine.forget([self.orders[name].uid for name in names])

    def let_go(self, *names: str) -> None:
        for name in names:
            os.write(self.gates[name], b"go\ngo\n")

    def lines(self, word: str) -> Counter[str]:
        entries = [line.split() for line in (self.folder / "ledger").read_text().splitlines()]
        return Counter(uid for what, uid in entries if what == word)

    def until(self, condition: Callable[[], object]) -> None:
        """Wait for something real."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            self.machine.changed.clear()
            if condition():
                return
            self.machine.changed.wait(0.01)
        message = f"never came to it: {condition}"
        raise AssertionError(message)

    def until_begun(self, *names: str) -> None:
        self.until(lambda: all(self.lines("begins")[self.orders[name].uid] for name in names))

    def finish(self, *names: str) -> None:
        """Wait for ends."""
        for name in names:
            self.told.setdefault(self.orders[name].uid, self.machine.finish(self.orders[name]))

    def kill_the_shim(self) -> None:
        for process in ours(self.directory, "holdfast-shim"):
            with contextlib.suppress(psutil.Error):
                process.kill()

    def kill_everything(self) -> None:
        """Kill all that holds programs, and not the programs."""
        for process in ours(self.directory):
            with contextlib.suppress(psutil.Error):
                process.kill()

    def close(self) -> None:
        """Wait until everybody has left, as they do when all is over; who comes later sees the same ends."""
        self.machine.engine.close()
        self.until(lambda: not ours(self.directory))
        self.open()

    def end(self) -> None:
        """End everything, whatever became of the round."""
        for gate in self.gates.values():
            os.close(gate)
        self.machine.end()
        if self.follower is not None:
            self.follower.end()

    def check(self) -> None:
        """Compare what was told with what the programs wrote."""
        begun, ended = self.lines("begins"), self.lines("ends")
        for name, order in self.orders.items():
            outcome, uid = self.told[order.uid], order.uid
            assert begun[uid] <= 1, f"{name} ran twice"
            if [container.exit_code for container in outcome.containers] == [ENDS_WITH]:
                assert (begun[uid], ended[uid]) == (1, 1), f"{name} is said to have ended, and did not: {outcome}"
                continue
            assert name not in self.known, f"the end of {name} was lost: {outcome}"
            if name in self.stopped:
                assert outcome.ended_by is EndedBy.USER, f"{name} was stopped: {outcome}"
            elif outcome.started:
                assert outcome.conditions == {"ExecutorLost"}, outcome
            else:
                assert name in self.refused, f"{name} was not started: {outcome}"
            if not outcome.started:
                assert begun[uid] == 0, f"{name} is said not to have run, and did: {outcome}"


def live(folder: Path, point: Point | None, story: Callable[[Round], None]) -> bool:
    """Live through one round; returns whether the point was come to."""
    this = Round(folder, point)
    try:
        story(this)
        this.close()
        this.check()
    finally:
        this.end()
    return point is not None and strace.was_killed(folder / "trace")


def enumerate_points(folder: Path, story: Callable[[Round], None]) -> list[Point]:
    """List the points of a story's process."""
    live(folder / "all", None, story)
    return strace.points(folder / "all" / "trace")


def live_through_all(folder: Path, story: Callable[[Round], None], tell: Tell) -> None:
    """Live through a round for each point there is, and say how many there were."""
    points = enumerate_points(folder, story)
    strace.live_through_all(points, lambda point: live(folder / point.name, point, story), tell, at_once=AT_ONCE)


def live_through_some(folder: Path, story: Callable[[Round], None]) -> None:
    """Live through a round for the first point, one in the middle and the last."""
    points = strace.sample(enumerate_points(folder, story))
    assert strace.live_through(points, lambda point: live(folder / point.name, point, story), at_once=AT_ONCE)


def use_stand_in(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Have shims started so that their processes can be followed; skip where they cannot."""
    strace.require()
    monkeypatch.setattr(sys, "executable", strace.stand_in(folder))
