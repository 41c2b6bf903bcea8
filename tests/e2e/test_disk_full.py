"""A disk that is really full: submissions are refused clearly, nothing accepted is lost, and space brings all back."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import pytest

from holdfast.errors import Unavailable
from tests.e2e.test_databases import Machine, all_succeeded, manifests, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holdfast.client import Client

pytestmark = pytest.mark.slow  # disks that are filled and emptied

DISK_BYTES = 12 << 20
CHUNK = b"x" * 65536


class Disk(Protocol):
    """Somewhere with little room."""

    folder: Path
    words: str
    """What a full one is called."""

    def fill(self, server: int) -> None: ...

    def free(self, server: int) -> None: ...


class SmallDisk:
    """A file system of its own, in memory, mounted for one test."""

    words = "the disk is full"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, server: int) -> None:
        assert server
        with (self.folder / "ballast").open("wb", buffering=0) as ballast:
            while _written(ballast.fileno(), CHUNK) or _written(ballast.fileno(), CHUNK[:512]):
                pass

    def free(self, server: int) -> None:
        assert server
        (self.folder / "ballast").unlink()


class LimitedFiles:
    """The next best thing without the right to mount: the kernel refuses the server to let any file grow."""

    words = "input/output error"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, server: int) -> None:
        resource.prlimit(server, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))

    def free(self, server: int) -> None:
        resource.prlimit(server, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def _written(file: int, chunk: bytes) -> int:
    try:
        return os.write(file, chunk)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return 0


@contextmanager
def mounted(folder: Path) -> Iterator[bool]:
    """Mount a small file system; tells whether that is allowed here."""
    options = ["-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    allowed = (
        os.geteuid() == 0 and subprocess.run(["mount", *options], check=False, capture_output=True).returncode == 0
    )
    try:
        yield allowed
    finally:
        if allowed:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    with mounted(folder) as is_small:
        yield SmallDisk(folder) if is_small else LimitedFiles(folder)


def submit_until_refused(client: Client) -> tuple[int, Unavailable]:
    """Submit jobs that take room until they are refused; returns how many were accepted before."""
    accepted = 0
    for number in range(200):
        bulky = {"COMMENT": f"{number}" + "x" * 100_000}
        try:
            accepted += len(client.submit_bulk(manifests(2, env=bulky)).items)
        except Unavailable as error:
            return accepted, error
    pytest.fail("200 times more than the disk has room for was accepted")


@pytest.mark.parametrize("what", ["the database", "the data directory"])
def test_a_full_disk_refuses_new_jobs_and_loses_none(tmp_path: Path, disk: Disk, what: str) -> None:
    ledger, gate = tmp_path / "ledger", tmp_path / "gate"
    program = (
        f'echo "$HOLDFAST_JOB_NAME begins" >> {ledger}; while [ ! -e {gate} ]; do sleep 0.1; done;'
        f' echo "$HOLDFAST_JOB_NAME ends" >> {ledger}'
    )
    machine = Machine(tmp_path / "data", {"HOLDFAST_DATABASE": f"sqlite:///{disk.folder}/holdfast.db"})
    if what == "the data directory":
        machine = Machine(disk.folder / "data")
    with machine.serving() as client:
        server = machine.server_pid()
        client.submit_bulk(manifests(20, program))
        wait_until(lambda: ledger.exists() and len(ledger.read_text().splitlines()) == 20)
        disk.fill(server)
        accepted, refused = submit_until_refused(client)
        assert disk.words in str(refused)
        assert "nothing was changed" in str(refused)
        gate.touch()
        wait_until(lambda: len(ledger.read_text().splitlines()) == 40)
        assert len(list(client.jobs())) == 20 + accepted
        disk.free(server)
        wait_until(lambda: all_succeeded(client, 20 + accepted))
        client.submit({"name": "after", "shell": "true"})
        wait_until(lambda: all_succeeded(client, 21 + accepted))
    expected = [f"n{number} {word}" for number in range(20) for word in ("begins", "ends")]
    assert sorted(ledger.read_text().splitlines()) == sorted(expected)
    assert machine.run("db", "check").code == 0


def test_the_job_that_fills_the_disk_can_be_cancelled(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    with mounted(folder) as is_small:
        if not is_small:
            pytest.skip("a file system cannot be mounted here, so no disk can be filled by a job")
        machine, ballast = Machine(folder / "data"), folder / "ballast"
        reserve = machine.data / "reserve"
        with machine.serving() as client:
            wait_until(reserve.exists)
            greedy = client.submit({"name": "greedy", "shell": f"cat /dev/zero > {ballast}; exec sleep 1000"}).id
            wait_until(lambda: not _room(folder))
            submit_until_refused(client)
            client.cancel(greedy)
            wait_until(lambda: client.job(greedy).state == "Cancelled")
            assert not reserve.exists()
            ballast.unlink()
            wait_until(reserve.exists)
            client.submit({"name": "after", "shell": "true"})
            wait_until(lambda: client.job("after").state == "Succeeded")


def _room(folder: Path) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize
