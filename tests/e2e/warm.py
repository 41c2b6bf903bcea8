"""Servers that start at once: a process that has read all of the program forks each of them.

What a test kills is a real ``holdfast up``; only the second it would spend on reading its own code is saved.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from tests.e2e.jobset_stage import Stage
from tests.e2e.server import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

PARENT = """
import os, signal, sys
import holdfast.app.server
from holdfast.cli.main import main
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in sys.stdin:
    pid = os.fork()
    if not pid:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        sys.argv = ["holdfast", "up", "--port", "0"]
        main()
        os._exit(0)
    print(pid, flush=True)
"""


class WarmStage(Stage):
    """A stage whose servers are forked, one after the other."""

    def __init__(self, folder: Path) -> None:
        """Start the process that forks them."""
        super().__init__(folder)
        with self.log.open("ab") as log:
            self._parent = subprocess.Popen(
                [sys.executable, "-c", PARENT],
                env=self.environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._pid, self._handle = 0, -1

    def fork(self) -> None:
        """Start a server and do not wait for anything."""
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        self._parent.stdin.write("\n")
        self._parent.stdin.flush()
        self._pid = int(self._parent.stdout.readline())
        self._handle = os.pidfd_open(self._pid)

    def serves(self) -> bool:
        """Whether the present server can be spoken to."""
        with suppress(OSError, ValueError):
            return self.address()["pid"] == self._pid
        return False

    def kill(self) -> None:
        """Kill the present server and wait until it has gone."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        select.select([self._handle], [], [], PATIENCE_S)
        os.close(self._handle)
        self._pid, self._handle = 0, -1

    def clean_up(self) -> None:
        """Leave no process behind."""
        if self._pid:
            self.kill()
        with self._parent:  # closes what it reads, which ends it
            pass
        super().clean_up()
