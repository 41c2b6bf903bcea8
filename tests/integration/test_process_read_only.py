"""A directory of runs that becomes read-only: whoever holds a result keeps it and tells it, and nobody ends for it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import psutil
import pytest

from holdfast.domain.failure import FailureCondition
from holdfast.engines.process.shim.pool import UNBORN_S
from holdfast.engines.process.shim.supervisor.notes import AGAIN_EVERY_S
from holdfast.ports.engine import RunPhase
from tests.immutable import becoming_immutable
from tests.integration.conftest import Machine, ours

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.ports.engine import RunOrder
    from tests.immutable import Immutable
    from tests.integration.conftest import NewMachine

PROGRAMS = 5
DISK_BYTES = 24 << 20


class Freezing(Protocol):
    """A directory that can be made read-only while files in it are open."""

    folder: Path

    def freeze(self) -> None: ...

    def thaw(self) -> None: ...


@pytest.fixture
def immutable(tmp_path: Path) -> Iterator[Immutable]:
    (tmp_path / "runs").mkdir()
    with becoming_immutable(tmp_path / "runs") as folder:
        yield folder


class Aborted:
    """A file system of its own that the kernel makes read-only, as it does after errors of the disk (EROFS)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def freeze(self) -> None:
        subprocess.run(["mount", "-o", "remount,abort", self.folder], check=True)

    def thaw(self) -> None:
        pytest.fail("it stays so until it is mounted anew")


@pytest.fixture
def aborted(tmp_path: Path) -> Iterator[Aborted]:
    image, folder = tmp_path / "image", tmp_path / "disk"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(DISK_BYTES)
    for command in (["mkfs.ext4", "-q", str(image)], ["mount", "-o", "loop", str(image), str(folder)]):
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no image of a disk can be mounted here ({error}): none can become read-only")
    yield Aborted(folder)
    for process in ours(folder):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture(params=["immutable", "aborted"])
def freezing(request: pytest.FixtureRequest) -> Freezing:
    found: Freezing = request.getfixturevalue(request.param)
    return found


def until(machine: Machine, condition: Callable[[], object], within_s: float = 30) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        machine.changed.wait(0.02)


def start_waiting(machine: Machine, tmp_path: Path) -> list[RunOrder]:
    """Start programs that end with 6 once they are let go, and wait until they run."""
    script = (
        f"echo $HOLDFAST_ATTEMPT_UID >> {tmp_path}/ledger; while ! test -e {tmp_path}/go; do sleep 0.05; done; exit 6"
    )
    orders = [machine.start("sh", "-c", script, working_dir="/") for _ in range(PROGRAMS)]
    for order in orders:
        machine.until(order, lambda seen: seen.phase is RunPhase.RUNNING)
    return orders


def has_ended(tmp_path: Path, machine: Machine) -> bool:
    return (tmp_path / "go").exists() and not machine.survivors()


def exit_codes(machine: Machine, orders: list[RunOrder]) -> list[int | None]:
    return [machine.finish(order).containers[0].exit_code for order in orders]


def began(tmp_path: Path) -> int:
    return len((tmp_path / "ledger").read_text().split())


def test_ends_are_told_and_nobody_ends_while_nothing_can_be_written(freezing: Freezing, tmp_path: Path) -> None:
    machine = Machine(freezing.folder)
    orders = start_waiting(machine, tmp_path)
    before = {process.pid for process in ours(machine.directory)}
    freezing.freeze()
    (tmp_path / "go").touch()
    assert exit_codes(machine, orders) == [6] * PROGRAMS
    refused = machine.run("true", working_dir="/")
    assert not refused.started
    assert refused.conditions == {FailureCondition.LAUNCH_FAILED}
    assert refused.containers[0].reason == "ReadOnlyFileSystem"
    assert before <= {process.pid for process in ours(machine.directory)}
    assert machine.engine.trouble() is None
    machine.engine.forget([order.uid for order in orders])
    assert machine.run("true", working_dir="/").conditions == {FailureCondition.LAUNCH_FAILED}
    machine.engine.close()


def test_what_ended_meanwhile_is_known_to_a_later_shim(
    immutable: Immutable, new_machine: NewMachine, tmp_path: Path
) -> None:
    machine = new_machine(immutable.folder)
    orders = start_waiting(machine, tmp_path)
    immutable.freeze()
    shim = machine.shim()
    machine.engine.close()
    shim.kill()
    (tmp_path / "go").touch()
    until(machine, lambda: has_ended(tmp_path, machine))
    supervisors = machine.supervisors()
    assert len(supervisors) == PROGRAMS
    used = [sum(process.cpu_times()[:2]) for process in supervisors]
    quiet = time.monotonic() + 1.2 * AGAIN_EVERY_S  # they have tried again, and one without anything would be gone
    while time.monotonic() < quiet:
        machine.changed.wait(0.1)
    assert all(sum(each.cpu_times()[:2]) - before < 0.1 for each, before in zip(supervisors, used, strict=True))
    immutable.thaw()
    machine.open()
    assert exit_codes(machine, orders) == [6] * PROGRAMS
    assert began(tmp_path) == PROGRAMS
    assert machine.run("true").succeeded


