"""What ``holdfast doctor`` finds on real directories, databases, limits and programs, and what it makes of it."""

from __future__ import annotations

import os
import resource
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.app import doctor
from holdfast.app.doctor import Finding, Verdict, examine
from holdfast.app.settings import Settings
from holdfast.engines.process.shim import cgroups
from holdfast.errors import Conflict
from holdfast.storage.sql import open_store

OK, WARN, FAIL = Verdict.OK, Verdict.WARN, Verdict.FAIL


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A private data directory."""
    found = tmp_path / "data"
    found.mkdir(mode=0o700)
    return found


def test_a_directory_is_private_or_shared_and_is_never_made(tmp_path: Path, data: Path) -> None:
    assert doctor.directory(Settings(data=data)).verdict is OK
    data.chmod(0o755)
    found = doctor.directory(Settings(data=data))
    assert (found.verdict, found.advice) == (WARN, f"chmod 700 {data}")
    missing = tmp_path / "not" / "there"
    assert doctor.directory(Settings(data=missing)).verdict is OK
    assert not missing.parent.exists()
    file = tmp_path / "file"
    file.touch()
    assert doctor.directory(Settings(data=file / "below")).verdict is FAIL
    assert doctor.directory(Settings(data=file)).verdict is FAIL


@pytest.mark.parametrize(
    ("kind", "with_file", "on_a_server"),
    [
        ("ext4", OK, OK),
        ("", OK, OK),
        ("nfs4", FAIL, WARN),
        ("cifs", FAIL, WARN),
        ("fuse.sshfs", FAIL, WARN),
        ("tmpfs", WARN, WARN),
        ("overlay", WARN, WARN),
    ],
)
def test_a_file_system_is_judged_by_what_is_kept_on_it(kind: str, with_file: Verdict, on_a_server: Verdict) -> None:
    assert doctor.of_kind(kind, has_database=True).verdict is with_file
    assert doctor.of_kind(kind, has_database=False).verdict is on_a_server


def test_the_file_system_is_that_of_the_innermost_mount() -> None:
    mounts = [line.split(" - ") for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    kinds = {before.split()[4]: after.split()[0] for before, after in mounts}
    found = doctor.file_system(Settings(data=Path("/proc/sys")))
    assert found.detail.startswith(kinds.get("/proc/sys", kinds["/proc"]))


def test_a_database_is_sound_damaged_or_not_there_yet(data: Path) -> None:
    settings = Settings(data=data)
    assert "will be created" in doctor.database(settings).detail
    with closing(open_store(data / "holdfast.db")):
        pass
    assert doctor.database(settings).detail.endswith("0 jobs, sound")
    with (data / "holdfast.db").open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096)
    assert next(one for one in _examined(data) if one.name == "database").verdict is FAIL


def test_a_database_that_is_gone_is_no_new_one(data: Path) -> None:
    (data / "holdfast.db.lock").write_text('{"epoch": 3}')
    with pytest.raises(Conflict, match="is gone"):
        doctor.database(Settings(data=data))
    assert next(one for one in _examined(data) if one.name == "database").verdict is FAIL


def _examined(data: Path) -> list[Finding]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_DATA", str(data))
        return list(examine())


def test_every_finding_has_its_name_and_every_trouble_its_advice(data: Path) -> None:
    found = _examined(data)
    assert len({one.name for one in found}) == len(found) > 10
    assert [one for one in found if not one.detail] == []
    assert [one for one in found if one.verdict is not OK and not one.advice] == []
    assert next(one for one in found if one.name == "server").verdict is WARN


def test_gpus_that_are_not_there_and_those_in_trouble_are_told(data: Path, tmp_path: Path) -> None:
    assert doctor.gpus(Settings(data=data)).detail == "0 found, 0 handed out"
    assert "do not exist" in doctor.gpus(Settings(data=data, gpus=3)).advice
    file = tmp_path / "devices.yaml"
    file.write_text("devices: [{index: 0}, {id: GPU-1, health: no fan}]")
    assert doctor.gpus(Settings(data=data, devices=file)).advice == "GPU-1: no fan"
    file.write_text("devices: [{index: 0}]")
    assert doctor.gpus(Settings(data=data, devices=file)).verdict is OK


def test_a_clock_before_the_newest_write_went_back(data: Path) -> None:
    file = data / "holdfast.db"
    file.touch()
    assert doctor.clock(Settings(data=data)).verdict in {OK, WARN}
    ahead = file.stat().st_mtime + 7200
    os.utime(file, (ahead, ahead))
    found = doctor.clock(Settings(data=data))
    assert found.verdict is WARN
    assert "the database was written" in found.detail


def test_few_files_leave_few_connections(data: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert doctor.open_files(Settings(data=data, connections=1)).verdict is OK
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        found = doctor.open_files(Settings(data=data))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert found.verdict is WARN
    assert "ulimit -n" in found.advice


def test_looking_for_control_groups_leaves_none_behind(data: Path) -> None:
    looked_for = cgroups.find(str(data), f"examined by {os.getpid()}", "auto")
    assert looked_for is None or all(Path(path).is_dir() for path in looked_for.paths)
    found = doctor.memory(Settings(data=data))
    assert found.verdict is (WARN if looked_for is None else OK)
    if looked_for is not None:
        looked_for.close()
        doctor.processes(Settings(data=data))
        assert [path for path in looked_for.paths if Path(path).exists()] == []
