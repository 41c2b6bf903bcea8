"""Old jobs are forgotten, new ones and running ones are not, and an interruption loses nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.app.loops.forgetting import Forgetter
from holdfast.domain.access import Principal
from holdfast.domain.audit import Act, AuditEntry, Caller, Subject
from holdfast.domain.job import ChildOf, Job, JobState
from holdfast.domain.record import evolve
from holdfast.domain.workloads.array.model import Array, ArrayState, Origin
from holdfast.domain.workloads.kubejob.records import KubeJobRecord
from holdfast.errors import Unavailable
from holdfast.ports.requests import Request, RequestKind
from holdfast.ports.store import Changes, JobFilter, Submission
from holdfast.service.retention import Retention
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NOW = 1000.0


class Shelf:
    """Remembers whose files were deleted; some cannot be."""

    def __init__(self, *stuck: str) -> None:
        self.discarded: list[str] = []
        self.stuck = stuck

    def discard(self, job_ids: Sequence[str]) -> Mapping[str, str]:
        self.discarded += [job_id for job_id in job_ids if job_id not in self.stuck]
        return {job_id: f"{job_id} stays" for job_id in job_ids if job_id in self.stuck}


def store_of(ages: Sequence[float | None]) -> MemoryStore:
    """Jobs in order of submission that ended so long ago; ``None`` still runs."""
    store = MemoryStore()
    store.submit(Submission([Job(f"j{place}", "a", "default", 0, NOW - 500, "{}") for place in range(len(ages))]))
    changes = Changes()
    for place, age in enumerate(ages):
        state = JobState.RUNNING if age is None else JobState.FAILED
        changes.jobs[f"j{place}"] = evolve(store.job(f"j{place}"), state=state, updated_at=NOW - (age or 0.0))
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


def test_files_that_cannot_be_deleted_are_tried_again_and_keep_no_others() -> None:
    store, files = store_of([50.0, 50.0, 50.0]), Shelf("j1")
    with pytest.raises(Unavailable):
        list(Retention(store, files).sweep(ended_before=NOW))
    assert (left(store), files.discarded, store.files_to_discard("", limit=9)) == ([], ["j0", "j2"], ["j1"])
    files.stuck = ()
    Retention(store, files).expire(NOW)
    assert (files.discarded, store.files_to_discard("", limit=9)) == (["j0", "j2", "j1"], [])


def test_any_number_of_jobs_whose_files_cannot_be_deleted_keep_no_others() -> None:
    store, files = store_of([50.0] * 1000), Shelf(*(f"j{number}" for number in range(900)))
    with pytest.raises(Unavailable, match=r"^j0 stays; j1 stays; .* stays; and so for 895 more jobs"):
        list(Retention(store, files).sweep(ended_before=NOW))
    assert sorted(files.discarded) == [f"j{number}" for number in range(900, 1000)]


def test_no_file_is_deleted_before_its_job_is_and_those_of_an_interruption_are_the_next_time() -> None:
    class Watched(Shelf):
        def discard(self, job_ids: Sequence[str]) -> Mapping[str, str]:
            assert set(job_ids).isdisjoint(left(store))
            super().discard(job_ids[:1])
            raise KeyboardInterrupt

    store = store_of([50.0, 50.0, 50.0])
    with pytest.raises(KeyboardInterrupt):
        list(Retention(store, Watched()).sweep(ended_before=NOW))
    files = Shelf()
    list(Retention(store, files).sweep(ended_before=NOW))
    assert files.discarded == ["j0", "j1", "j2"]


def test_a_job_that_is_about_to_be_retried_stays_with_its_files() -> None:
    store, files = store_of([50.0, 50.0]), Shelf()
    store.append(Request(RequestKind.RETRY, ("j1",), NOW))
    assert sum(Retention(store, files).sweep(ended_before=NOW, dry_run=True)) == 1
    list(Retention(store, files).sweep(ended_before=NOW))
    assert (left(store), files.discarded) == (["j1"], ["j0"])


def test_a_sweep_goes_in_bounded_steps_and_may_stop_after_any() -> None:
    store = store_of([50.0] * 450)
    sweep = Retention(store, Shelf()).sweep(ended_before=NOW)
    assert next(sweep) == 200
    assert len(left(store)) == 250
    assert list(sweep) == [200, 50]


def test_tasks_stay_until_the_array_that_reruns_them_has_ended() -> None:
    store = store_of([50.0, 50.0])
    jobs = [
        Job(f"a1-sweep-{index}", f"sweep-{index}", "default", 0, NOW - 500, "{}", child=ChildOf("a1", "", index))
        for index in range(2)
    ]
    rerun = Array(id="a2", name="sweep-rerun-1", spec="{}", origins=(Origin("a1", "sweep"),))
    store.submit(Submission(jobs, also=[rerun]))
    ended = {job.id: evolve(store.job(job.id), state=JobState.FAILED, updated_at=NOW - 50) for job in jobs}
    store.commit(Changes(jobs=ended))
    list(Retention(store, Shelf()).sweep(ended_before=NOW))
    assert left(store) == [job.id for job in jobs]
    store.commit(Changes(workloads={"a2": evolve(rerun, state=ArrayState(status="Succeeded"))}))
    list(Retention(store, Shelf()).sweep(ended_before=NOW))
    assert left(store) == []


# Jobs that expire by themselves


def expiring(store: MemoryStore, **times: float) -> MemoryStore:
    """Say of jobs when they expire."""
    store.commit(Changes(workloads={name: KubeJobRecord(id=name, expires_at=at) for name, at in times.items()}))
    return store


class Hand:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.at = NOW

    def now(self) -> float:
        return self.at


def steps(forgetter: Forgetter) -> list[float]:
    """Take steps until one asks for a long rest; returns the rests."""
    rests = [forgetter.step()]
    while rests[-1] < 1.0:
        rests.append(forgetter.step())
    return rests


def test_a_job_is_forgotten_when_its_own_time_is_over_and_no_other_is_without_an_age() -> None:
    store, files, clock = expiring(store_of([50.0, 50.0, 50.0]), j1=NOW, j2=NOW + 30.0), Shelf(), Hand()
    forgetter = Forgetter(Retention(store, files), None, clock)
    assert steps(forgetter)[-1] <= 5.0, "the next to expire is not kept waiting"
    assert (left(store), files.discarded) == (["j0", "j2"], ["j1"])
    clock.at += 30.0
    steps(forgetter)
    assert (left(store), files.discarded) == (["j0"], ["j1", "j2"])


def test_with_an_age_old_jobs_are_looked_for_at_long_intervals_and_expired_ones_at_short() -> None:
    store, clock = expiring(store_of([50.0, 5.0, 5.0]), j1=NOW + 2.0), Hand()
    forgetter = Forgetter(Retention(store, Shelf()), 10.0, clock)
    steps(forgetter)
    assert left(store) == ["j1", "j2"]
    clock.at += 8.0
    steps(forgetter)
    assert left(store) == ["j2"]
    clock.at += 600.0
    steps(forgetter)
    assert left(store) == []


def test_files_of_an_expired_job_that_cannot_be_deleted_are_tried_again_later_and_hold_up_no_sweep() -> None:
    store, clock, files = expiring(store_of([5.0, 50.0]), j0=NOW), Hand(), Shelf("j0")
    forgetter = Forgetter(Retention(store, files), 10.0, clock)
    steps(forgetter)
    assert (left(store), files.discarded) == ([], ["j1"])
    files.stuck = ()
    assert steps(forgetter) == [2.0], "not again at once"
    assert files.discarded == ["j1"]
    clock.at += 60.0
    steps(forgetter)
    assert files.discarded == ["j1", "j0"]


def test_the_audit_log_is_kept_for_as_long_as_the_settings_say_whether_or_not_jobs_are_forgotten() -> None:
    store, clock = store_of([]), Hand()
    for at in (NOW - 100.0, NOW - 50.0, NOW):
        store.record(AuditEntry(Caller(Principal("ann"), at), Act.READ, Subject.JOB, f"{at - NOW:g}"))
    steps(Forgetter(Retention(store, Shelf()), None, clock))
    assert len(store.audit(limit=9)) == 3
    steps(Forgetter(Retention(store, Shelf()), None, clock, acts_age_s=60.0))
    assert [one.entry.name for one in store.audit(limit=9)] == ["-50", "0"]
