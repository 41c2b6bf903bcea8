"""What happens to the engine of processes when disks and file systems fail: only the run they belong to may notice."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.failure import EndedBy, FailureCondition
from holdfast.domain.workloads.watching import StallLimits
from holdfast.ports.engine import RunPhase, StopReason
from tests.integration.conftest import Machine, ours

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from holdfast.ports.engine import RunOrder
    from tests.integration.conftest import NewMachine

_LIBC = ctypes.CDLL(None, use_errno=True)
DISK_BYTES = 2 << 20


def until(machine: Machine, condition: Callable[[], object], within_s: float = 30) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        machine.changed.wait(0.02)


def mount(source: str, target: Path, kind: str, options: str) -> None:
    if _LIBC.mount(source.encode(), os.fsencode(target), kind.encode(), 0, options.encode()):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@pytest.fixture
def silent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory on a file system whose server never answers, as NFS is whose server is gone."""
    folder = tmp_path_factory.mktemp("silent")
    try:
        device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        mount("silent", folder, "fuse", f"fd={device},rootmode=40000,user_id=0,group_id=0")
    except OSError as error:
        pytest.skip(f"no file system can be mounted here ({error}): nothing can be made to hang")
    yield folder
    os.close(device)  # ends every call that waits
    with contextlib.suppress(subprocess.CalledProcessError):
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file system with little room."""
    folder = tmp_path_factory.mktemp("small")
    try:
        mount("none", folder, "tmpfs", f"size={DISK_BYTES}")
    except OSError as error:
        pytest.skip(f"no file system can be mounted here ({error}): a full disk cannot be made")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def fill(folder: Path) -> Path:
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (65536, 512, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)
    return ballast


# file systems that do not answer


def test_a_directory_that_does_not_answer_stops_only_its_own_run(machine: Machine, silent: Path) -> None:
    hung = machine.start("true", working_dir=str(silent))
    timed = machine.start("sleep", "1000", deadline_s=0.5)
    began = time.monotonic()
    assert machine.run("sh", "-c", "exit 3").containers[0].exit_code == 3
    assert machine.finish(timed).ended_by is EndedBy.DEADLINE
    assert machine.engine.trouble() is None
    assert time.monotonic() - began < 15
    assert machine.engine.observe()[hung.uid].phase is RunPhase.STARTING
    machine.engine.stop([(hung.uid, 0.0, StopReason.USER)])
    outcome = machine.finish(hung)
    assert (outcome.started, outcome.ended_by) == (False, EndedBy.USER)


def test_a_program_that_does_not_answer_stops_only_its_own_run(machine: Machine, silent: Path) -> None:
    hung = machine.start(str(silent / "program"))
    assert machine.run("true").succeeded
    machine.engine.stop([(hung.uid, 0.0, StopReason.USER)])
    assert not machine.finish(hung).started


def test_what_does_not_start_in_time_could_not_be_launched(
    new_machine: NewMachine, silent: Path, tmp_path: Path
) -> None:
    machine = new_machine(tmp_path, launch_limit_s=0.5)
    outcome = machine.run("true", working_dir=str(silent))
    assert (outcome.started, outcome.conditions) == (False, frozenset({FailureCondition.LAUNCH_FAILED}))
    assert outcome.containers[0].reason == "LaunchTimeout"
    assert "did not answer for 0.5 s" in outcome.message
    assert machine.run("true").succeeded


def unheard(machine: Machine, silent: Path, script: str) -> RunOrder:
    """Start a program whose supervisor then hangs, before it can write down that it did: it looks for py-spy."""
    return machine.start(
        "/bin/sh", "-c", script, stall=StallLimits(no_output_s=600.0), env={"PATH": str(silent / "bin")}
    )


def test_a_program_whose_supervisor_was_killed_before_it_said_so_may_have_run(machine: Machine, silent: Path) -> None:
    done = machine.directory / "done"
    order = unheard(machine, silent, f"echo once >> {done}")
    until(machine, done.exists)
    until(machine, lambda: not machine.survivors())
    machine.engine.close()
    for process in [machine.shim(), *machine.supervisors()]:
        process.kill()
    until(machine, lambda: not ours(machine.directory))
    machine.open()
    outcome = machine.finish(order)
    assert (outcome.started, outcome.started_at, outcome.end_unknown) == (True, None, True)
    assert "may have run" in outcome.message
    assert done.read_text() == "once\n"


def test_a_program_that_runs_is_not_ended_with_the_supervisor_that_hangs_before_it_says_so(
    new_machine: NewMachine, silent: Path, tmp_path: Path
) -> None:
    machine = new_machine(tmp_path, launch_limit_s=0.5)
    go = tmp_path / "go"
    order = unheard(machine, silent, f"while ! test -e {go}; do :; done; exit 6")
    machine.until(order, lambda seen: seen.phase is RunPhase.RUNNING)
    go.touch()
    assert machine.finish(order).containers[0].exit_code == 6


def test_files_that_do_not_answer_any_more_hide_only_what_they_say(machine: Machine) -> None:
    """A program mounts a file system over its own directory that never answers, and ends."""
    code = (
        "import ctypes, os\n"
        "run = os.path.dirname(os.environ['HOLDFAST_TERMINATION_LOG'])\n"
        "device = os.open('/dev/fuse', os.O_RDWR)\n"
        "os.set_inheritable(device, True)\n"
        "os.chdir('/')\n"
        "options = f'fd={device},rootmode=40000,user_id=0,group_id=0'.encode()\n"
        "if ctypes.CDLL(None).mount(b'x', run.encode(), b'fuse', 0, options): os._exit(99)\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    import time; time.sleep(1000)\n"
        "os._exit(5)\n"
    )
    order = machine.start("python3", "-c", code, job_id="hides")
    other = machine.start("sleep", "1000")
    assert machine.run("true").succeeded
    outcome = machine.finish(order)
    subprocess.run(["umount", "-l", machine.directory / "jobs" / "hides" / "1.0"], check=False)
    assert outcome.containers[0].exit_code in {5, 99}
    assert machine.engine.observe()[other.uid].phase is RunPhase.RUNNING


# full disks


def test_nothing_starts_that_cannot_be_written_down(new_machine: NewMachine, small_disk: Path) -> None:
    machine = new_machine(small_disk)
    assert machine.run("true").succeeded
    ballast = fill(small_disk)
    outcomes = [machine.run("sh", "-c", "echo ran > /dev/null") for _ in range(3)]
    ballast.unlink()
    for outcome in outcomes:
        assert outcome.succeeded or outcome.conditions == {FailureCondition.LAUNCH_FAILED}
    assert machine.run("true").succeeded


def test_programs_on_a_full_disk_are_not_started_a_second_time_when_the_shim_is_killed(
    new_machine: NewMachine, small_disk: Path, tmp_path: Path
) -> None:
    machine = new_machine(small_disk)
    ledger = tmp_path / "ledger"
    # As many as have a supervisor and a directory already, so that only the journal can be refused.
    script = f"echo $HOLDFAST_ATTEMPT_UID >> {ledger}; while ! test -e {tmp_path}/go; do sleep 0.02; done; exit 6"
    for _ in range(3):
        assert machine.run("true").succeeded
    ballast = fill(small_disk)
    orders = [machine.start("sh", "-c", script, working_dir="/") for _ in range(5)]
    until(machine, lambda: all(machine.engine.observe()[order.uid].phase is not RunPhase.STARTING for order in orders))
    machine.shim().kill()
    until(machine, lambda: machine.engine.trouble() is None and len(ours(machine.directory, "holdfast-shim")) == 1)
    (tmp_path / "go").touch()
    outcomes = [machine.finish(order) for order in orders]
    ballast.unlink()
    began = ledger.read_text().split() if ledger.exists() else []
    assert len(began) == len(set(began))
    for order, outcome in zip(orders, outcomes, strict=True):
        assert outcome.started == (order.uid in began)
        assert outcome.started or outcome.conditions == {FailureCondition.LAUNCH_FAILED}
        assert not outcome.started or outcome.containers[0].exit_code == 6


def test_ends_on_a_full_disk_are_kept_over_the_death_of_server_and_shim(
    new_machine: NewMachine, small_disk: Path, tmp_path: Path
) -> None:
    machine = new_machine(small_disk)
    script = f"while ! test -e {tmp_path}/go; do sleep 0.02; done; exit 6"
    orders = [machine.start("sh", "-c", script, working_dir="/") for _ in range(5)]
    for order in orders:
        machine.until(order, lambda seen: seen.phase is RunPhase.RUNNING)
    ballast = fill(small_disk)
    machine.engine.close()
    (tmp_path / "go").touch()
    until(machine, lambda: not machine.survivors())
    for process in ours(machine.directory, "holdfast-shim"):
        process.kill()
    machine.open()
    assert [machine.finish(order).containers[0].exit_code for order in orders] == [6] * 5
    ballast.unlink()


def test_a_shim_does_not_leave_with_results_it_could_not_write_down(
    new_machine: NewMachine, small_disk: Path, tmp_path: Path
) -> None:
    machine = new_machine(small_disk)
    order = machine.start("sh", "-c", f"while ! test -e {tmp_path}/go; do sleep 0.02; done; exit 6", working_dir="/")
    machine.until(order, lambda seen: seen.phase is RunPhase.RUNNING)
    ballast = fill(small_disk)
    machine.engine.close()
    (tmp_path / "go").touch()
    until(machine, lambda: not machine.survivors())
    quiet = time.monotonic() + 1.0  # ten times as long as a shim with nothing to do stays here
    while time.monotonic() < quiet:
        machine.changed.wait(0.1)
    machine.open()
    assert machine.finish(order).containers[0].exit_code == 6
    ballast.unlink()
