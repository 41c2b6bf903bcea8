"""How fast the store is, on SQLite and on PostgreSQL: submitting, committing a full tick, reading everything back.

Run it by itself (``python bench/storage.py [JOBS]``) or take the figures from ``measure``.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from holdfast.domain.event_mapping import attempt_ended_events, event_of
from holdfast.domain.events.registry import EventRecord
from holdfast.domain.failure import Cause, ContainerResult, Failure, RunOutcome
from holdfast.domain.job import Attempt, Job, JobState, Resources, Run
from holdfast.domain.lifecycle import AttemptStatus, Ending, EntityKind, HistoryRow, Outcome, RunStatus, attempt_id
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.model import Action, Decision, LimitUse
from holdfast.domain.record import evolve
from holdfast.ports.store import Changes, Submission
from holdfast.storage.sql import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.storage.sql import SqlStore

NOW = 1_770_000_000.0
BULK = 10_000
TICK = 500
PHASES = 4
TICKS = 12
REQUEST = Resources(1000, 2 << 30, 0)


def job(number: int, spec: str) -> Job:
    """Make a job as a submission brings it."""
    return Job(f"j{number:025d}", f"job-{number}", "default", 0, NOW, spec, REQUEST, queued_at=NOW, updated_at=NOW)


def specification(number: int) -> str:
    """Make a specification of usual length that no other job has."""
    command = ["python", "train.py", f"--seed={number}", "--data=/data/imagenet", "--epochs=90"]
    environment = {"LR": "0.1", "OMP_NUM_THREADS": "4", "NCCL_DEBUG": "WARN"}
    return json.dumps({"name": f"job-{number}", "queue": "default", "command": command, "env": environment})


def submit_rate(store: SqlStore, jobs: Sequence[Job]) -> float:
    """Submit in bulk, as the API does; returns jobs per second."""
    started = time.perf_counter()
    for start in range(0, len(jobs), BULK):
        store.submit(Submission(jobs[start : start + BULK]))
    return len(jobs) / (time.perf_counter() - started)


def failed_tick(jobs: Sequence[Job], number: int, *, told: bool = True) -> Changes:
    """Make the changes of a tick in which every job's attempt fails and is granted a retry; ``told``: with events."""
    changes = Changes()
    for each in jobs:
        attempt, run = _failed(each, number)
        changes.jobs[each.id] = after = evolve(
            each, state=JobState.BACKOFF, attempt=number, retry_at=NOW, counters={"infra/any": number}, retries=number
        )
        changes.attempts[attempt.key] = attempt
        changes.runs[run.uid] = run
        if told:
            happened = attempt_ended_events(attempt)
            changes.events.update(enumerate(happened, len(changes.events)))
            event = event_of(each, after, attempt)
            if event is not None:
                changes.events[len(changes.events)] = EventRecord(after.id, after.updated_at, event)
        for seq in range(PHASES):
            row = HistoryRow(
                EntityKind.ATTEMPT,
                attempt_id(each.id, number),
                seq,
                "PromoteToRunning",
                AttemptStatus.CREATING,
                AttemptStatus.RUNNING,
                Outcome.SUCCESS,
                NOW,
                NOW,
            )
            changes.history[row.key] = row
    return changes


def _failed(job: Job, number: int) -> tuple[Attempt, Run]:
    containers = (ContainerResult(1, reason="Error", message="Traceback: connection reset by peer"),)
    outcome = RunOutcome(
        containers, started_at=NOW, ended_at=NOW + 1, node="node-1", executor="local", log_tail=("reset", "bye")
    )
    failure = Failure(Cause.KERNEL_NONZERO_EXIT, frozenset({"AppError"}), containers, node="node-1", failed_at=NOW)
    decision = Decision(
        Action.RETRY, DecisionCode.RETRY, "rule any matched", "infra", "any", 0, 1, "infra/any", 1.0,
        limits=(LimitUse("infra/any", 1, 3),),
    )  # fmt: skip
    attempt = Attempt(
        job.id, number, AttemptStatus.ERROR, NOW, dispatch=1, ending=Ending.FAILED, failure=failure, decision=decision
    )
    run = Run(f"{job.id}-{number}-0-1", job.id, number, 0, RunStatus.ERROR, NOW, "local", "node-1", outcome=outcome)
    return attempt, run


def commit_ms(store: SqlStore, jobs: Sequence[Job]) -> tuple[float, float]:
    """Commit full ticks of new attempts; returns the medians in milliseconds, with events and without, in turn."""
    took: dict[bool, list[float]] = {True: [], False: []}
    for number in range(1, 2 * TICKS + 1):
        told = number % 2 == 0
        changes = failed_tick(jobs, number, told=told)
        started = time.perf_counter()
        store.commit(changes)
        took[told].append(time.perf_counter() - started)
    return statistics.median(took[True]) * 1000, statistics.median(took[False]) * 1000


def load_rate(place: str, count: int) -> float:
    """Open and read all jobs that are going on; returns jobs per second."""
    store = open_store(place)
    started = time.perf_counter()
    loaded = len(store.load().jobs)
    took = time.perf_counter() - started
    store.close()
    if loaded != count:
        message = f"loaded {loaded} of {count} jobs"
        raise RuntimeError(message)
    return loaded / took


def measure_on(place: str, count: int) -> dict[str, float]:
    """Measure everything on one empty database."""
    shared = specification(0)
    store = open_store(place)
    distinct = submit_rate(store, [job(number, specification(number)) for number in range(BULK * 2)])
    equal = submit_rate(store, [job(number, shared) for number in range(BULK * 2, count)])
    commit, without_events = commit_ms(store, store.jobs_by_id([f"j{number:025d}" for number in range(TICK)]))
    store.close()
    loaded = load_rate(place, count)
    return {
        "submit_distinct_jobs_per_s": round(distinct),
        "submit_equal_jobs_per_s": round(equal),
        f"commit_{TICK}_failures_ms": round(commit, 1),
        f"commit_{TICK}_without_events_ms": round(without_events, 1),
        "load_jobs_per_s": round(loaded),
    }


@contextmanager
def postgresql() -> Iterator[str | None]:
    """Run a server that is as durable as a real one; ``None`` where there is none to run."""
    try:
        from tests import postgres  # noqa: PLC0415 - its driver is an extra
    except ImportError:
        yield None
        return
    binaries = postgres.find_binaries()
    if binaries is None:
        yield None
        return
    with postgres.running(binaries, durable=True) as server:
        yield server.migrated()


def measure(count: int = 50_000) -> dict[str, float]:
    """Measure SQLite, and PostgreSQL beside it where the machine has a server and the driver."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        on_sqlite = measure_on(f"{folder}/holdfast.db", count)
    with postgresql() as place:
        on_postgresql = {} if place is None else measure_on(place, count)
    for name, figure in on_sqlite.items():
        found[f"sqlite_{name}"] = figure
        if on_postgresql:
            found[f"postgresql_{name}"] = on_postgresql[name]
    return found


if __name__ == "__main__":
    for name, figure in measure(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000).items():
        print(f"{name:40} {figure:>12,}")
