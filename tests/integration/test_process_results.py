"""A result is written down somewhere at every moment, whoever is killed then: its program never runs again for it."""

from __future__ import annotations

import os
import signal
import socket
import struct
import threading
from typing import TYPE_CHECKING

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
