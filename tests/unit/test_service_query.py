"""Questions: pages that stay stable while jobs arrive, attempts by number."""

from __future__ import annotations

import pytest

from holdfast.domain.job import Job, JobState
from holdfast.errors import InvalidRequest
from holdfast.ports.store import JobFilter, Submission
from holdfast.service.operations.jobs import MOST_STATES, JobOperations
from tests.unit.jobset_service import ADMIN, backend_of
from tools.memory_store import MemoryStore


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    _add(store, range(5))
    return store


def _add(store: MemoryStore, numbers: range) -> None:
    jobs = [Job(f"job00000{n}", f"n{n}", "default", 0, float(n), '{"name":"x"}') for n in numbers]
    store.submit(Submission(jobs))


@pytest.fixture
def jobs(store: MemoryStore) -> JobOperations:
    return JobOperations(backend_of(store))


def test_pages_follow_each_other_without_gap_or_repeat_while_jobs_arrive(
    store: MemoryStore, jobs: JobOperations
) -> None:
    first = jobs.page(ADMIN, JobFilter(), limit=2)
    _add(store, range(5, 7))
    assert first.next_after is not None
    rest = jobs.page(ADMIN, JobFilter(), after=first.next_after, limit=5)
    assert [job.name for job in (*first.jobs, *rest.jobs)] == [f"n{n}" for n in range(7)]
    assert rest.next_after is None


def test_the_last_full_page_says_that_nothing_follows(jobs: JobOperations) -> None:
    assert jobs.page(ADMIN, JobFilter(), limit=5).next_after is None


def test_states_leave_out_what_is_unknown_and_are_bounded(jobs: JobOperations) -> None:
    assert jobs.states(ADMIN, ["job000002", "nope"]) == {"job000002": (JobState.QUEUED, False)}
    with pytest.raises(InvalidRequest):
        jobs.states(ADMIN, ["x"] * (MOST_STATES + 1))
