"""Old jobs are forgotten, new ones and running ones are not, and an interruption loses nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.job import Job, JobState
from holdfast.errors import Unavailable
from holdfast.ports.store import Changes, JobFilter, Submission
from holdfast.service.retention import Retention
from holdfast.storage.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = 1000.0


class Shelf:
    """Remembers whose files were deleted; some cannot be."""

    def __init__(self, *, stuck: str | None = None) -> None:
        self.discarded: list[str] = []
        self.stuck = stuck

    def discard(self, job_id: str) -> None:
        if job_id == self.stuck:
            raise Unavailable
        self.discarded.append(job_id)


def store_of(ages: Sequence[float | None]) -> MemoryStore:
    """Jobs in order of submission that ended so long ago; ``None`` still runs."""
    store = MemoryStore()
    store.submit(Submission([Job(f"j{place}", "a", "default", 0, NOW - 500, "{}") for place in range(len(ages))]))
    changes = Changes()
    for place, age in enumerate(ages):
        state = JobState.RUNNING if age is None else JobState.FAILED
        ended_at = None if age is None else NOW - age
        changes.jobs[f"j{place}"] = replace(store.job(f"j{place}"), state=state, ended_at=ended_at)
    store.commit(changes)
    return store


def left(store: MemoryStore) -> list[str]:
    return [job.id for job in store.jobs(JobFilter())]


@pytest.mark.parametrize(
    ("ages", "keep", "stays"),
    [
        ([50.0, 5.0, None, 50.0], 0, ["j1", "j2"]),
        ([10.0, 9.999], 0, ["j0", "j1"]),
        ([10.001], 0, []),
        ([50.0, 50.0, 50.0], 2, ["j1", "j2"]),
        ([50.0, 50.0, 5.0], 2, ["j1", "j2"]),
        ([50.0, None, 50.0], 1, ["j1", "j2"]),
        ([50.0], 9, ["j0"]),
        ([], 0, []),
    ],
)
def test_the_old_go_and_the_newest_so_many_stay(ages: list[float | None], keep: int, stays: list[str]) -> None:
    store, files = store_of(ages), Shelf()
    forgotten = sum(Retention(store, files).sweep(ended_before=NOW - 10, keep=keep))
    assert left(store) == stays
    assert sorted(files.discarded + stays) == [f"j{place}" for place in range(len(ages))]
    assert forgotten == len(files.discarded)


def test_a_dry_run_counts_and_deletes_nothing() -> None:
    store, files = store_of([50.0, 50.0, None]), Shelf()
    store.submit(Submission([Job("x", "a", "default", 0, 1.0, "{}")], idempotency_key="k"))
    assert sum(Retention(store, files).sweep(ended_before=NOW, dry_run=True)) == 2
    assert (left(store), files.discarded) == (["j0", "j1", "j2", "x"], [])
    assert store.submit(Submission([Job("y", "a", "default", 0, 1.0, "{}")], idempotency_key="k")) == ("x",)


def test_a_job_whose_files_cannot_be_deleted_is_still_known() -> None:
    store = store_of([50.0, 50.0])
    with pytest.raises(Unavailable):
        list(Retention(store, Shelf(stuck="j1")).sweep(ended_before=NOW))
    assert left(store) == ["j0", "j1"]
    list(Retention(store, Shelf()).sweep(ended_before=NOW))
    assert left(store) == []


def test_a_sweep_goes_in_bounded_steps_and_may_stop_after_any() -> None:
    store = store_of([50.0] * 450)
    sweep = Retention(store, Shelf()).sweep(ended_before=NOW)
    assert next(sweep) == 200
    assert len(left(store)) == 250
    assert list(sweep) == [200, 50]
