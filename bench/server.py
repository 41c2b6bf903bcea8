"""A real ``holdfast up`` of a benchmark's own, and what it spends."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from bench.baseline import IN_FLIGHT

if TYPE_CHECKING:
    from collections.abc import Iterator

HOLDFAST = (sys.executable, "-c", "from holdfast.cli.main import main; main()")
_PATIENCE_S = 60.0


@contextmanager
def serving(data: Path, **settings: str) -> Iterator[tuple[dict[str, str], psutil.Process]]:
    """Run a server of its own; ends what holds programs, too."""
    inherited = {  # without what would have each process compile the package anew
        name: value
        for name, value in os.environ.items()  # noqa: TID251 - what a person starts a server with
        if not name.startswith("HOLDFAST_") and name != "PYTHONDONTWRITEBYTECODE"
    }
    offered = {"HOLDFAST_CPUS": str(IN_FLIGHT), "HOLDFAST_MEMORY": "1Ti"}
    environment = {**inherited, **offered, **settings, "HOLDFAST_DATA": str(data)}
    with subprocess.Popen((*HOLDFAST, "up", "--port", "0"), env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            _await(data / "server.json", process)
            yield environment, psutil.Process(process.pid)
        finally:
            _end(process, _holders(data))


def _await(address: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not address.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            message = "the server did not start"
            raise RuntimeError(message)
        time.sleep(0.05)


def _end(process: subprocess.Popen[bytes], holders: list[psutil.Process]) -> None:
    process.terminate()
    process.wait()
    for one in holders:
        with suppress(psutil.NoSuchProcess):
            one.terminate()
    psutil.wait_procs(holders, 10)


def _holders(data: Path) -> list[psutil.Process]:
    """Find the shim and what it forked, by the directory they hold."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if str(data / "runs") in process.cmdline():
                found.append(process)
    return found


def spent(server: psutil.Process, environment: dict[str, str]) -> tuple[float, float]:
    """Return processor seconds so far: of the server, and of what holds programs with all that ended below it."""
    own = server.cpu_times()
    others = [process.cpu_times() for process in _holders(Path(environment["HOLDFAST_DATA"]))]
    below = sum(one.user + one.system + one.children_user + one.children_system for one in others)
    return own.user + own.system, below
