"""Trivial jobs end to end through the embedded server: SQLite with synchronous=FULL, real processes."""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.baseline import IN_FLIGHT, TRUE, spawn_rate
from holdfast.app import running, wiring
from holdfast.app.data.datadir import DataDir
from holdfast.app.embedded import start_embedded
from holdfast.app.settings import Settings
from holdfast.app.time import SortableIds, SystemClock
from holdfast.domain.job import JOB_TERMINAL, JobState, Resources
from holdfast.domain.workloads.spec import JobSpec
from holdfast.service.submit import Submitter


def measure(count: int = 3000) -> dict[str, float]:
    """Submit ``count`` jobs and wait for all of them, with the bare spawn rate measured before and after.

    Returns:
        ``jobs_per_s`` from the first submission to the last job's success, ``submitted_per_s``,
        ``spawn_per_s`` (mean of both baselines) and their ``ratio``.
    """
    before = spawn_rate()
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder, ExitStack() as stack:
        submitted_s, total_s = _run(count, Path(folder), stack)
    spawn = (before + spawn_rate()) / 2
    rate = count / total_s
    return {
        "jobs_per_s": rate,
        "submitted_per_s": count / submitted_s,
        "spawn_per_s": spawn,
        "ratio": rate / spawn,
    }


def _run(count: int, folder: Path, stack: ExitStack) -> tuple[float, float]:
    settings = Settings(data=folder, cpus=float(IN_FLIGHT))
    directory = DataDir(folder)
    store = wiring.store(settings, directory)
    stack.callback(store.close)
    start_embedded(stack, settings, directory, running.own(settings, directory, "bench"))
    spec = JobSpec(name="true", command=(TRUE,), resources=Resources(1000))
    began = time.perf_counter()
    Submitter(store, SystemClock(), SortableIds()).submit_many([spec] * count)
    submitted = time.perf_counter()
    while True:
        counts = store.count_by_state()
        if sum(counts.get(state, 0) for state in JOB_TERMINAL) >= count:
            break
        time.sleep(0.02)
    ended = time.perf_counter()
    if counts.get(JobState.SUCCEEDED, 0) != count:
        msg = f"not every job succeeded: {dict(counts)}"
        raise RuntimeError(msg)
    return submitted - began, ended - began


if __name__ == "__main__":
    for name, value in measure().items():
        print(f"{name:20} {value:12.2f}")
