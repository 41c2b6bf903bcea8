"""Every cell of the attempts' table is reached by its real handler, in a whole Holdfast; history forgets nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.domain.failure import Cause
from holdfast.domain.job import Attempt, JobState, Queue, Resources, Run
from holdfast.domain.lifecycle import (
    HANDLERS,
    AttemptStatus,
    EntityKind,
    HistoryRow,
    Outcome,
    RunStatus,
    SubStep,
    attempt_id,
)
from holdfast.domain.policy.model import RetrySettings
from holdfast.domain.record import evolve
from holdfast.domain.workloads.gang.flight import Flight
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.requests import RequestKind
from holdfast.ports.store import Changes
from tests.unit.conftest import Lab, job_named

if TYPE_CHECKING:
    from collections.abc import Callable

HUGE = Resources(64_000)
REASON = "a defect of the phase"


def seed(lab: Lab, status: AttemptStatus, run: RunStatus, executor: str, *, request: Resources | None = None) -> str:
    """Leave a database in which an attempt stands in a status, as a crash does, and begin anew on it."""
    spec = job_named("job", resources=request or Resources(1000))
    job = lab.submit(spec, SimulatedRun(duration_s=1.0))
    now = lab.clock.now()
    name, phase = attempt_id(job, 1), "ScheduleAttempts"
    pending, scheduled = AttemptStatus.PENDING, AttemptStatus.SCHEDULED
    row = HistoryRow(EntityKind.ATTEMPT, name, 0, phase, pending, scheduled, Outcome.SUCCESS, now, now)
    placed = Run(f"{job}-1-0-1", job, 1, 0, run, now, executor, "n0", spec.resources)
    lab.store.commit(
        Changes(
            jobs={job: evolve(lab.job(job), state=JobState.RUNNING, attempt=1)},
            attempts={(job, 1): Attempt(job, 1, status, now, dispatch=1, created_at=now, request=spec.resources)},
            runs={placed.uid: placed},
            history={row.key: row},
            handled=[1],
        )
    )
    lab.restart_controller()
    return job


def preparing(lab: Lab, executor: str) -> str:
    return seed(lab, AttemptStatus.PREPARING, RunStatus.PULLING, executor)


def prepared_on_a_lost_executor(lab: Lab) -> str:
    """The attempt waits to be looked at for longer than a lease, as in a storm: by then its executor is lost."""
    job = seed(lab, AttemptStatus.PREPARED, RunStatus.PREPARED, "gone")
    lab.clock.time += 61.0
    return job


def succeeds(lab: Lab) -> str:
    job = lab.submit(job_named("job"), SimulatedRun(duration_s=1.0))
    lab.pass_s(5.0)
    return job


def waits(lab: Lab) -> str:
    job = lab.submit(job_named("big", resources=HUGE))
    lab.pass_s(20.0)
    return job


def waits_too_long(lab: Lab) -> str:
    job = lab.submit(job_named("big", resources=HUGE, scheduling_timeout_s=10.0))
    lab.pass_s(20.0)
    return job


def pulls_for_a_while(lab: Lab) -> str:
    job = preparing(lab, "local")
    lab.pass_s(50.0)
    return job


def pulls_too_long(lab: Lab) -> str:
    job = preparing(lab, "local")
    lab.pass_s(905.0)
    return job


def is_prepared_at_once(lab: Lab) -> str:
    job = seed(lab, AttemptStatus.SCHEDULED, RunStatus.SCHEDULED, "local")
    lab.pass_s(5.0)
    return job


def loses_what_prepares(lab: Lab) -> str:
    job = preparing(lab, "gone")
    lab.pass_s(80.0)
    return job


def loses_what_starts(lab: Lab) -> str:
    job = prepared_on_a_lost_executor(lab)
    lab.pass_s(20.0)
    return job


def is_started_too_late(lab: Lab) -> str:
    limits = {"StartAttempts": {"timeout_s": 63.0, "max_retries": None}}
    lab.store.put_settings(RetrySettings(handler_limits=limits), None)
    return loses_what_starts(lab)


def is_cancelled_before_it_starts(lab: Lab) -> str:
    job = prepared_on_a_lost_executor(lab)
    lab.tick()
    lab.ask(RequestKind.CANCEL, job)
    lab.tick()
    return job


def takes_its_time_to_stop(lab: Lab) -> str:
    job = lab.submit(job_named("job", grace_s=60.0), SimulatedRun(duration_s=None, term_delay_s=20.0))
    lab.pass_s(5.0)
    lab.ask(RequestKind.CANCEL, job)
    lab.pass_s(10.0)
    return job


def is_never_heard_of_again(lab: Lab) -> str:
    lab.lease_s = None
    lab.restart_controller()
    job = takes_its_time_to_stop(lab)
    lab.transport.broken = True
    for _ in range(130):
        lab.clock.time += 1.0
        lab.tick()
    return job


def cannot_be_told_to_stop(lab: Lab) -> str:
    def broken(_: Flight, *__: object) -> None:
        raise LookupError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Flight, "_terminate", broken)
        return takes_its_time_to_stop(lab)


REACHED: list[tuple[str, Outcome, str, Callable[[Lab], str]]] = [
    ("ScheduleAttempts", Outcome.SUCCESS, "SCHEDULED", succeeds),
    ("ScheduleAttempts", Outcome.SKIPPED, "PENDING", waits),
    ("ScheduleAttempts", Outcome.EXPIRED, "CANCELLED", waits_too_long),
    ("PrepareAttempts", Outcome.SUCCESS, "PREPARING", is_prepared_at_once),
    ("PrepareAttempts", Outcome.SKIPPED, "PREPARING", pulls_for_a_while),
    ("PrepareAttempts", Outcome.EXPIRED, "PENDING", pulls_too_long),
    ("PrepareAttempts", Outcome.NEED_RETRY, "PREPARING", loses_what_prepares),
    ("PrepareAttempts", Outcome.GIVE_UP, "PENDING", loses_what_prepares),
    ("StartAttempts", Outcome.SUCCESS, "CREATING", succeeds),
    ("StartAttempts", Outcome.NEED_RETRY, "PREPARED", loses_what_starts),
    ("StartAttempts", Outcome.GIVE_UP, "PENDING", loses_what_starts),
    ("StartAttempts", Outcome.EXPIRED, "PENDING", is_started_too_late),
    ("TerminateAttempts", Outcome.SUCCESS, "CANCELLED", is_cancelled_before_it_starts),
    ("TerminateAttempts", Outcome.SKIPPED, "TERMINATING", takes_its_time_to_stop),
    ("TerminateAttempts", Outcome.EXPIRED, "TERMINATED", is_never_heard_of_again),
    ("TerminateAttempts", Outcome.NEED_RETRY, "TERMINATING", cannot_be_told_to_stop),
]
UNREACHED = {
    # A round finds a place or none, and a job it cannot give one to for a fault of ours is quarantined.
    ("ScheduleAttempts", Outcome.NEED_RETRY),
    ("ScheduleAttempts", Outcome.GIVE_UP),
    # What may still run is given up by time alone, however often telling it to stop fails.
    ("TerminateAttempts", Outcome.GIVE_UP),
}
"""Cells of the document that nothing here leads to."""


@pytest.mark.parametrize(("handler", "outcome", "to", "story"), REACHED, ids=[f"{row[0]}-{row[1]}" for row in REACHED])
def test_every_cell_is_reached_by_its_real_handler(
    lab: Lab, handler: str, outcome: Outcome, to: str, story: Callable[[Lab], str]
) -> None:
    job = story(lab)
    assert (handler, outcome.value, to) in lab.phases(job)


def test_no_cell_of_the_table_is_left_out() -> None:
    told = {(handler, outcome) for handler, outcome, _, _ in REACHED} | UNREACHED
    cells = {(row.name, outcome) for row in HANDLERS for outcome in (*row.transitions, Outcome.NEED_RETRY)}
    assert cells <= told


def test_an_exception_in_a_phase_is_a_failure_of_everything_it_works_on(lab: Lab) -> None:
    """SC-026."""

    def broken(*_: object) -> None:
        raise LookupError(REASON)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Flight, "_terminate", broken)
        run = SimulatedRun(duration_s=None, term_delay_s=60.0)
        jobs = [lab.submit(job_named(f"job{number}", grace_s=60.0), run) for number in range(3)]
        lab.pass_s(5.0)
        for job in jobs:
            lab.ask(RequestKind.CANCEL, job)
        lab.pass_s(5.0)
    for job in jobs:
        (row,) = [row for row in rows(lab, job) if row.phase == "TerminateAttempts"]
        assert (row.outcome, row.error_code, row.message) == (Outcome.NEED_RETRY, "LookupError", REASON)


def rows(lab: Lab, job: str) -> list[HistoryRow]:
    return list(lab.store.history(job))


def test_history_goes_on_when_an_attempt_is_placed_a_second_time(lab: Lab) -> None:
    job = loses_what_prepares(lab)
    assert lab.job(job).state is JobState.SUCCEEDED
    found = rows(lab, job)
    assert [row.seq for row in found] == list(range(len(found)))
    assert [(row.phase, row.outcome, row.to_status) for row in found][:5] == [
        ("ScheduleAttempts", "SUCCESS", "SCHEDULED"),
        ("PrepareAttempts", "SKIPPED", "PREPARING"),
        ("PrepareAttempts", "NEED_RETRY", "PREPARING"),
        ("PrepareAttempts", "GIVE_UP", "PENDING"),
        ("ScheduleAttempts", "SUCCESS", "SCHEDULED"),
    ]
    assert {row.attempt for row in found} == {1}


def test_history_goes_on_after_a_restart_between_two_places(lab: Lab) -> None:
    job = seed(lab, AttemptStatus.PREPARING, RunStatus.PULLING, "gone", request=HUGE)
    lab.pass_s(80.0)
    before = rows(lab, job)
    assert before[-1].outcome is Outcome.SKIPPED
    lab.restart_controller()
    lab.ask(RequestKind.CANCEL, job)
    lab.pass_s(3.0)
    after = rows(lab, job)
    assert after[: len(before)] == before
    assert [(row.seq, row.phase, row.to_status) for row in after[len(before) :]] == [
        (len(before), "CancelJob", "CANCELLED")
    ]


def test_history_of_a_job_that_waits_goes_on_after_a_restart(lab: Lab) -> None:
    job = waits(lab)
    lab.restart_controller()
    lab.ask(RequestKind.HOLD, job)
    lab.pass_s(3.0)
    lab.restart_controller()
    lab.ask(RequestKind.RELEASE, job)
    lab.pass_s(3.0)
    lab.ask(RequestKind.CANCEL, job)
    lab.pass_s(3.0)
    assert [(row.seq, row.phase, row.outcome, row.from_status, row.to_status) for row in rows(lab, job)] == [
        (0, "ScheduleAttempts", Outcome.SKIPPED, "PENDING", "PENDING"),
        (1, "CancelJob", Outcome.SUCCESS, "PENDING", "CANCELLED"),
    ]
    assert lab.attempts(job) == []


def test_waiting_is_recorded_once_however_long_it_takes(lab: Lab) -> None:
    job = lab.submit(job_named("big", resources=HUGE))
    lab.pass_s(5.0)
    (row,) = rows(lab, job)
    assert row.message == lab.job(job).reason
    for _ in range(20):
        lab.clock.time += 1.0
        written = lab.tick().written
        assert (written.history, written.jobs) == ({}, {})
    assert rows(lab, job) == [row]


def test_what_stops_slowly_is_not_written_down_again_and_again(lab: Lab) -> None:
    job = takes_its_time_to_stop(lab)
    (row,) = [row for row in rows(lab, job) if row.phase == "TerminateAttempts"]
    assert (row.attempts, row.message) == (1, "1 of 1 runs still stopping")


def test_a_run_that_does_not_start_in_time_is_not_its_users_failure(lab: Lab) -> None:
    job = lab.submit(job_named("slow"), SimulatedRun(start_delay_s=10_000.0))
    lab.pass_s(640.0)
    attempt = lab.attempts(job)[0]
    assert attempt.failure is not None
    assert (attempt.failure.cause, attempt.failure.started, attempt.status) == (
        Cause.SCHEDULER_TIMEOUT, False, AttemptStatus.CANCELLED,
    )  # fmt: skip
    assert attempt.failure.message == "rank 0 did not start in time on node n0"
    (late,) = [row for row in rows(lab, job) if row.phase == "PromoteToRunning" and row.attempt == 1]
    assert (late.outcome, late.to_status, late.message) == ("EXPIRED", "TERMINATING", "not RUNNING within 10m")
    assert late.steps == (SubStep("rank 0", Outcome.EXPIRED, message="CREATING on node n0"),)
    assert attempt.decision is not None
    assert (attempt.decision.policy, attempt.decision.rule) == ("infrastructure", "launch-failed")


def test_a_queue_is_less_patient_than_everybody_and_a_later_edit_counts_soon(lab: Lab) -> None:
    job = lab.submit(job_named("slow"), SimulatedRun(start_delay_s=10_000.0))
    lab.pass_s(3.0)
    lab.store.put_settings(RetrySettings(handler_limits={"PromoteToRunning": {"timeout_s": 300.0}}), None)
    lab.store.put_entry(Queue("default", handler_limits={"PromoteToRunning": {"timeout_s": 20.0}}))
    lab.pass_s(30.0)
    assert ("PromoteToRunning", "EXPIRED", "TERMINATING") in lab.phases(job)


def test_a_total_deadline_in_line_leaves_its_step(lab: Lab) -> None:
    job = lab.submit(job_named("big", resources=HUGE, total_deadline_s=10.0))
    lab.pass_s(15.0)
    assert lab.phases(job)[-1] == ("TotalDeadline", "SUCCESS", "CANCELLED")
    assert lab.job(job).state is JobState.FAILED


def test_a_preparing_attempt_cannot_hang(lab: Lab) -> None:
    job = pulls_too_long(lab)
    assert lab.job(job).state is JobState.SUCCEEDED
