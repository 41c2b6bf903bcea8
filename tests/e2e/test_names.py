"""A name server that never answers: a command says so, and does not hang."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from holdfast.client.transport import LONGEST_SEARCH_S
from tests.e2e.server import HOLDFAST, PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

ABSENT = "NO NAME SERVER OF OURS: only root can put another resolv.conf in place for a command, and only with unshare"
SILENT = ("127.0.0.153", 53)
IN_PLACE = ("unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"')


@pytest.mark.slow
def test_a_command_does_not_wait_for_a_name_server_that_never_answers(tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip(ABSENT)
    resolver = tmp_path / "resolv.conf"
    resolver.write_text(f"nameserver {SILENT[0]}\noptions timeout:30 attempts:5\n")
    if subprocess.run([*IN_PLACE, resolver, "true"], capture_output=True, check=False).returncode:
        pytest.skip(ABSENT)
    environ = {**os.environ, "HOLDFAST_URL": "http://holdfast.example:7070", "HOLDFAST_DATA": str(tmp_path / "data")}
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as silent:
        silent.bind(SILENT)
        began = time.monotonic()
        said = subprocess.run(
            [*IN_PLACE, resolver, *HOLDFAST, "get", "jobs"],
            env=environ,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        took_s = time.monotonic() - began
        silent.settimeout(0)
        assert silent.recv(512), "it was asked"
    assert (said.returncode, took_s >= LONGEST_SEARCH_S) == (5, True), said
    assert f"no name server said within {LONGEST_SEARCH_S:g} s where holdfast.example is" in said.stderr
