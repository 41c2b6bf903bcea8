"""Whatever runs leave behind, it can be deleted, and nothing beside it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.engines.process.files import ProcessFiles
from holdfast.errors import InvalidRequest, Unavailable

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
ProcessFiles(place).discard("j1")
sys.exit((place / "jobs" / "j1").exists())
"""


def test_a_jobs_directory_goes_and_its_neighbours_stay(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for job_id in ("j1", "j2"):
        (tmp_path / "jobs" / job_id / "1.0").mkdir(parents=True)
        (tmp_path / "jobs" / job_id / "1.0" / "log").write_text("x")
    (tmp_path / "jobs" / "j1" / "1.0" / "link").symlink_to(outside)
    ProcessFiles(tmp_path).discard("j1")
    ProcessFiles(tmp_path).discard("j1")
    assert [path.name for path in (tmp_path / "jobs").iterdir()] == ["j2"]
    assert outside.is_dir()


def test_what_an_interrupted_deletion_left_goes_with_what_came_after_it(tmp_path: Path) -> None:
    for job_id in (".j1", "j1"):
        (tmp_path / "jobs" / job_id / "checkpoints").mkdir(parents=True)
    ProcessFiles(tmp_path).discard("j1")
    assert list((tmp_path / "jobs").iterdir()) == []


@pytest.mark.parametrize("job_id", ["", ".", "..", "../x", "a/b"])
def test_what_is_no_job_id_deletes_nothing(tmp_path: Path, job_id: str) -> None:
    with pytest.raises(InvalidRequest):
        ProcessFiles(tmp_path).discard(job_id)
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
    ProcessFiles(tmp_path).discard("j1")
    assert [path.name for path in (tmp_path / "jobs").iterdir()] == []
    assert [path.name for path in outside.iterdir()] == ["kept"]
    assert outside.stat().st_mode & 0o777 == 0o755


def test_what_somebody_still_writes_into_goes_all_the_same(tmp_path: Path) -> None:
    """As a login of the account may, which the end of its programs does not end."""
    if os.geteuid() != 0:
        pytest.skip("only root deletes what is another account's")
    tmp_path.chmod(0o711)
    work = tmp_path / "jobs" / "j1" / "1.0"
    work.mkdir(parents=True)
    os.chown(work, 65534, 65534)
    code = "import itertools, os; [os.makedirs(f'{n}/deep', exist_ok=True) for n in itertools.count()]"
    writing = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import os; os.chdir({str(work)!r}); os.setgroups([]); os.setuid(65534); print(flush=True); {code}",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert writing.stdout is not None
    with writing:
        writing.stdout.readline()
        ProcessFiles(tmp_path).discard("j1")
        assert writing.wait() == 1, "it may not any more"
    assert list((tmp_path / "jobs").iterdir()) == []


def test_what_cannot_be_deleted_is_named(tmp_path: Path) -> None:
    mounted = tmp_path / "jobs" / "j1" / "1.0" / "mounted"
    mounted.mkdir(parents=True)
    if subprocess.run(["mount", "-t", "tmpfs", "none", mounted], check=False, capture_output=True).returncode != 0:
        pytest.skip("file systems cannot be mounted here")
    aside = tmp_path / "jobs" / ".j1"
    os.chown(mounted.parent, 65534, 65534)
    mounted.parent.chmod(0o777)
    try:
        with pytest.raises(Unavailable, match=r"cannot delete all of .*/jobs/\.j1: mounted: Device or resource busy"):
            ProcessFiles(tmp_path).discard("j1")
    finally:
        [place] = aside.rglob("mounted")
        subprocess.run(["umount", place], check=True)
    found = place.parent.stat()
    assert (found.st_uid, found.st_mode & 0o777) == (os.geteuid(), 0o700), "so that nobody else can put more into it"
    ProcessFiles(tmp_path).discard("j1")
    assert not aside.exists()
