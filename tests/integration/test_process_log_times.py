"""When the lines of real programs were written is known while they run, whoever of us is killed."""

from __future__ import annotations

import os
import sys
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from holdfast.engines.process.files import ProcessLogs, log_path
from holdfast.engines.process.shim.supervisor import times

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.ports.engine import RunOrder
    from tests.integration.conftest import Machine, NewMachine

STAMPS = """
import sys, time
for _ in range(int(sys.argv[1])):
    print(f"{time.time():.6f}", flush=True)
    time.sleep(float(sys.argv[2]))
"""
WHOLE = len("1764123456.123456\n")
TICK_S = 0.02
"""What the kernel's own times of files are late at most."""


def stamps(machine: Machine, order: RunOrder) -> list[tuple[float, float]]:
    """Return of each line when its program says that it was written, and when we do."""
    logs, found, end = ProcessLogs(machine.directory), [], 0
    known = logs.times(order.job_id, 1, 0)
    for line in machine.log(order).splitlines(keepends=True):
        end += len(line)
        at = known.at(end)
        assert at is not None
        found.append((float(line), at))
    return found


def test_lines_have_the_time_of_the_look_that_found_them(machine: Machine) -> None:
    order = machine.start(sys.executable, "-c", STAMPS, "12", "0.07")
    assert machine.finish(order).succeeded
    late = [ours - theirs for theirs, ours in stamps(machine, order)]
    assert len(late) == 12
    assert all(-TICK_S < one < 1.1 for one in late), late
    assert sorted(late)[6] < 0.5, "a look is a tenth of a second from the next"


def test_a_line_after_a_pause_has_its_own_time(machine: Machine) -> None:
    order = machine.start(sys.executable, "-c", STAMPS, "2", "1.1")
    assert machine.finish(order).succeeded
    assert all(abs(ours - theirs) < TICK_S for theirs, ours in stamps(machine, order))


def test_a_program_that_ends_at_once_leaves_no_more_than_its_log(machine: Machine) -> None:
    order = machine.start("sh", "-c", "echo done")
    assert machine.finish(order).succeeded
    run = log_path(machine.directory, order.job_id, 1, 0).parent
    assert not (run / "times").exists()
    assert abs(ProcessLogs(machine.directory).times(order.job_id, 1, 0).moments[0] - time.time()) < 10


def test_what_was_written_before_a_second_dispatch_keeps_its_time(machine: Machine) -> None:
    first = machine.start("sh", "-c", "echo one", job_id="again")
    machine.finish(first)
    log = log_path(machine.directory, "again", 1, 0)
    os.utime(log, (1000, 1000))
    second = machine.start("sh", "-c", "echo two", job_id="again")
    machine.finish(second)
    known = ProcessLogs(machine.directory).times("again", 1, 0)
    assert known.at(4) == 1000
    assert abs((known.at(8) or 0) - time.time()) < 10


@pytest.mark.parametrize("killed", ["supervisor", "shim", "both"])
def test_times_go_on_over_kills(machine: Machine, killed: str) -> None:
    order = machine.start(sys.executable, "-c", STAMPS, "25", "0.1")
    machine.until(order, lambda seen: seen.started_at)
    noted = log_path(machine.directory, order.job_id, 1, 0).with_name("times")
    deadline = time.monotonic() + 10
    while not noted.exists() or len(times.read(os.fspath(noted), None)[0]) < 3:
        assert time.monotonic() < deadline
        machine.changed.wait(0.05)
    before = [*zip(*times.read(os.fspath(noted), None), strict=True)]
    if killed in {"shim", "both"}:
        machine.shim().kill()
    if killed in {"supervisor", "both"}:
        for supervisor in machine.supervisors():
            supervisor.kill()
    machine.finish(order)
    after = [*zip(*times.read(os.fspath(noted), None), strict=True)]
    assert after[: len(before)] == before
    found = stamps(machine, order)
    assert all(-TICK_S < ours - theirs < 5 for theirs, ours in found)
    assert all(a[1] <= b[1] for a, b in pairwise(found))
    assert len(after) > len(before) + 2


def test_what_a_capped_log_still_has_keeps_its_times(new_machine: NewMachine, tmp_path: Path) -> None:
    machine = new_machine(tmp_path, log_limit=64 << 10)
    program = "import time\nend = time.time() + 1.5\nwhile time.time() < end: print(f'{time.time():.6f}', flush=True)"
    order = machine.start(sys.executable, "-c", program)
    assert machine.finish(order).succeeded
    logs = ProcessLogs(machine.directory)
    known, part = logs.times(order.job_id, 1, 0), logs.read(order.job_id, 1, 0, offset=0, limit=1 << 20)
    assert part.offset > 0
    end, late = part.offset, []
    for line in part.data.splitlines(keepends=True):
        end += len(line)
        at = known.at(end)
        assert at is not None
        late += [at - float(line)] if len(line) == WHOLE else []
    assert len(late) > 1000
    assert all(-TICK_S < one < 1.1 for one in late), (min(late), max(late))
