"""How long it takes to look at many jobs: the summary of a hundred thousand, a page of a list, in a SQLite file.

    python -m bench.overview [JOBS]

A third of the jobs failed once before they succeeded. The best of several runs is printed, which is what the machine
can do when nobody else uses it.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.compiled.codec import dump_spec
from holdfast.domain.failure import Cause, Failure
from holdfast.domain.job import Attempt, Job, JobState, Resources, Run
from holdfast.domain.lifecycle import AttemptStatus, Ending, RunStatus
from holdfast.domain.record import evolve
from holdfast.domain.workloads.spec import JobSpec
from holdfast.ports.overview import FigureScope
from holdfast.ports.store import Changes, JobFilter, Submission
from holdfast.service.overview import seen_now, summed_up
from holdfast.storage.sql import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.ports.store import Store

JOBS = 100_000
_AT_ONCE = 5_000
_RUNS = 9
_PAGE = 1_000
_PRIME = 7919
_NOW = 1_800_000_000.0
_DAY_S = 86_400.0
_CAUSES = (Cause.OOM_KILLED, Cause.KERNEL_NONZERO_EXIT, Cause.AGENT_TRANSIENT)
_SPEC = dump_spec(JobSpec(name="job", command=("true",)))


def fill(store: Store, count: int) -> None:
    """Store so many jobs that have ended, with labels, attempts and runs."""
    for start in range(0, count, _AT_ONCE):
        made = [_job(number) for number in range(start, min(start + _AT_ONCE, count))]
        store.submit(Submission(made, labels={job.id: {"team": f"t{place % 10}"} for place, job in enumerate(made)}))
        changes = Changes()
        for place, job in enumerate(store.jobs_by_id([job.id for job in made])):
            _end(job, start + place, changes)
        store.commit(changes)


def _job(number: int) -> Job:
    return Job(f"job{number:08}", f"n{number}", "default", 0, _NOW - _DAY_S, _SPEC, Resources(), queued_at=_NOW)


def _end(job: Job, number_of_job: int, changes: Changes) -> None:
    tries, begun = 1 + (number_of_job % 3 == 0), _NOW - number_of_job * _PRIME % _DAY_S
    ended = begun + 100.0 * tries
    changes.jobs[job.id] = evolve(job, state=JobState.SUCCEEDED, attempt=tries, started_at=begun, ended_at=ended)
    for number in range(1, tries + 1):
        node = f"node{number_of_job % 50}"
        last = number == tries
        failure = Failure(
            _CAUSES[number_of_job % len(_CAUSES)],
            frozenset({"AppError"}),
            category="memory",
            node=node,
            message="x" * 200,
        )
        attempt = Attempt(
            job.id,
            number,
            status=AttemptStatus.TERMINATED if last else AttemptStatus.ERROR,
            started_at=begun + 100.0 * (number - 1),
            ended_at=begun + 100.0 * number - 10.0,
            ending=Ending.SUCCEEDED if last else Ending.FAILED,
            failure=None if last else failure,
        )
        changes.attempts[attempt.key] = attempt
        run = Run(f"{job.id}-{number}-0-1", job.id, number, 0, node=node, executor="local", status=RunStatus.TERMINATED)
        changes.runs[run.uid] = run


def best_ms(act: Callable[[], object]) -> float:
    """Return how long something takes at best, in milliseconds."""
    spent = []
    for _ in range(_RUNS):
        begun = time.perf_counter()
        act()
        spent.append(time.perf_counter() - begun)
    return 1000 * min(spent)


def measure(count: int) -> Sequence[tuple[str, float]]:
    """Return what was measured, and its milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder) / "holdfast.db")
        fill(store, count)
        day, labelled = FigureScope(_NOW - _DAY_S, _NOW), FigureScope(_NOW - _DAY_S, _NOW, None, (("team", "t1"),))
        page = [job.id for job in store.jobs(JobFilter(), limit=_PAGE)]
        found = [
            (f"summary of {count:,} jobs", best_ms(lambda: summed_up(store, day))),
            ("the same of a tenth of them, by a label", best_ms(lambda: summed_up(store, labelled))),
            (f"labels, last attempts and runs of {_PAGE:,} jobs", best_ms(lambda: store.latest_of(page))),
        ]
        waiting = [_job(count + number) for number in range(count)]
        for start in range(0, count, _AT_ONCE):
            store.submit(Submission(waiting[start : start + _AT_ONCE]))
        failed = [evolve(job, state=JobState.FAILED) for job in store.jobs_by_id([job.id for job in waiting[:_PAGE]])]
        store.commit(Changes(jobs={job.id: job for job in failed}))
        looked = f"what `holdfast top` asks for, with {count:,} more that wait"
        found.append((looked, best_ms(lambda: seen_now(store, limit=100))))
        store.close()
    return found


if __name__ == "__main__":
    for what, spent_ms in measure(int(sys.argv[1]) if len(sys.argv) > 1 else JOBS):
        print(f"{what:<70} {spent_ms:8.0f} ms")
