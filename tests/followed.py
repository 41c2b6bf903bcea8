"""Runs a shim as it is, but that one of its processes waits at its birth until somebody traces it.

Run by path in the place of Python: ``followed.py -I -S .../shim/__main__.py DIRECTORY ...``. Beside the directory a
file ``follow`` says which process, by its line of forks: ``1`` is the shim itself, ``1.1.2`` its second supervisor.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import select
import sys
from contextlib import suppress
from pathlib import Path

_SET_PTRACER, _ANYBODY = 0x59616D61, -1


def main() -> None:
    """Run the shim, with a fork of its own where there is something to follow."""
    sys.argv = sys.argv[sys.argv.index("-S") + 1 :]
    beside = Path(sys.argv[1]).parent
    with suppress(FileNotFoundError):
        wanted = (beside / "follow").read_text()
        (beside / "follow").unlink()  # those that come after this shim are let alone
        os.fork = _Fork(wanted, beside / "followed")
    runpy.run_path(sys.argv[0], run_name="__main__")


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
                self._wait_for_tracer()
        return pid

    def _wait_for_tracer(self) -> None:
        ctypes.CDLL(None).prctl(_SET_PTRACER, _ANYBODY, 0, 0, 0)  # where only ancestors may, as on most machines
        self._told.with_suffix(".new").write_text(str(os.getpid()))
        self._told.with_suffix(".new").rename(self._told)
        while self._told.exists():
            os.sched_yield()
            select.select((), (), (), 0.002)


if __name__ == "__main__":
    main()
