"""Questions: pages that stay stable while jobs arrive, attempts by number."""

from __future__ import annotations

import pytest

from holdfast.domain.job import Attempt, Job, JobState, Run
from holdfast.errors import InvalidRequest, NotFound
from holdfast.ports.store import Changes, JobFilter, Submission
from holdfast.service.explain import Explainer
from holdfast.service.query import MOST_STATES, Queries
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
def queries(store: MemoryStore) -> Queries:
    return Queries(store, Explainer(store))


def test_pages_follow_each_other_without_gap_or_repeat_while_jobs_arrive(store: MemoryStore, queries: Queries) -> None:
    first = queries.page(JobFilter(), limit=2)
    _add(store, range(5, 7))
    assert first.next_after is not None
    rest = queries.page(JobFilter(), after=first.next_after, limit=5)
    assert [job.name for job in (*first.jobs, *rest.jobs)] == [f"n{n}" for n in range(7)]
    assert rest.next_after is None


def test_the_last_full_page_says_that_nothing_follows(queries: Queries) -> None:
    assert queries.page(JobFilter(), limit=5).next_after is None


def test_an_attempt_comes_with_its_own_runs(store: MemoryStore, queries: Queries) -> None:
    attempts = {("job000001", number): Attempt("job000001", number) for number in (1, 2)}
    runs = {uid: Run(uid, "job000001", n, 0) for n, uid in ((1, "job000001-1-0-1"), (2, "job000001-2-0-1"))}
    store.commit(Changes(attempts=attempts, runs=runs))
    attempt, found = queries.attempt("n1", 2)
    assert (attempt.number, [run.uid for run in found]) == (2, ["job000001-2-0-1"])


def test_an_attempt_that_is_not_there_is_not_found(queries: Queries) -> None:
    with pytest.raises(NotFound) as caught:
        queries.attempt("n1", 1)
    assert caught.value.hint == "it has no attempt yet"


def test_states_leave_out_what_is_unknown_and_are_bounded(queries: Queries) -> None:
    assert queries.states(["job000002", "nope"]) == {"job000002": JobState.QUEUED}
    with pytest.raises(InvalidRequest):
        queries.states(["x"] * (MOST_STATES + 1))
