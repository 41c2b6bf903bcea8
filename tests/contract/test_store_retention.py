"""What every store promises about forgetting jobs that have ended."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Protocol

import pytest

from holdfast.compiled.codec import dump_spec
from holdfast.domain.access import Principal
from holdfast.domain.audit import Act, AuditEntry, Caller, Subject
from holdfast.domain.job import Attempt, ChildOf, Job, JobState, Run
from holdfast.domain.lifecycle import AttemptStatus, EntityKind, HistoryRow, Outcome, attempt_id
from holdfast.domain.record import evolve
from holdfast.domain.workloads.array.model import Array, ArraySpec, ArrayState, Indexes
from holdfast.domain.workloads.dependencies import Dependency, DependencyKind
from holdfast.domain.workloads.kubejob.records import KubeJobRecord
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import Conflict, NotFound
from holdfast.ports.requests import Request, RequestKind
from holdfast.ports.retention import FinishedJob
from holdfast.ports.store import Changes, JobFilter, Submission
from tests.contract.test_store_versions import at_once

if TYPE_CHECKING:
    from holdfast.ports.store import Store

ENDED = {"j1": JobState.SUCCEEDED, "j2": JobState.RUNNING, "j3": JobState.FAILED, "j4": JobState.CANCELLED}


class Place(Protocol):
    def open(self) -> Store: ...


def job(job_id: str, **given: object) -> Job:
    made = Job(job_id, "a", "default", 0, 100.0, f'{{"name":"{job_id}"}}', queued_at=100.0, updated_at=100.0)
    return evolve(made, **given)  # type: ignore[arg-type] # fields by name


def fill(store: Store) -> None:
    """Four jobs with an attempt, a run and a row of history each; three have ended, a while before it was noticed."""
    store.submit(Submission([job(job_id) for job_id in ENDED], {"j1": {"a": "b"}}, "k", "f"))
    changes = Changes(handled=[1])
    for number, found in enumerate(store.jobs_by_id(list(ENDED)), start=1):
        noticed_at = 300.0 + number
        changes.jobs[found.id] = evolve(
            found, state=ENDED[found.id], attempt=1, ended_at=200.0 + number, updated_at=noticed_at
        )
        changes.attempts[found.id, 1] = Attempt(found.id, 1)
        changes.runs[f"{found.id}-1-0-1"] = Run(f"{found.id}-1-0-1", found.id, 1, 0)
        statuses = AttemptStatus.PENDING, AttemptStatus.SCHEDULED
        row = HistoryRow(EntityKind.ATTEMPT, attempt_id(found.id, 1), 0, "Start", *statuses, Outcome.SUCCESS, 1.0, 1.0)
        changes.history[row.key] = row
    store.commit(changes)


def story(store: Store, job_id: str) -> list[int]:
    return [len(store.attempts(job_id)), len(store.runs(job_id)), len(store.history(job_id))]


def test_finished_jobs_are_listed_in_order_of_submission_page_by_page(store: Store) -> None:
    fill(store)
    assert store.count_finished() == 3
    assert store.finished_jobs(after=0, limit=2) == [FinishedJob(1, "j1", 301.0), FinishedJob(3, "j3", 303.0)]
    assert store.finished_jobs(after=3, limit=2) == [FinishedJob(4, "j4", 304.0)]
    assert store.finished_jobs(after=4, limit=2) == []


def test_a_deleted_job_takes_everything_about_it_along(store: Store) -> None:
    fill(store)
    assert store.delete_finished(["j1", "j4", "unknown"]) == 2
    assert [each.id for each in store.jobs(JobFilter())] == ["j2", "j3"]
    assert store.jobs(JobFilter(labels=(("a", "b"),))) == []
    assert story(store, "j1") == story(store, "j4") == [0, 0, 0]
    assert story(store, "j3") == [1, 1, 1]
    assert store.delete_finished(["j1"]) == 0
    with pytest.raises(NotFound):
        store.job("j1")


def test_a_job_that_has_not_ended_is_never_deleted(store: Store) -> None:
    fill(store)
    before = store.job("j2")
    assert store.delete_finished(["j2"]) == 0
    assert store.job("j2") == before
    assert story(store, "j2") == [1, 1, 1]


def test_jobs_whose_time_to_live_is_over_are_listed_the_earliest_first_and_only_once_they_have_ended(
    store: Store,
) -> None:
    fill(store)
    times = {"j1": 250.0, "j2": 205.0, "j3": 210.0, "j4": None}
    store.commit(Changes(workloads={name: KubeJobRecord(id=name, expires_at=at) for name, at in times.items()}))
    assert store.expired_jobs(until=209.9, limit=9) == []
    assert store.expired_jobs(until=210.0, limit=9) == ["j3"]
    assert store.expired_jobs(until=999.0, limit=9) == ["j3", "j1"]
    assert store.expired_jobs(until=999.0, limit=1) == ["j3"]
    assert store.delete_finished(["j3"]) == 1
    assert store.expired_jobs(until=999.0, limit=9) == ["j1"]


@pytest.mark.parametrize("reason", ["", 'held: "status": "Failed"'])
def test_tasks_stay_until_their_array_has_ended_as_who_restarts_counts_them(store: Store, reason: str) -> None:
    spec = ArraySpec(JobSpec("sweep", ("true",)), (Indexes(0, 1),))
    going = Array(id="sweep", name="sweep", spec=dump_spec(spec), state=ArrayState(made=2, held=reason), created_at=1.0)
    store.submit(Submission([], owner=going))
    store.submit(Submission([job("sweep-0", child=ChildOf("sweep", "", 0)), job("lost", child=ChildOf("gone", "", 0))]))
    store.commit(Changes({one.id: evolve(one, state=JobState.FAILED) for one in store.jobs_by_id(["sweep-0", "lost"])}))
    assert store.delete_finished(["sweep-0", "lost"], dry_run=True) == 1
    assert store.delete_finished(["sweep-0", "lost"]) == 1
    assert store.count_by_state("sweep") == {"Failed": 1}
    store.commit(Changes(workloads={"sweep": evolve(going, state=ArrayState(made=2, failed=1, status="Failed"))}))
    assert store.delete_finished(["sweep-0"]) == 1


def test_a_place_in_the_order_is_never_given_again(store: Store) -> None:
    fill(store)
    last = store.job("j4").seq
    store.delete_finished(["j4"])
    store.submit(Submission([job("j5")]))
    assert store.job("j5").seq > last


def test_a_specification_stays_while_a_job_has_it(store: Store) -> None:
    shared = '{"name":"shared"}'
    store.submit(Submission([job("old", spec=shared), job("new", spec=shared)]))
    store.commit(Changes({"old": evolve(store.job("old"), state=JobState.FAILED)}))
    store.delete_finished(["old"])
    assert store.job("new").spec == shared


def test_an_old_idempotency_key_is_forgotten(store: Store) -> None:
    fill(store)
    assert store.delete_keys(before=100.0, limit=10) == 0
    assert store.submit(Submission([job("x")], idempotency_key="k", fingerprint="f")) == tuple(ENDED)
    assert store.delete_keys(before=100.5, limit=10) == 1
    assert store.submit(Submission([job("x")], idempotency_key="k", fingerprint="g")) == ("x",)


def test_a_specification_is_never_taken_from_under_a_submission(place: Place) -> None:
    """One thread submits jobs of one specification and ends them, another deletes what has ended."""
    submitting, deleting = place.open(), place.open()
    spec = '{"name":"again"}'

    def submit() -> None:
        for number in range(60):
            submitting.submit(Submission([job(f"s{number}", spec=spec)]))
            ended = evolve(submitting.job(f"s{number}"), state=JobState.SUCCEEDED, ended_at=1.0)
            submitting.commit(Changes({ended.id: ended}))

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(submit)
        while not done.done():
            deleting.delete_finished([each.job_id for each in deleting.finished_jobs(after=0, limit=100)])
        done.result()
    deleting.delete_finished([each.job_id for each in deleting.finished_jobs(after=0, limit=100)])
    assert deleting.jobs(JobFilter()) == []


NOON = time.time()
HOUR_S = 3600.0


def ended(store: Store, job_id: str, began: float, until: float) -> None:
    store.submit(Submission([job(job_id, submitted_at=began)]))
    store.commit(Changes({job_id: evolve(store.job(job_id), state=JobState.FAILED, updated_at=until)}))


def led(store: Store, *places: str) -> None:
    """Have servers lead at places one after another."""
    for place in places:
        store.lead(f"{place}, {NOON}", 60.0, NOON, place=place)
        store.lead(f"{place}, {NOON}", 0.0, NOON)


def test_the_files_of_a_deleted_job_are_to_be_discarded_at_each_place_that_may_have_some(store: Store) -> None:
    led(store, "one", "two", "one")
    ended(store, "j1", NOON, NOON + 1)
    store.delete_finished(["j1"])
    assert store.files_to_discard("two", limit=9) == ["j1"]
    store.files_discarded("two", ["j1"])
    assert [store.files_to_discard(place, limit=9) for place in ("one", "two", "three", "")] == [["j1"], [], [], []]


def test_a_place_that_led_before_or_after_a_job_has_no_files_of_it_whatever_the_clocks_of_machines_say(
    store: Store,
) -> None:
    led(store, "former", "latter")  # by now
    for number, (began, until) in enumerate(((-9, -2), (-9, -0.5), (0.5, 9), (2, 9))):
        ended(store, f"j{number}", NOON + began * HOUR_S, NOON + until * HOUR_S)
        store.delete_finished([f"j{number}"])
    assert store.files_to_discard("former", limit=9) == ["j0", "j1", "j2"], "one of which nobody knows"
    assert store.files_to_discard("latter", limit=9) == ["j0", "j1", "j2", "j3"]
    assert store.files_to_discard("former", limit=2) == ["j0", "j1"]
    assert store.files_to_discard("former", limit=2, after="j0") == ["j1", "j2"]
    store.files_discarded("", ["j0"])
    assert store.files_to_discard("former", limit=9) == ["j1", "j2"]


def test_places_that_were_left_long_ago_are_forgotten_with_what_is_to_be_discarded_there(store: Store) -> None:
    led(store, "former", "latter")
    ids = [f"j{number}" for number in range(5)]
    for key in ids:
        ended(store, key, NOON, NOON)
    store.delete_finished(ids)
    assert store.forget_places(left_before=NOON - HOUR_S, limit=3) == 0
    assert [store.forget_places(left_before=NOON + HOUR_S, limit=3) for _ in range(3)] == [3, 2, 0]
    assert [store.files_to_discard(place, limit=9) for place in ("former", "latter")] == [[], ids]
    ended(store, "j9", NOON, NOON)
    store.delete_finished(["j9"])
    assert store.files_to_discard("former", limit=9) == []
    led(store, "former")
    ended(store, "j10", NOON, NOON)
    store.delete_finished(["j10"])
    assert store.files_to_discard("former", limit=9) == ["j10"]


def test_specifications_that_hold_a_text_are_read_once_each_those_of_workloads_too(store: Store) -> None:
    fill(store)
    store.submit(Submission([job("j5", spec='{"name":"50%_"}'), job("j6", spec='{"name":"50%_"}')], {}, None, ""))
    store.commit(Changes(workloads={"j2": KubeJobRecord("j2", spec='{"name":"j1","kind":"w"}')}))
    assert sorted(store.specs_with('"j1"')) == ['{"name":"j1","kind":"w"}', '{"name":"j1"}']
    assert list(store.specs_with("50%_")) == ['{"name":"50%_"}']
    assert list(store.specs_with("50__")) == []


def test_old_entries_of_the_audit_log_are_forgotten_in_bounded_steps_and_places_in_it_stay(store: Store) -> None:
    for number in range(5):
        caller = Caller(Principal("ann"), NOON + number)
        store.record(AuditEntry(caller, Act.READ, Subject.JOB, f"j{number}"))
    seqs = [one.seq for one in store.audit(limit=9)]
    assert [store.delete_audit(before=NOON + 3, limit=2) for _ in range(3)] == [2, 1, 0]
    assert [(one.seq, one.entry.name) for one in store.audit(limit=9)] == [(seqs[3], "j3"), (seqs[4], "j4")]
    store.record(AuditEntry(Caller(Principal("ann"), NOON + 9), Act.READ, Subject.JOB, "j5"))
    assert [one.entry.name for one in store.audit(after=seqs[3], limit=9)] == ["j4", "j5"]


def test_of_a_retry_and_the_deletion_of_what_it_waits_for_one_is_accepted(place: Place) -> None:
    retrying, deleting = place.open(), place.open()
    for number in range(20):
        first, then = f"first{number}", f"then{number}"
        after = dump_spec(JobSpec("then", ("true",), after=(Dependency(first, target=DependencyKind.JOB, id=first),)))
        retrying.submit(Submission([job(first), job(then, spec=after)]))
        ends = {first: JobState.SUCCEEDED, then: JobState.CANCELLED}
        jobs = retrying.jobs_by_id([first, then])
        retrying.commit(Changes({one.id: evolve(one, state=ends[one.id], ended_at=101.0) for one in jobs}))
        request = Request(RequestKind.RETRY, (then,), 1.0)
        raised = at_once([partial(retrying.append, request), partial(deleting.delete_finished, [first])])
        is_there = bool(retrying.jobs_by_id([first]))
        assert [type(error) for error in raised] == ([] if is_there else [Conflict])
