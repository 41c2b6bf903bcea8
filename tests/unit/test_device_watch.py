"""GPUs are looked at again and again, in a thread; what changes is told. The driver is what the test says it is."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.devices import Device
from holdfast.engines.devices.watch import GONE, SILENT, DeviceReading, DeviceWatch
from holdfast.engines.process.shim.processes import name_if_foreign

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

ONE, TWO = Device("GPU-1", 0), Device("GPU-2", 1, health="fan is broken")
NAMES = {7: "python", 8: "", 9: "nvidia-cuda-mps-server", 10: "train", 11: "a", 12: "b"}
PATIENCE_S = 10.0


class Driver:
    """Says what it was told to say, and hangs while nothing was."""

    def __init__(self) -> None:
        self.says: queue.Queue[Mapping[str, DeviceReading]] = queue.Queue()
        self.told: queue.Queue[Mapping[str, Device]] = queue.Queue()
        self.last: Mapping[str, DeviceReading] | None = None

    def look(self) -> Mapping[str, DeviceReading]:
        return self.says.get()

    def after(self, seen: Mapping[str, DeviceReading]) -> Mapping[str, Device]:
        self.says.put(seen)
        return self.told.get(timeout=PATIENCE_S)


@pytest.fixture
def watch() -> Iterator[Callable[..., Driver]]:
    opened: list[tuple[DeviceWatch, Driver]] = []

    def open_one(first: Mapping[str, DeviceReading], patience_s: float = PATIENCE_S) -> Driver:
        driver = Driver()
        driver.says.put(first)
        looks = DeviceWatch(
            [ONE, TWO], driver.look, foreign=NAMES.__getitem__, tell=driver.told.put, every_s=0, patience_s=patience_s
        )
        opened.append((looks, driver))
        return driver

    yield open_one
    for looks, driver in opened:
        looks.close()
        driver.says.put({})


def test_a_device_is_used_by_programs_of_others_until_they_are_gone(watch: Callable[..., Driver]) -> None:
    driver = watch({"GPU-1": DeviceReading(pids=(8, 9))})
    for pids, used_by in {
        (7, 8, 9): "python (pid 7)",
        (7, 10): "python (pid 7), train (pid 10)",
        (7, 10, 11, 12): "python (pid 7), train (pid 10) and 2 more",
        (): "",
    }.items():
        told = driver.after({"GPU-1": DeviceReading(pids=pids)})
        assert (told["GPU-1"].used_by, told["GPU-2"]) == (used_by, TWO)


def test_a_device_that_is_lost_or_no_longer_listed_is_not_healthy(watch: Callable[..., Driver]) -> None:
    driver = watch({"GPU-1": DeviceReading()})
    assert (
        driver.after({"GPU-1": DeviceReading("it has fallen off the bus")})["GPU-1"].health
        == "it has fallen off the bus"
    )
    told = driver.after({})
    assert (told["GPU-1"].health, told["GPU-2"].health) == (GONE, "fan is broken")
    assert driver.after({"GPU-1": DeviceReading()})["GPU-1"].health == ""


def test_a_driver_that_hangs_makes_devices_unhealthy_until_it_answers(watch: Callable[..., Driver]) -> None:
    driver = watch({"GPU-1": DeviceReading()}, patience_s=0.05)
    assert driver.told.get(timeout=PATIENCE_S)["GPU-1"].health == SILENT
    assert driver.after({"GPU-1": DeviceReading()})["GPU-1"].health == ""


def test_a_server_begins_although_the_driver_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.engines.devices.watch._AT_START_S", 0.05)
    answer = threading.Event()

    def hang() -> Mapping[str, DeviceReading]:
        answer.wait()
        return {}

    DeviceWatch([ONE], hang, foreign=str, tell=lambda _: None).close()
    answer.set()


def test_descendants_of_runs_are_no_strangers_and_everybody_else_is(tmp_path: Path) -> None:
    says = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]], env={})"
    reads = "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"
    of_run = {**os.environ, "HOLDFAST_TERMINATION_LOG": str(tmp_path / "jobs" / "1" / "message")}
    words = [sys.executable, "-c", says, reads]
    with subprocess.Popen(words, env=of_run, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        pids = [run.pid, int(run.stdout.readline())]
        assert [name_if_foreign(pid, str(tmp_path), 0) for pid in pids] == ["", ""]
        named = [name_if_foreign(pid, str(tmp_path / "other"), 0) for pid in pids]
        assert all(name.startswith("python") for name in named)
        assert name_if_foreign(pids[1], "elsewhere", holder=os.getpid()) == ""
        run.communicate()
    assert name_if_foreign(run.pid, str(tmp_path), 0) == ""
