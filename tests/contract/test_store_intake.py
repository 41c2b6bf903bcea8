"""Queues that limit what they take in: all of a submission or nothing, whoever asks at the same moment."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import Engine, event

from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Caller
from holdfast.domain.job import JobState, Queue, UserLimits
from holdfast.domain.record import evolve
from holdfast.domain.workloads.array.model import Array, ArraySpec, Indexes
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import QueueFull, RateLimited
from holdfast.ports.store import Changes, JobFilter, Submission
from holdfast.service.admission.records import new_job
from holdfast.service.jobsets.sets import SetWriter
from holdfast.service.submit import Submitter, WrittenJob
from tests.contract.test_store_races import CALLERS, Place, Together
from tests.contract.test_store_versions import at_once
from tests.unit.conftest import VirtualClock
from tests.unit.jobset_service import Counting

if TYPE_CHECKING:
    from holdfast.ports.store import Store
    from tests.contract.conftest import SqlPlace


def caller(name: str) -> Caller:
    return Caller(Principal(name, roles=(Role.USER,)), 1.0)


class Desk:
    """Submits for somebody, at a time of the test's choosing."""

    def __init__(self, store: Store, clock: VirtualClock | None = None, ids: Counting | None = None) -> None:
        self.store = store
        self.clock = clock or VirtualClock()
        self.ids = ids or Counting()

    def submitter(self, user: str = "ann") -> Submitter:
        return Submitter(self.store, self.clock, self.ids, caller=caller(user))

    def jobs(self, user: str, *names: str, key: str | None = None) -> int:
        items = [JobSpec(name, ("true",), queue="q") for name in names]
        return len(self.submitter(user).submit_many(items, key=key))

    def array(self, user: str, name: str, tasks: int) -> Array:
        spec = ArraySpec(JobSpec(name, ("true",), queue="q"), (Indexes(0, tasks - 1),))
        return self.submitter(user).submit_array(WrittenJob(spec.job, array=spec))

    def set_of(self, user: str, name: str, replicas: int) -> None:
        spec = {"queue": "q", "jobs": [{"name": "w", "replicas": replicas, "command": ["true"]}]}
        written = {"apiVersion": "holdfast.dev/v1", "kind": "JobSet", "metadata": {"name": name}, "spec": spec}
        SetWriter(self.store, self.clock, self.ids).create(written, caller=caller(user))

    def there(self) -> list[str]:
        return sorted(job.name for job in self.store.jobs(JobFilter()))


def test_a_bulk_that_a_queue_has_no_room_for_is_refused_whole(store: Store) -> None:
    store.put_entry(Queue("q", max_queued=3))
    desk = Desk(store)
    desk.jobs("ann", "a", "b")
    with pytest.raises(QueueFull, match="queue q lets at most 3 jobs wait: 2 wait, and this adds 2"):
        desk.jobs("bob", "c", "d", key="again")
    assert desk.there() == ["a", "b"]
    desk.jobs("bob", "c", key="again")  # the key was not taken by what was refused
    with pytest.raises(QueueFull):
        desk.jobs("bob", "d")


def test_what_runs_or_has_ended_makes_room(store: Store) -> None:
    store.put_entry(Queue("q", max_queued=1))
    desk = Desk(store)
    desk.jobs("ann", "a")
    for state in (JobState.BACKOFF, JobState.HELD, JobState.WAITING, JobState.QUEUED):
        job = evolve(store.jobs(JobFilter())[0], state=state)
        store.commit(Changes(jobs={job.id: job}))
        with pytest.raises(QueueFull):
            desk.jobs("ann", "b")
    for at, state in enumerate((JobState.RUNNING, JobState.FAILED)):
        job = evolve(store.jobs(JobFilter())[-1], state=state)
        store.commit(Changes(jobs={job.id: job}))
        desk.jobs("ann", f"c{at}")


