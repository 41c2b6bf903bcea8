"""A local cluster of a client: a server on this machine with a temporary data directory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

_PROGRAM = "from holdfast.cli.main import main; main()"
_LIMIT_S, _PAUSE_S = 60.0, 0.02
_OWN = "HOLDFAST_"
_ANYWHERE = {"HOLDFAST_FLUSTER_LISTEN": "127.0.0.1:0"}
"""Any free port, as another server or cluster may run on this machine."""


class LocalCluster:
    """A server with Fluster's door open."""

    def __init__(self) -> None:
        """Start the server, and wait until it answers.

        Raises:
            RuntimeError: It ended, or took too long.
        """
        self._place = Path(tempfile.mkdtemp(prefix="holdfast-fluster-"))
        self._log = self._place / "server.log"
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OWN)}
        with self._log.open("wb") as log:
            self._server = subprocess.Popen(  # noqa: S603 - this Python
                [sys.executable, "-c", _PROGRAM, "up", "--port", "0", "--door", "fluster"],
                env={**inherited, "HOLDFAST_DATA": str(self._place / "data"), **_ANYWHERE},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            self.url, self.token = self._address()
        except BaseException:
            self.close()
            raise

    def _address(self) -> tuple[str, str]:
        until, file = time.monotonic() + _LIMIT_S, self._place / "data" / "server.json"
        while time.monotonic() < until and self._server.poll() is None:
            with suppress(OSError, ValueError, KeyError):
                address = json.loads(file.read_text())
                return str(address["url"]), str(address["token"])
            time.sleep(_PAUSE_S)
        msg = f"no server could be started: {self._log.read_text(errors='replace')[-2000:]}"
        raise RuntimeError(msg)

    def close(self) -> None:
        """Stop the server and delete its directory; its jobs should have ended before."""
        self._server.terminate()
        try:
            self._server.wait(_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
        shutil.rmtree(self._place, ignore_errors=True)
