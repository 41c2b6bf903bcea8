"""Measures the process engine alone against starting and waiting for the same program without any engine."""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from pathlib import Path

from holdfast.engines.process.engine import ProcessEngine
from holdfast.ports.engine import Container, RunOrder, RunPhase

PROGRAM = "/bin/true"
IN_FLIGHT = 8


def baseline(runs: int) -> float:
    """Return runs per second of bare posix_spawn and wait."""
    began, living = time.perf_counter(), 0
    for _ in range(runs):
        if living == IN_FLIGHT:
            os.waitpid(-1, 0)
            living -= 1
        os.posix_spawn(PROGRAM, [PROGRAM], {})
        living += 1
    while living:
        os.waitpid(-1, 0)
        living -= 1
    return runs / (time.perf_counter() - began)


def engine(runs: int, directory: Path) -> float:
    """Return runs per second through the engine: start, observe the success, forget."""
    changed, driven = threading.Event(), ProcessEngine(directory, shim_idle_s=0.2)
    driven.on_change(changed.set)
    try:
        began, sent, done = time.perf_counter(), 0, 0
        while done < runs:
            free = min(IN_FLIGHT - (sent - done), runs - sent)
            driven.start([_order(number) for number in range(sent, sent + free)])
            sent += free
            changed.wait(10)
            changed.clear()
            over = [uid for uid, seen in driven.observe().items() if seen.phase is RunPhase.FINISHED]
            driven.forget(over)
            done += len(over)
        return runs / (time.perf_counter() - began)
    finally:
        driven.close()


def _order(number: int) -> RunOrder:
    name = f"bench-{number}"
    return RunOrder(name, f"job-{number}", name, attempt=1, rank=0, size=1, containers=(Container(command=(PROGRAM,)),))


def measure(runs: int = 2000) -> dict[str, float]:
    """Measure both, side by side; in memory where possible: a disk's speed is not the engine's."""
    memory = Path("/dev/shm")  # noqa: S108 - a private directory is made in it
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as directory:
        bare = baseline(runs)
        through = engine(runs, Path(directory))
    return {"engine_per_s": round(through), "spawn_per_s": round(bare), "ratio": round(through / bare, 2)}


if __name__ == "__main__":
    print(json.dumps(measure()))