def test_an_array_is_as_many_jobs_as_it_has_tasks_and_one_submission(store: Store) -> None:
    store.put_entry(Queue("q", max_queued=10, submissions_per_minute=2))
    desk = Desk(store)
    with pytest.raises(QueueFull, match="and this adds 11"):
        desk.array("ann", "large", 11)
    desk.array("ann", "first", 7)
    with pytest.raises(QueueFull, match="7 wait, and this adds 4"):
        desk.array("ann", "second", 4)
    desk.array("ann", "second", 3)
    with pytest.raises(QueueFull) as caught:
        desk.array("ann", "third", 1)
    assert len(caught.value.problems) == 2, "all limits are told at once"


def test_an_array_that_has_ended_or_makes_no_more_tasks_makes_room(store: Store) -> None:
    store.put_entry(Queue("q", max_queued=5))
    desk = Desk(store)
    made = desk.array("ann", "first", 5)
    with pytest.raises(QueueFull):
        desk.jobs("ann", "a")
    stopping = evolve(made, state=evolve(made.state, made=2, stopping="Cancelled"))
    store.commit(Changes(workloads={made.id: stopping}))
    desk.jobs("ann", "a")


def test_a_job_set_is_all_of_its_jobs_and_one_submission(store: Store) -> None:
    store.put_entry(Queue("q", max_queued=4, submissions_per_minute=2))
    desk = Desk(store)
    with pytest.raises(QueueFull):
        desk.set_of("ann", "large", 5)
    assert desk.there() == []
    desk.set_of("ann", "one", 3)
    desk.set_of("ann", "two", 1)
    with pytest.raises(QueueFull) as caught:
        desk.set_of("ann", "three", 1)
    assert [problem.path for problem in caught.value.problems] == [
        "queue q: maxQueued",
        "queue q: submissionsPerMinute",
    ]


def test_one_user_who_is_at_the_limit_keeps_no_other_out(store: Store) -> None:
    store.put_entry(Queue("q", max_queued=5, per_user=UserLimits(max_queued=2, submissions_per_minute=3)))
    desk = Desk(store)
    desk.jobs("ann", "a1", "a2")
    with pytest.raises(QueueFull, match="lets at most 2 jobs of ann wait"):
        desk.jobs("ann", "a3")
    desk.jobs("bob", "b1", "b2")
    with pytest.raises(QueueFull, match="lets at most 5 jobs wait: 4 wait"):
        desk.jobs("eve", "e1", "e2")


def test_a_minute_has_room_when_it_says_so_and_what_was_refused_does_not_count(store: Store) -> None:
    store.put_entry(Queue("q", submissions_per_minute=3))
    desk = Desk(store)
    desk.jobs("ann", "a", "b")
    desk.clock.time += 20.0
    desk.jobs("bob", "c")
    for _ in range(3):
        with pytest.raises(RateLimited) as caught:
            desk.jobs("ann", "d")
        assert caught.value.retry_after_s == pytest.approx(40.0)
    with pytest.raises(RateLimited, match="in parts, of 3 at most") as never:
        desk.jobs("ann", *"defg")
    assert never.value.retry_after_s is None
    desk.clock.time += 40.0
    desk.jobs("ann", "d")


def test_the_same_key_again_is_no_second_submission(store: Store) -> None:
    store.put_entry(Queue("q", max_queued=1, submissions_per_minute=1))
    desk = Desk(store)
    for _ in range(3):
        assert desk.jobs("ann", "a", key="same") == 1
    assert desk.there() == ["a"]


def test_a_clock_that_was_an_hour_ahead_keeps_nobody_out(store: Store) -> None:
    store.put_entry(Queue("q", submissions_per_minute=1))
    desk = Desk(store)
    desk.clock.time += 3600.0
    desk.jobs("ann", "a")
    desk.clock.time -= 3600.0
    desk.jobs("ann", "b")
    with pytest.raises(RateLimited):
        desk.jobs("ann", "c")


