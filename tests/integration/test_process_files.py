"""Whatever runs leave behind, it can be deleted, and nothing beside it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from holdfast.engines.process.files import ProcessFiles
from holdfast.errors import InvalidRequest

if TYPE_CHECKING:
    from pathlib import Path

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
