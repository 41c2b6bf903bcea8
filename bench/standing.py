"""What an idle server costs, and a command: processor time, as the system charges for it."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.server import HOLDFAST, serving

if TYPE_CHECKING:
    from collections.abc import Mapping

_TIMES = 7
_QUIET_S, _WATCHED_S = 3.0, 20.0


def measure() -> dict[str, float]:
    """Return ``idle_share`` of a core, and the median ``help_s``, ``asking_s`` and ``alone_s`` of commands."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as name:
        folder = Path(name)
        with serving(folder / "data") as (environment, server):
            subprocess.run((*HOLDFAST, "run", "--", "true"), env=environment, check=True)
            time.sleep(_QUIET_S)
            before = server.cpu_times()
            time.sleep(_WATCHED_S)
            after = server.cpu_times()
            asking = _command(environment, "get", "jobs")
        return {
            "idle_share": (after.user + after.system - before.user - before.system) / _WATCHED_S,
            "help_s": _command(environment, "--help"),
            "asking_s": asking,
            "alone_s": _command(environment, "get", "jobs"),
        }


def _command(environment: Mapping[str, str], *words: str) -> float:
    """Return the median of a command's processor seconds."""
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    spent = []
    for _ in range(_TIMES):
        process = os.posix_spawn(HOLDFAST[0], [*HOLDFAST, *words], environment, file_actions=quiet)
        usage = os.wait4(process, 0)[2]
        spent.append(usage.ru_utime + usage.ru_stime)
    return statistics.median(spent)


if __name__ == "__main__":
    for name, value in measure().items():
        print(f"{name:12} {value:8.4f}")
