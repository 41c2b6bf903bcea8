"""Whatever runs leave behind, it can be deleted, and nothing beside it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.engines.process.files import ProcessFiles
from holdfast.engines.process.shim.removal import __main__ as removal
from holdfast.errors import InvalidRequest

ANN, BOB = 65534, 65533
GROWS = """
print(flush=True)
for n in itertools.count():
    with contextlib.suppress(OSError):
        os.makedirs(f"{n % 300}/deep", exist_ok=True)
"""
"""Makes folders faster than anybody deletes them."""
SEALED = """
import os, sys
from pathlib import Path
from holdfast.engines.process.files import ProcessFiles
place = Path()
if os.geteuid() == 0:
    os.chown(place, 65534, 65534)
    os.setgroups([])
    os.setuid(65534)
work = place / "jobs" / "j1" / "1.0" / "work"
(work / "deep" / "deeper").mkdir(parents=True)
(work / "deep" / "deeper" / "file").write_text("x")
for sealed in (work / "deep" / "deeper", work / "deep", work):
    sealed.chmod(0o000)
ProcessFiles(place).discard(["j1"])
sys.exit((place / "jobs" / "j1").exists())
"""


def test_a_jobs_directory_goes_and_its_neighbours_stay(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for job_id in ("j1", "j2"):
        (tmp_path / "jobs" / job_id / "1.0").mkdir(parents=True)
        (tmp_path / "jobs" / job_id / "1.0" / "log").write_text("x")
    (tmp_path / "jobs" / "j1" / "1.0" / "link").symlink_to(outside)
    ProcessFiles(tmp_path).discard(["j1"])
    ProcessFiles(tmp_path).discard(["j1"])
    assert [path.name for path in (tmp_path / "jobs").iterdir()] == ["j2"]
    assert outside.is_dir()


def test_what_an_interrupted_deletion_left_goes_with_what_came_after_it(tmp_path: Path) -> None:
    for job_id in (".j1", "j1"):
        (tmp_path / "jobs" / job_id / "checkpoints").mkdir(parents=True)
    ProcessFiles(tmp_path).discard(["j1"])
    assert list((tmp_path / "jobs").iterdir()) == []


@pytest.mark.parametrize("job_id", ["", ".", "..", "../x", "a/b"])
def test_what_is_no_job_id_deletes_nothing(tmp_path: Path, job_id: str) -> None:
    with pytest.raises(InvalidRequest):
        ProcessFiles(tmp_path).discard([job_id])
    assert tmp_path.is_dir()


def test_directories_a_program_sealed_are_opened_and_deleted(tmp_path: Path) -> None:
    """Seals mean nothing to root, so the program becomes nobody where it can."""
    assert subprocess.run([sys.executable, "-c", SEALED], check=False, cwd=tmp_path).returncode == 0


def test_a_tree_of_any_depth_and_width_goes_and_links_in_it_lead_nowhere(tmp_path: Path) -> None:
    work = tmp_path / "jobs" / "j1" / "1.0" / "work"
    work.mkdir(parents=True)
    for number in range(10_100):
        (work / str(number)).touch()
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    (outside / "kept").touch()
    with contextlib.chdir(work):
        for _ in range(3_000):  # more than a path, or a recursion, can have
            Path("deep").mkdir()
            Path("link").symlink_to(outside)
            os.chdir("deep")
    ProcessFiles(tmp_path).discard(["j1"])
    assert [path.name for path in (tmp_path / "jobs").iterdir()] == []
    assert [path.name for path in outside.iterdir()] == ["kept"]
    assert outside.stat().st_mode & 0o777 == 0o755


def owned(folder: Path, uid: int, mode: int = 0o700) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    os.chown(folder, uid, uid)
    folder.chmod(mode)
    return folder


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    if os.geteuid() != 0:
        pytest.skip("only root deletes what is another account's")
    return owned(tmp_path / "jobs", 0, 0o711)


def discarded(jobs: Path, *ids: str, limit_s: float = 20.0) -> dict[str, str]:
    command = [sys.executable, "-I", "-S", removal.__file__, str(jobs), str(limit_s)]
    done = subprocess.run(command, input=json.dumps(ids), capture_output=True, text=True, check=True)
    kept: dict[str, str] = json.loads(done.stdout)
    return kept


def test_what_somebody_still_writes_into_keeps_no_other_waiting_and_goes_the_next_time(jobs: Path) -> None:
    """As a login of the account may, which the end of its programs does not end."""
    work, other = owned(jobs / "j1" / "1.0", ANN), owned(jobs / "j2" / "1.0", BOB)
    writing = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import contextlib, itertools, os; os.chdir({str(work)!r}); os.setgroups([]); os.setuid({ANN})\n{GROWS}",
        ],
        stdout=subprocess.PIPE,
    )
    assert writing.stdout is not None
    with writing:
        writing.stdout.readline()
        kept = discarded(jobs, "j1", "j2", limit_s=0.0)
        writing.kill()
    assert kept == {"j1": f"cannot delete all of {jobs}/.j1: it takes longer than it may at once"}
    assert not other.exists()
    assert (jobs / ".j1").stat().st_mode & 0o777 == 0o700, "so that nobody finds a way into it"
    assert discarded(jobs, "j1") == {}
    assert list(jobs.iterdir()) == []


def test_what_an_account_moved_into_its_folder_of_anothers_stays_whole_and_is_named(jobs: Path) -> None:
    """It may move what it may not empty: a folder in a shared one that its group can write to."""
    owned(jobs / "j1" / "1.0", ANN)
    deep = owned(jobs / "j1" / "1.0" / "deep", ANN)
    owned(deep / "deeper", ANN)
    for place in (jobs / "j1" / "1.0", deep / "deeper"):
        theirs = owned(place / "theirs", BOB, 0o2770)
        os.chown(theirs, BOB, ANN)
        owned(theirs / "private", BOB)
        (theirs / "private" / "precious").write_text("of weeks")
        (place / "own").touch()
        os.chown(place / "own", ANN, ANN)
    kept = discarded(jobs, "j1")
    assert len([*(jobs / ".j1").rglob("precious")]) == 2
    assert list((jobs / ".j1").rglob("own")) == []
    assert kept["j1"].count(f"it belongs to the account with number {BOB}, and is left to that") == 2
    assert "1.0/theirs: it" in kept["j1"]


def test_root_empties_no_folder_of_another_account_either(jobs: Path) -> None:
    owned(jobs / "j1" / "1.0", 0)
    theirs = owned(jobs / "j1" / "1.0" / "work" / "theirs", BOB)
    (theirs / "precious").touch()
    kept = discarded(jobs, "j1")
    assert f"theirs: it belongs to the account with number {BOB}" in kept["j1"]
    assert len([*(jobs / ".j1").rglob("precious")]) == 1


def test_links_to_what_is_anothers_go_and_what_they_lead_to_stays(jobs: Path, tmp_path: Path) -> None:
    run, outside = owned(jobs / "j1" / "1.0", ANN), owned(tmp_path / "outside", BOB)
    (outside / "precious").write_text("kept")
    (run / "soft").symlink_to(outside)
    (run / "hard").hardlink_to(outside / "precious")
    (jobs / "j1" / "2.0").symlink_to(outside)
    assert discarded(jobs, "j1") == {}
    assert list(jobs.iterdir()) == []
    assert (outside / "precious").read_text() == "kept"


def test_what_cannot_be_deleted_is_named(tmp_path: Path) -> None:
    mounted = tmp_path / "jobs" / "j1" / "1.0" / "mounted"
    mounted.mkdir(parents=True)
    tmp_path.joinpath("jobs").chmod(0o711)
    if subprocess.run(["mount", "-t", "tmpfs", "none", mounted], check=False, capture_output=True).returncode != 0:
        pytest.skip("file systems cannot be mounted here")
    aside = tmp_path / "jobs" / ".j1"
    os.chown(mounted.parent, 65534, 65534)
    mounted.parent.chmod(0o777)
    try:
        [kept] = ProcessFiles(tmp_path).discard(["j1"]).values()
        assert kept == f"cannot delete all of {aside}: 1.0/mounted: Device or resource busy"
    finally:
        [place] = aside.rglob("mounted")
        subprocess.run(["umount", place], check=True)
    ProcessFiles(tmp_path).discard(["j1"])
    assert not aside.exists()
