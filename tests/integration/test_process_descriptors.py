"""A shim that has no descriptors left: programs go on, and it does what it could not do as soon as it can."""

from __future__ import annotations

import contextlib
import os
import resource
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import psutil
import pytest

from holdfast.engines.process.engine import ProcessEngine
from holdfast.engines.process.shim.loop import SHORT_S
from tests.integration.conftest import ours

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.conftest import Machine

ENOUGH = 4096


@pytest.fixture(autouse=True)
def nobody_left(tmp_path: Path) -> Iterator[None]:
    yield
    for process in ours(tmp_path):
        with contextlib.suppress(psutil.Error):
            process.kill()


def leave_descriptors(shim: psutil.Process, spare: int) -> None:
    """Let it open so many more, and no other."""
    taken = {int(name) for name in os.listdir(f"/proc/{shim.pid}/fd")}  # noqa: PTH208 - numbers
    free = [number for number in range(ENOUGH) if number not in taken]
    _, hard = resource.prlimit(shim.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(shim.pid, resource.RLIMIT_NOFILE, (free[spare], hard))


def give_descriptors(shim: psutil.Process) -> None:
    _, hard = resource.prlimit(shim.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(shim.pid, resource.RLIMIT_NOFILE, (ENOUGH, hard))


def complaints(machine: Machine) -> str:
    return (machine.directory / "shim.log").read_text()


def until_complained(machine: Machine, what: str) -> None:
    for _ in range(1000):
        if what in complaints(machine):
            return
        machine.changed.wait(0.02)
    raise AssertionError(complaints(machine))


def test_a_program_nobody_can_take_over_goes_on_until_somebody_can(machine: Machine, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    order = machine.start("sh", "-c", f"echo up; read x < {tmp_path}/gate; exit 6")
    machine.until_logged(order, "up")
    machine.until(order, lambda seen: seen.started_at)
    shim, [supervisor] = machine.shim(), machine.supervisors()
    leave_descriptors(shim, 0)
    supervisor.kill()
    until_complained(machine, "nobody can take over run-1")
    threading.Event().wait(2.5 * SHORT_S)  # it has tried again
    assert len(machine.survivors()) == 1
    give_descriptors(shim)
    (tmp_path / "gate").write_text("go\n")
    assert machine.finish(order).containers[0].exit_code == 6
    assert machine.shim() == shim
    until_complained(machine, "programs that nobody could take over are taken over")
    assert complaints(machine).count("nobody can take over") == 1


def test_a_client_that_cannot_be_let_in_is_let_in_later(machine: Machine, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    order = machine.start("sh", "-c", f"echo up; read x < {tmp_path}/gate; exit 6")
    machine.until_logged(order, "up")
    machine.until(order, lambda seen: seen.started_at)
    shim = machine.shim()
    leave_descriptors(shim, 0)
    with ThreadPoolExecutor(1) as beside:
        second = beside.submit(ProcessEngine, machine.directory)
        until_complained(machine, "a client cannot be let in")
        used = sum(shim.cpu_times()[:2])
        threading.Event().wait(2.5 * SHORT_S)  # it has tried again
        assert sum(shim.cpu_times()[:2]) - used < SHORT_S  # and not without a pause
        give_descriptors(shim)
        assert order.uid in second.result(20).observe()
        second.result().close()
    until_complained(machine, "clients are let in")
    assert complaints(machine).count("a client cannot be let in") == 1
    assert machine.shim() == shim
    (tmp_path / "gate").write_text("go\n")
    assert machine.finish(order).containers[0].exit_code == 6
