"""How the controller behaves when there is much of everything: queued jobs, ranks of a gang, failures at once."""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from bench.rig import Rig
from holdfast.domain.failure import ContainerResult, RunOutcome
from holdfast.domain.job import JobState, Resources
from holdfast.domain.policy.model import Action, Backoff, RetryPolicy
from holdfast.domain.workloads.spec import JobSpec
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.store import JobFilter

if TYPE_CHECKING:
    from holdfast.ports.engine import RunOrder

AGAIN = RetryPolicy("again", retry_limit=3, default_action=Action.RETRY, backoff=Backoff(initial_s=0.0))
BROKEN = RunOutcome(containers=(ContainerResult(1, reason="Error"),))
LONG_S = 1000.0
TICKS = 200


def queued(count: int) -> dict[str, float]:
    """Measure ticks and start-up with ``count`` jobs in line and eight places that turn over each tick."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        rig = Rig(Path(folder), nodes=1, cpu_m=8000)
        rig.submit(JobSpec(name="queued", command=("true",)), count)
        before = psutil.Process().memory_info().rss
        began = time.perf_counter()
        rig.load()
        loaded_s = time.perf_counter() - began
        rig.step()
        ticks = []
        for _ in range(TICKS):
            began = time.perf_counter()
            rig.step(0.01)
            ticks.append(time.perf_counter() - began)
        held = psutil.Process().memory_info().rss - before
        rig.close()
    return {"start_up_s": loaded_s, "tick_ms": statistics.median(ticks) * 1000, "memory_mb": held / 1e6}


def gang(ranks: int) -> dict[str, float]:
    """Measure a gang's restart: from the failure of one rank observed to the last replacement handed out."""

    def script(order: RunOrder) -> SimulatedRun:
        fails = order.attempt == 1 and order.rank == 0
        return SimulatedRun(duration_s=10.0 if fails else LONG_S, outcome=BROKEN if fails else _ENDS_WELL)

    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        rig = Rig(Path(folder), nodes=ranks, cpu_m=1000, script=script)
        rig.submit(JobSpec(name="gang", command=("true",), gang=ranks, inline_policies=(AGAIN,)), 1)
        for _ in range(3):
            rig.step()
        rig.clock.time += 11.0
        began = time.perf_counter()
        while len(_second(rig)) < ranks:
            rig.step(0.01)
        took = time.perf_counter() - began
        rig.close()
    return {"restart_s": took, "per_run_us": took / ranks * 1e6}


def _second(rig: Rig) -> list[str]:
    return [uid for uid in rig.engine.observe() if uid.split("-")[-3] == "2"]


def storm(count: int) -> dict[str, float]:
    """Measure ``count`` runs failing at the same moment, with a reader asking for jobs all the while."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        rig = Rig(
            Path(folder),
            nodes=100,
            cpu_m=1000 * (count // 100),
            script=lambda order: SimulatedRun(10.0 if order.attempt == 1 else LONG_S, outcome=BROKEN),
        )
        rig.submit(JobSpec(name="storm", command=("true",), resources=Resources(1000), inline_policies=(AGAIN,)), count)
        while len(rig.engine.observe()) < count:
            rig.step()
        rig.step(1.0)
        reads: list[float] = []
        done = threading.Event()
        reader = threading.Thread(target=_read, args=(rig, reads, done))
        reader.start()
        rig.clock.time += 30.0
        began = time.perf_counter()
        rig.step()
        while rig.load_once().state.queue.has_more():
            rig.step()
        decided_s = time.perf_counter() - began
        done.set()
        reader.join()
        once = sum(job.retries == 1 for job in rig.store.jobs(JobFilter()))
        rig.close()
    if once != count:
        msg = f"{count - once} of {count} failures were not decided exactly once"
        raise RuntimeError(msg)
    reads.sort()
    return {"decided_s": decided_s, "read_p99_ms": reads[int(len(reads) * 0.99)] * 1000, "reads": float(len(reads))}


def _read(rig: Rig, reads: list[float], done: threading.Event) -> None:
    running = JobFilter(states=frozenset({JobState.RUNNING}))
    while not done.wait(0.005):
        began = time.perf_counter()
        rig.store.jobs(running, limit=50)
        reads.append(time.perf_counter() - began)


_ENDS_WELL = RunOutcome(containers=(ContainerResult(0, reason="Completed"),))

if __name__ == "__main__":
    for size in (1_000, 100_000, 1_000_000):
        print(f"{size:>9,} queued   ", {name: round(value, 3) for name, value in queued(size).items()})
    for size in (1_000, 5_000, 15_000):
        print(f"{size:>9,} gang     ", {name: round(value, 3) for name, value in gang(size).items()})
    print("   20,000 storm    ", {name: round(value, 3) for name, value in storm(20_000).items()})
