"""A result is written down somewhere at every moment, whoever is killed then: its program never runs again for it."""

from __future__ import annotations

import os
import signal
import socket
import struct
import threading
from typing import TYPE_CHECKING

import psutil

from holdfast.domain.failure import FailureCondition
from holdfast.ports.engine import RunPhase
from tests.integration.conftest import ours

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.conftest import Machine

PROGRAMS = 30


def kill_when_a_record_disappears(directory: Path, killed: threading.Event) -> None:
    """Wait for the next shim, and kill it as soon as it removes a supervisor's record."""
    supervisors = directory / "supervisors"
    records = {path.name for path in supervisors.glob("*.record")}
    pid = 0
    while not pid:
        with socket.socket(socket.AF_UNIX) as line:
            try:
                line.connect(str(directory / "shim.sock"))
            except OSError:
                continue
            pid, _, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    while records.issubset(os.listdir(supervisors)):  # noqa: PTH208 - every moment counts
        pass
    os.kill(pid, signal.SIGKILL)
    killed.set()


def test_results_that_dead_supervisors_left_outlive_the_shim_that_takes_them_in(machine: Machine) -> None:
    go, ledger = machine.directory / "go", machine.directory / "ledger"
    script = f"while ! test -e {go}; do sleep 0.05; done; echo $HOLDFAST_ATTEMPT_UID >> {ledger}; exit 6"
    orders = [machine.start("sh", "-c", f"echo up; {script}") for _ in range(PROGRAMS)]
    for order in orders:
        machine.until_logged(order, "up")
    shim = machine.shim()
    machine.engine.close()
    shim.kill()
    go.touch()
    records = (machine.directory / "supervisors").glob("*.record")
    for record in records:
        while b'"outcome"' not in record.read_bytes():
            machine.changed.wait(0.02)
    for process in ours(machine.directory):
        process.kill()
    while ours(machine.directory):
        machine.changed.wait(0.02)
    killed = threading.Event()
    killer = threading.Thread(target=kill_when_a_record_disappears, args=(machine.directory, killed), daemon=True)
    killer.start()
    machine.open()
    assert killed.wait(30)
    seen = machine.engine.observe()
    assert {order.uid for order in orders} <= set(seen)
    assert [machine.finish(order).containers[0].exit_code for order in orders] == [6] * PROGRAMS
    assert sorted(ledger.read_text().split()) == sorted(order.uid for order in orders)


def test_a_run_whose_record_cannot_be_read_may_have_run_and_does_not_begin_again(
    machine: Machine, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    os.mkfifo(tmp_path / "gate")
    order = machine.start("sh", "-c", f"echo begins >> {ledger}; read x < {tmp_path}/gate; exit 6")
    machine.until(order, lambda seen: seen.phase is RunPhase.RUNNING)
    shim, [supervisor] = machine.shim(), machine.supervisors()
    machine.engine.close()
    shim.kill()
    supervisor.kill()
    [record] = (machine.directory / "supervisors").glob("*.record")
    record.unlink()
    record.symlink_to("/proc/self/mem")  # reading its begin gives EIO
    machine.open()
    machine.engine.start([order])
    outcome = machine.finish(order)
    assert outcome.conditions == {FailureCondition.EXECUTOR_LOST}
    assert outcome.started
    assert ledger.read_text().split() == ["begins"]
    psutil.wait_procs(machine.survivors(), 10)  # it is killed before its run is given up, and takes its time to be gone
    assert machine.survivors() == []
    assert machine.run("true").succeeded