def test_what_could_not_be_written_is_written_as_soon_as_it_can_be(
    immutable: Immutable, new_machine: NewMachine, tmp_path: Path
) -> None:
    """Then it is known also where the supervisors are killed, who had it in their memory."""
    machine = new_machine(immutable.folder)
    orders = start_waiting(machine, tmp_path)
    immutable.freeze()
    shim = machine.shim()
    machine.engine.close()
    shim.kill()
    (tmp_path / "go").touch()
    until(machine, lambda: has_ended(tmp_path, machine))
    immutable.thaw()
    records = [path for path in (machine.directory / "supervisors").glob("*.record") if path.stat().st_size]
    until(machine, lambda: all(b'"outcome"' in record.read_bytes() for record in records))
    for process in ours(machine.directory):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    machine.open()
    assert exit_codes(machine, orders) == [6] * PROGRAMS
    assert began(tmp_path) == PROGRAMS


@pytest.mark.slow  # it sees that nobody tries again and again
def test_programs_whose_supervisors_are_killed_meanwhile_go_on(
    immutable: Immutable, new_machine: NewMachine, tmp_path: Path
) -> None:
    machine = new_machine(immutable.folder)
    orders = start_waiting(machine, tmp_path)
    immutable.freeze()
    began_at = time.monotonic()
    for supervisor in machine.supervisors():
        supervisor.kill()
    later = began_at + 1.5
    while time.monotonic() < later:
        machine.changed.wait(0.1)
    (tmp_path / "go").touch()
    until(machine, lambda: has_ended(tmp_path, machine))
    immutable.thaw()
    assert exit_codes(machine, orders) == [6] * PROGRAMS
    assert began(tmp_path) == PROGRAMS
    # Others in their place could not begin, either, and nobody tried without a pause: all of them are numbered.
    made = max(int(path.stem) for path in (machine.directory / "supervisors").glob("*.record")) - PROGRAMS
    assert made <= PROGRAMS * (2 + (time.monotonic() - began_at) / UNBORN_S)


def leave_one_of_two(machine: Machine, tmp_path: Path) -> tuple[list[RunOrder], psutil.Process, int]:
    """Start two programs that end with 6 and let one go; returns the other, and the supervisor without a run."""
    for name in ("one", "two"):
        os.mkfifo(tmp_path / name)
    orders = [machine.start("sh", "-c", f"echo up; read x < {tmp_path}/{name}; exit 6") for name in ("one", "two")]
    for order in orders:
        machine.until_logged(order, "up")
    parents = {program.ppid() for program in machine.survivors()}
    (tmp_path / "two").write_text("go\n")
    machine.finish(orders[1])
    [program] = machine.survivors()
    [second] = parents - {program.ppid()}
    return orders, program, second


def test_a_run_that_was_taken_over_meanwhile_is_taken_over_once_more(
    immutable: Immutable, new_machine: NewMachine, tmp_path: Path
) -> None:
    """Its second supervisor, which had another run before, could write down nothing of it."""
    machine = new_machine(immutable.folder)
    orders, program, second = leave_one_of_two(machine, tmp_path)
    first = program.ppid()
    immutable.freeze()
    os.kill(first, signal.SIGKILL)
    until(machine, lambda: waits_for(second, program.pid))
    os.kill(second, signal.SIGKILL)
    until(machine, lambda: not psutil.pid_exists(second))
    immutable.thaw()
    (tmp_path / "one").write_text("go\n")
    assert exit_codes(machine, orders) == [6, 6]


def test_a_dead_supervisors_files_that_cannot_be_removed_keep_nobody_from_working(
    immutable: Immutable, new_machine: NewMachine, tmp_path: Path
) -> None:
    """Its record says nothing that the journal lacks, and is removed once that works."""
    machine = new_machine(immutable.folder)
    orders, program, _ = leave_one_of_two(machine, tmp_path)
    folder, shim = machine.directory / "supervisors", machine.shim()
    [record] = [path for path in folder.glob("*.record") if f'"pid":{program.pid},' in path.read_text()]
    immutable.freeze(only=folder)
    os.kill(program.ppid(), signal.SIGKILL)
    (tmp_path / "one").write_text("go\n")
    assert exit_codes(machine, orders) == [6, 6]
    assert machine.run("true").succeeded
    assert record.exists()
    assert machine.shim() == shim
    immutable.thaw()
    assert machine.run("true").succeeded
    until(machine, lambda: not record.exists())


def waits_for(pid: int, other: int) -> bool:
    """Whether a process has a descriptor that tells when another one ends."""
    files = Path(f"/proc/{pid}/fdinfo").iterdir()
    return any(f"\nPid:\t{other}\n" in file.read_text() for file in files)


def test_it_is_taken_over_once_more_also_by_a_later_shim(
    immutable: Immutable, new_machine: NewMachine, tmp_path: Path
) -> None:
    machine = new_machine(immutable.folder)
    orders, program, second = leave_one_of_two(machine, tmp_path)
    first = program.ppid()
    immutable.freeze()
    os.kill(first, signal.SIGKILL)
    until(machine, lambda: waits_for(second, program.pid))
    shim = machine.shim()
    machine.engine.close()
    shim.kill()
    os.kill(second, signal.SIGKILL)
    until(machine, lambda: not psutil.pid_exists(second))
    immutable.thaw()
    machine.open()
    machine.engine.start(orders)
    (tmp_path / "one").write_text("go\n")
    assert machine.finish(orders[0]).containers[0].exit_code == 6
