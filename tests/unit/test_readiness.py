"""A server says what keeps it from working as soon as one of its parts knows."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from holdfast.app.data.datadir import DataDir
from holdfast.app.data.ownership import Ownership
from holdfast.app.embedded import Embedded
from holdfast.app.leadership import Leadership, shared
from holdfast.app.server import Readiness
from holdfast.app.telemetry import Telemetry
from holdfast.app.time import SystemClock
from holdfast.controller.controller import ControllerSettings
from holdfast.engines.simulated import SimulatedEngine, SimulatedRun
from holdfast.errors import Internal, NotLeader
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from holdfast.ports.store import News


class Moody(MemoryStore):
    """A store that may be damaged."""

    damaged = False

    def news(self) -> News:
        if self.damaged:
            message = "the database is damaged"
            raise Internal(message)
        return super().news()


class Quiet(SimulatedEngine):
    """An engine that may have lost what really runs things."""

    lost: str | None = None

    def trouble(self) -> str | None:
        return self.lost


class Parts:
    """A server without its API."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        clock = SystemClock()
        self.store, self.engine = Moody(), Quiet(clock, [], script=lambda _: SimulatedRun())
        self.ownership = Ownership(DataDir(folder), None, "up")
        stack.callback(self.ownership.release)
        self.readiness = Readiness(Telemetry(clock.now), self.ownership)
        leadership = Leadership(self.store, "this", clock, terms=shared(60.0))
        leadership.take()
        self.embedded = Embedded(self.store, self.engine, leadership, self.readiness.telemetry, ControllerSettings())
        stack.callback(self.embedded.stop)

    def until(self, wanted: Callable[[str | None], object]) -> None:
        deadline, pause = time.monotonic() + 30, threading.Event()
        while not wanted(self.readiness.ready()):
            assert time.monotonic() < deadline, self.readiness.ready()
            pause.wait(0.02)


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    with ExitStack() as stack:
        made = Parts(stack, tmp_path)
        assert made.readiness.ready() == "the controller has not started"
        made.embedded.start()
        made.readiness.started(made.embedded)
        made.until(lambda ready: ready is None)
        yield made


def test_an_engine_in_trouble_is_not_ready_and_jobs_are_taken_in(parts: Parts) -> None:
    parts.engine.lost = "what holds the programs does not answer"
    assert parts.readiness.ready() == parts.engine.lost
    assert parts.readiness.refusal() is None
    parts.engine.lost = None
    assert parts.readiness.ready() is None


def test_a_damaged_database_is_not_ready_and_the_failure_is_told(parts: Parts) -> None:
    parts.store.damaged = True
    parts.until(lambda ready: ready == "the database is damaged")
    assert isinstance(parts.embedded.failure(), Internal)
    parts.store.damaged = False
    parts.until(lambda ready: ready is None)


def test_a_lease_that_another_has_is_not_ready_and_nothing_is_taken_in(parts: Parts) -> None:
    parts.store.lead("that", 3600.0, time.time(), heir_of="this")
    parts.until(lambda ready: ready is not None and "led by that" in ready)
    refusal = parts.readiness.refusal()
    assert isinstance(refusal, NotLeader)
    assert "the server that leads" in str(refusal)
    parts.store.lead("that", 0.0, time.time())
    parts.until(lambda ready: ready is None)
    assert parts.readiness.refusal() is None
