"""A job that has ended makes another attempt because a user wants it to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.compiled.codec import dump_spec, load_spec
from holdfast.domain.events.rebuild import rebuild
from holdfast.domain.job import JobState, Resources
from holdfast.domain.record import evolve
from holdfast.ports.requests import Request, RequestKind
from tests.unit.conftest import Lab, exits, job_named, retrying

if TYPE_CHECKING:
    from holdfast.domain.job import Job
    from holdfast.engines.simulated.life import SimulatedRun
    from holdfast.ports.engine import RunOrder

FAILURES = 2


def _by_attempt(order: RunOrder) -> SimulatedRun:
    return exits(3 if order.attempt <= FAILURES else 0)


def retry(lab: Lab, job: str, spec: str = "") -> None:
    lab.store.append(Request(RequestKind.RETRY, (job,), lab.clock.now(), actor="ann", payload=spec))


def rebuilt(lab: Lab, job: str) -> Job | None:
    events = [each for each in lab.store.events(after=0, limit=1000) if each.job_id == job]
    return rebuild(events)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_failed_job_is_retried_and_no_budget_is_used(lab: Lab, *, restarted: bool) -> None:
    job = lab.submit(job_named("train", retrying(1)), _by_attempt)
    lab.pass_s(10)
    failed = lab.job(job)
    assert (failed.state, failed.attempt, failed.retries) == (JobState.FAILED, 2, 1)
    retry(lab, job)
    if restarted:
        lab.restart_controller()
    lab.pass_s(10)
    done = lab.job(job)
    assert (done.state, done.attempt, done.retries, done.counters) == (JobState.SUCCEEDED, 3, 1, failed.counters)
    assert [attempt.number for attempt in lab.attempts(job)] == [1, 2, 3]


def test_a_retried_job_is_what_its_events_say(lab: Lab) -> None:
    job = lab.submit(job_named("train"), _by_attempt)
    lab.pass_s(5)
    asked = Resources(2000, 1 << 30, share_m=500)
    spec = evolve(load_spec(lab.job(job).spec), resources=asked, env={"A": "1"})
    retry(lab, job, dump_spec(spec))
    lab.tick()
    found = lab.job(job)
    assert (found.state, found.request, found.ended_at) == (JobState.QUEUED, asked, None)
    assert load_spec(found.spec).env == {"A": "1"}
    assert rebuilt(lab, job) == evolve(found, spec="", seq=0)


def test_a_job_cancelled_before_it_began_gets_an_attempt_that_no_history_is_of(lab: Lab) -> None:
    lab.use()
    job = lab.submit(job_named("train"), exits(0))
    lab.pass_s(2)
    lab.ask(RequestKind.CANCEL, job)
    lab.pass_s(2)
    before = lab.store.history(job)
    assert lab.job(job).state is JobState.CANCELLED
    retry(lab, job)
    lab.tick()
    found = lab.job(job)
    assert (found.state, found.attempt, found.cancel_requested) == (JobState.QUEUED, 1, False)
    assert list(lab.store.history(job))[: len(before)] == list(before)


def test_a_cancel_and_a_retry_in_one_tick_are_done_in_their_order(lab: Lab) -> None:
    job = lab.submit(job_named("train", retrying(3, delay_s=1000.0)), _by_attempt)
    lab.pass_s(5)
    assert lab.job(job).state is JobState.BACKOFF
    lab.ask(RequestKind.CANCEL, job)
    retry(lab, job)
    lab.tick()
    assert (lab.job(job).state, lab.job(job).cancel_requested) == (JobState.RUNNING, False)


def test_a_job_in_back_off_is_retried_now(lab: Lab) -> None:
    job = lab.submit(job_named("train", retrying(3, delay_s=1000.0)), _by_attempt)
    lab.pass_s(5)
    assert lab.job(job).state is JobState.BACKOFF
    retry(lab, job)
    lab.pass_s(3)
    assert lab.job(job).attempt == 2


def test_a_retried_job_has_started_if_it_only_waited_and_not_if_it_had_ended(lab: Lab) -> None:
    waits = lab.submit(job_named("waits", retrying(3, delay_s=1000.0)), _by_attempt)
    ended = lab.submit(job_named("ended"), _by_attempt)
    lab.pass_s(5)
    before = lab.job(waits)
    for job in (waits, ended):
        retry(lab, job)
        lab.ask(RequestKind.CANCEL_UNLESS_STARTED, job)
    lab.tick()
    assert (before.state, lab.job(waits).state, lab.job(ended).state) == (
        JobState.BACKOFF,
        JobState.RUNNING,
        JobState.CANCELLED,
    )
    assert (lab.job(waits).started_at, lab.job(ended).started_at) == (before.started_at, None)
    for job in (waits, ended):
        assert rebuilt(lab, job) == evolve(lab.job(job), spec="", seq=0)


def test_a_job_that_runs_is_not_retried(lab: Lab) -> None:
    job = lab.submit(job_named("train"), exits(0, after_s=50.0))
    lab.pass_s(3)
    retry(lab, job, dump_spec(job_named("other")))
    lab.pass_s(3)
    assert (lab.job(job).attempt, lab.job(job).state) == (1, JobState.RUNNING)
    assert load_spec(lab.job(job).spec).name == "train"
