"""What a machine has left and what its runs use of it, measured on real programs, control groups and disks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from holdfast.domain.placement.pressure import Pressure, Threshold
from holdfast.domain.shortage import Shortage
from holdfast.engines.process import usage
from holdfast.engines.process.pressure import PressureWatch
from holdfast.ports.engine import Observation, RunPhase

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MI = 1 << 20
HOLDS = "import os, sys; held = bytearray(50 << 20); held[::4096] = b'1' * len(held[::4096]); "
WRITES = "import os; file = open('big', 'wb', 0); file.write(b'x' * (8 << 20)); os.unlink('big'); "
WAITS = "import sys; print('there', flush=True); sys.stdin.read()"
UID = "job-1-0-1"


@contextmanager
def program(directory: Path, code: str, uid: str = UID) -> Iterator[subprocess.Popen[str]]:
    """Run a program as one of a run, in a work folder of its own, until it is let go."""
    folder = run_folder(directory, uid)
    (folder / "work").mkdir(parents=True, exist_ok=True)
    marks = {"HOLDFAST_ATTEMPT_UID": uid, "HOLDFAST_TERMINATION_LOG": f"{folder}/termination"}
    pipe, none = subprocess.PIPE, subprocess.DEVNULL
    words = [sys.executable, "-c", code]
    with subprocess.Popen(
        words, env=marks, cwd=folder / "work", stdin=pipe, stdout=pipe, stderr=none, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "there\n"
        yield running
        running.communicate()


def run_folder(directory: Path, uid: str = UID) -> Path:
    job, attempt, rank, _ = uid.rsplit("-", 3)
    return directory / "jobs" / job / f"{attempt}.{rank}"


def used(directory: Path, *lacking: Shortage) -> Mapping[Shortage, int]:
    folders = {UID: str(run_folder(directory))}
    return usage.used(str(directory), folders, dict.fromkeys(lacking, ""))[UID]


def test_memory_is_that_of_all_processes_of_a_run_and_of_no_other(tmp_path: Path) -> None:
    child = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {HOLDS + WAITS!r}]).wait()"
    ours, others = tmp_path / "runs", tmp_path / "other"
    with program(ours, child), program(others, HOLDS + WAITS), program(ours, HOLDS + WAITS, "job-2-0-1"):
        assert 50 * MI < used(ours, Shortage.MEMORY)[Shortage.MEMORY] < 90 * MI


def test_memory_that_forked_processes_share_until_they_write_to_it_counts_once(tmp_path: Path) -> None:
    """The children end when their parent does, for want of somebody to write to them."""
    waits = "os.close(held_open); os.read(end, 1); os._exit(0)"
    forks = f"\nend, held_open = os.pipe()\nfor _ in range(3):\n if not os.fork(): {waits}\n"
    with program(tmp_path, HOLDS + forks + WAITS):
        assert 50 * MI < used(tmp_path, Shortage.MEMORY)[Shortage.MEMORY] < 90 * MI


def test_a_child_without_its_environment_is_of_the_run_of_its_parent(tmp_path: Path) -> None:
    cleared = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {HOLDS + WAITS!r}], env={{}}).wait()"
    with program(tmp_path, cleared):
        assert used(tmp_path, Shortage.MEMORY)[Shortage.MEMORY] > 50 * MI


def test_disk_is_what_is_in_the_folder_of_a_run_and_what_it_has_open_without_a_name(tmp_path: Path) -> None:
    with program(tmp_path, WRITES + WAITS):
        (run_folder(tmp_path) / "log").write_bytes(b"x" * 3 * MI)
        found = used(tmp_path, Shortage.DISK, Shortage.INODES)
    assert 11 * MI <= found[Shortage.DISK] < 12 * MI
    assert found[Shortage.INODES] == 3  # work, the log, and the file without a name


def test_disk_that_a_program_writes_elsewhere_counts_while_it_writes(tmp_path: Path) -> None:
    code = f"file = open({str(tmp_path / 'elsewhere')!r}, 'wb', 0); file.write(b'x' * (8 << 20)); " + WAITS
    with program(tmp_path / "runs", code):
        assert used(tmp_path / "runs", Shortage.DISK)[Shortage.DISK] >= 8 * MI
    assert used(tmp_path / "runs", Shortage.DISK)[Shortage.DISK] < MI


def test_what_a_machine_has_left_is_what_the_kernel_says(tmp_path: Path) -> None:
    (machine, *_) = usage.memory_levels(groups=())
    assert (machine.of, machine.total) == (Shortage.MEMORY, psutil.virtual_memory().total)
    assert machine.available == pytest.approx(psutil.virtual_memory().available, rel=0.2)
    disk = usage.disk_levels(str(tmp_path), [str(tmp_path), "/proc"])
    assert disk[0].total == psutil.disk_usage(str(tmp_path)).total
    assert [level.where for level in disk if level.of is Shortage.DISK] == ["", "/proc"]


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ({"memory.max": "1000", "memory.current": "700", "memory.stat": "inactive_file 200\nfile 300"}, [500]),
        ({"memory.max": "max", "memory.current": "700", "memory.stat": ""}, []),
        (
            {
                "memory.limit_in_bytes": "1000",
                "memory.usage_in_bytes": "1200",
                "memory.stat": "inactive_file 900\ntotal_inactive_file 100",
            },
            [0],
        ),
        ({"memory.limit_in_bytes": "9223372036854771712", "memory.usage_in_bytes": "1", "memory.stat": ""}, []),
        ({}, []),
    ],
    ids=["version 2", "version 2 without a limit", "version 1 beyond it", "version 1 without a limit", "none"],
)
def test_a_control_group_has_its_limit_less_what_cannot_be_dropped(
    tmp_path: Path, files: Mapping[str, str], left: list[int]
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    levels = usage.memory_levels("/nowhere", [str(tmp_path)])
    assert [(level.available, level.total, level.where) for level in levels] == [
        (each, 1000, str(tmp_path)) for each in left
    ]


def test_programs_that_work_on_another_disk_have_it_looked_at(tmp_path: Path) -> None:
    with program(tmp_path, WAITS):
        assert usage.working_directories(usage.programs(str(tmp_path))) == [str(run_folder(tmp_path) / "work")]
    assert usage.working_directories([usage.MeasuredProcess(os.getpid(), UID)]) == [str(Path.cwd())]


def test_a_watch_tells_at_each_look_what_is_lacking_and_has_what_was_evicted_leave_its_work_folder(
    tmp_path: Path,
) -> None:
    told: list[Pressure | None] = []
    twice = threading.Event()

    def tell(pressure: Pressure | None) -> None:
        told.append(pressure)
        if len(told) > 1:
            twice.set()

    cleared: list[str] = []
    evicted = [["job-2-0-1"]]
    with program(tmp_path, HOLDS + WAITS):
        watch = PressureWatch(
            tmp_path,
            [Threshold(Shortage.DISK, share=0.999999), Threshold(Shortage.MEMORY, share=0.999999)],
            observe=lambda: {UID: Observation(UID, RunPhase.RUNNING)},
            evicted=lambda: evicted.pop() if evicted else [],
            clear=cleared.extend,
            tell=tell,
        )
        assert twice.wait(20)
        watch.close()
    first, second = told[:2]
    assert first is not None
    assert second is not None
    assert (first.look, second.look) == (1, 2)
    assert [lack.of for lack in first.lacks] == [Shortage.MEMORY, Shortage.DISK]
    assert first.uses[UID][Shortage.MEMORY] > 50 * MI
    assert cleared == [str(run_folder(tmp_path, "job-2-0-1"))]
