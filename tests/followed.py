"""Runs a shim or a server as it is, but that one of its processes or threads waits at its birth until it is traced.

Run by path in the place of Python: ``followed.py -I -S .../shim/__main__.py DIRECTORY ...``. Beside the directory a
file ``follow`` says which process, by its line of forks: ``1`` is the shim itself, ``1.1.2`` its second supervisor.
Or, for a thread of the command, by its name: ``followed.py THREAD FOLDER up ...``.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import select
import sys
import threading
from contextlib import suppress
from pathlib import Path

_SET_PTRACER, _ANYBODY = 0x59616D61, -1


def main() -> None:
    """Run what was asked for."""
    if "-S" in sys.argv:
        run_shim()
    else:
        run_command(sys.argv[1], Path(sys.argv[2]) / "followed")


def run_shim() -> None:
    """Run the shim, with a fork of its own where there is something to follow."""
    sys.argv = sys.argv[sys.argv.index("-S") + 1 :]
    beside = Path(sys.argv[1]).parent
    with suppress(FileNotFoundError):
        wanted = (beside / "follow").read_text()
        (beside / "follow").unlink()  # those that come after this shim are let alone
        os.fork = _Fork(wanted, beside / "followed")
    runpy.run_path(sys.argv[0], run_name="__main__")


def run_command(wanted: str, told: Path) -> None:
    """Run a command of which one thread is followed."""
    sys.argv[1:3] = []
    del sys.path[0]
    from holdfast.cli.main import main as command  # noqa: PLC0415 - a shim has no way to it

    begin = threading.Thread.run

    def run(self: threading.Thread) -> None:
        if self.name == wanted:
            wait_for_tracer(told)
        begin(self)

    threading.Thread.run = run  # type: ignore[method-assign]
    if threading.current_thread().name == wanted:
        wait_for_tracer(told)
    command()


class _Fork:
    """Forks, and knows the calling process's place among all that came from the first."""

    def __init__(self, wanted: str, told: Path) -> None:
        self._wanted, self._told = wanted, told
        self._line, self._forks = "", 0
        self._fork = os.fork

    def __call__(self) -> int:
        self._forks += 1
        pid = self._fork()
        if pid == 0:
            self._line, self._forks = f"{self._line}.{self._forks}".lstrip("."), 0
            if self._line == self._wanted:
                wait_for_tracer(self._told)
        return pid


def wait_for_tracer(told: Path) -> None:
    """Say which thread this is, and wait until somebody who traces it takes that away."""
    ctypes.CDLL(None).prctl(_SET_PTRACER, _ANYBODY, 0, 0, 0)  # where only ancestors may, as on most machines
    told.with_suffix(".new").write_text(str(threading.get_native_id()))
    told.with_suffix(".new").rename(told)
    while told.exists():
        os.sched_yield()
        select.select((), (), (), 0.002)


if __name__ == "__main__":
    main()