@pytest.mark.parametrize("limits", [{"max_queued": 2}, {"submissions_per_minute": 2}])
@pytest.mark.parametrize("each", [False, True])
def test_of_callers_at_one_moment_no_more_pass_than_there_is_room_for(
    place: Place, limits: dict[str, int], *, each: bool
) -> None:
    store, ids, looked = place.open(), Counting(), threading.Barrier(CALLERS)
    store.put_entry(Queue("q", per_user=UserLimits(**limits)) if each else Queue("q", **limits))  # type: ignore[arg-type] # a table of fields
    desks = [Desk(place.open(), Together(looked), ids) for _ in range(CALLERS)]
    raised = at_once([partial(desk.jobs, "ann", f"j{at}") for at, desk in enumerate(desks)])
    assert Counter(type(error) in {QueueFull, RateLimited} for error in raised) == {True: CALLERS - 2}
    assert len(store.jobs(JobFilter())) == 2


def test_a_store_that_is_opened_again_knows_what_the_last_minute_had(place: Place) -> None:
    store, ids = place.open(), Counting()
    store.put_entry(Queue("q", submissions_per_minute=1))
    Desk(store, ids=ids).jobs("ann", "a")
    with pytest.raises(RateLimited):
        Desk(place.open(), ids=ids).jobs("ann", "b")


def test_what_came_before_a_queue_had_a_limit_does_not_count(store: Store) -> None:
    store.put_entry(Queue("q", max_running_jobs=1))
    desk = Desk(store)
    for at in range(5):
        desk.jobs("ann", f"a{at}")
    store.put_entry(Queue("q", submissions_per_minute=1))
    desk.jobs("ann", "later")
    with pytest.raises(RateLimited):
        desk.jobs("ann", "too-soon")


def test_a_damaged_row_of_a_minute_keeps_nobody_out(sqlite: SqlPlace) -> None:
    store = sqlite.open()
    store.put_entry(Queue("q", submissions_per_minute=2))
    desk = Desk(store)
    desk.jobs("ann", "a")
    with closing(sqlite3.connect(sqlite.url)) as raw, raw:
        raw.execute("UPDATE intake SET at = 'garbage', count = x'00ff'")
    desk.jobs("ann", "b", "c")
    with pytest.raises(RateLimited):
        desk.jobs("ann", "d")


def test_to_ask_whether_there_is_room_counts_nothing(store: Store) -> None:
    store.put_entry(Queue("q", max_queued=1, submissions_per_minute=1))
    one = Submission([evolve(new_job(JobSpec("one", ("true",)), "j1", 1.0), queue="q")])
    one = evolve(one, limited=["q"])
    for _ in range(3):
        store.require_room(one, 1.0)
    store.submit(one)
    with pytest.raises(QueueFull):
        store.require_room(evolve(one, jobs=[evolve(one.jobs[0], id="j2")]), 2.0)
    store.put_entry(Queue("q", submissions_per_minute=1))
    with pytest.raises(RateLimited):
        store.require_room(evolve(one, jobs=[evolve(one.jobs[0], id="j2")]), 2.0)
    store.require_room(evolve(one, jobs=[evolve(one.jobs[0], id="j2")]), 99.0)


@pytest.mark.parametrize("limits", [{"max_queued": 5}, {"per_user": UserLimits(max_queued=5)}], ids=str)
def test_what_waits_elsewhere_is_not_looked_at(sqlite: SqlPlace, limits: dict[str, Any]) -> None:
    store = sqlite.open()
    store.put_entry(Queue("q", **limits))
    desk = Desk(store)
    asked: list[tuple[str, Any]] = []

    def note(_connection: object, _cursor: object, statement: str, values: object, *_: object) -> None:
        asked.append((statement, values))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        desk.jobs("ann", "a")
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    [counted] = [one for one in asked if one[0].startswith("SELECT count(*)") and "jobs.queue" in one[0]]
    with closing(sqlite3.connect(sqlite.url.removeprefix("sqlite:///"))) as raw:
        plan = [row[-1] for row in raw.execute(f"EXPLAIN QUERY PLAN {counted[0]}", counted[1])]
    [looked] = [step for step in plan if " jobs" in step]
    assert looked.startswith("SEARCH jobs USING INDEX ix_jobs_waiting (queue=?")
