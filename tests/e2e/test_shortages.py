"""Machines that are short of something for a while: nothing fails because of it, and the server says so meanwhile."""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from holdfast.errors import Unavailable
from tests.e2e.test_databases import Machine, all_succeeded, manifests, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holdfast.client import Client

COUNT = 60


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[None]:
    """Mount a file system of its own; skips the test where that is not allowed."""
    folder.mkdir(parents=True)
    words = ["mount", "-t", "tmpfs", "-o", ",".join(["mode=0700", *options]), "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(words, check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here, so none can be full")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def is_ready(client: Client) -> bool:
    with suppress(Unavailable):
        return client.health().status == "ok"
    return False


def test_jobs_wait_while_the_disk_for_runs_is_full(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "data")
    with mounted(machine.data / "runs", "size=4m"), machine.serving() as client:
        ballast = machine.data / "runs" / "ballast"
        with ballast.open("wb", buffering=0) as file, suppress(OSError):
            while file.write(b"x" * 4096):
                pass
        client.submit_bulk(manifests(COUNT, retry={"retryLimit": 0}))
        wait_until(lambda: not is_ready(client))
        with pytest.raises(Unavailable, match=r"node .* has been short of disk space since 20"):
            client.health()
        (node,) = client.nodes()
        assert node.state == "Short"
        assert re.match(r"short of disk space since .*: cannot start it: ", node.reason)
        wait_until(lambda: "short of disk space since" in client.job("n0").reason)
        assert 'holdfast_nodes_short{of="disk"} 1.0' in client.metrics()
        assert {job.state for job in client.jobs()} == {"Queued"}
        ballast.unlink()
        wait_until(lambda: all_succeeded(client, COUNT))
