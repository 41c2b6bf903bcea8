"""Where a run's files are: always below the engine's directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.engines.process.files import ProcessFiles, ProcessLogs, log_path
from holdfast.errors import InvalidRequest

if TYPE_CHECKING:
    from pathlib import Path

OUTSIDE = ["", ".", "..", "../..", "../../etc", "/etc", "a/b", "a/../../b", ".hidden", "a\0b"]


@pytest.mark.parametrize("job_id", OUTSIDE)
def test_what_is_no_file_name_leads_to_no_file(job_id: str, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("kept")
    with pytest.raises(InvalidRequest):
        log_path(tmp_path, job_id, 1, 0)
    with pytest.raises(InvalidRequest):
        ProcessLogs(tmp_path).read(job_id, 1, 0, offset=0, limit=10)
    with pytest.raises(InvalidRequest):
        ProcessFiles(tmp_path).discard([job_id])
    assert (tmp_path / "kept").exists()


@pytest.mark.parametrize("job_id", ["01j9x", "a..b", "%2e%2e", "a b", "ä"])
def test_whatever_is_a_file_name_stays_below_the_jobs(job_id: str, tmp_path: Path) -> None:
    path = log_path(tmp_path, job_id, 1, 0)
    assert path.resolve().is_relative_to(tmp_path / "jobs" / job_id)


def test_a_log_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    path = log_path(tmp_path, "job", 1, 0)
    path.parent.mkdir(parents=True)
    path.symlink_to(secret)
    assert ProcessLogs(tmp_path).read("job", 1, 0, offset=0, limit=10).data == b""
