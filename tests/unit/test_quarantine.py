"""One workload that cannot be looked after is left alone, says so, and nobody else notices."""

# ruff: noqa: ANN401 - what stands in for a function takes whatever that takes

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from holdfast.controller import publisher
from holdfast.controller.workloads import gangs
from holdfast.domain.category import CategoryRule, FailureCategory
from holdfast.domain.events.workloads import WorkloadQuarantined, WorkloadReleased
from holdfast.domain.job import JobState
from holdfast.domain.policy.model import Action, RetryPolicy, Rule
from holdfast.domain.workloads.gang import reconcile as gang
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.errors import Unavailable
from holdfast.ports.requests import RequestKind
from holdfast.ports.store import Changes, JobFilter, Submission
from holdfast.storage.sql import open_store
from tests.unit.conftest import exits, job_named, retrying
from tests.unit.jobset_lab import SetLab, group, manifest

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from holdfast.domain.events.registry import Event
    from tests.unit.conftest import Lab

FOREVER = SimulatedRun(duration_s=1e9)
LASTS = {"bad-w-0": FOREVER, "good": exits(0, after_s=10.0), "late": exits(0)}


class Poison:
    """Makes a function fail for one job, until it is taken away."""

    def __init__(self, patch: pytest.MonkeyPatch, module: object, name: str, job_name: str) -> None:
        self.patch = patch
        real = getattr(module, name)

        def poisoned(job: Any, *rest: Any) -> Any:
            if job.name == job_name:
                message = "no such field: colour"
                raise KeyError(message)
            return real(job, *rest)

        patch.setattr(module, name, poisoned)

    def take_away(self) -> None:
        self.patch.undo()


def told(lab: Lab) -> list[Event]:
    kinds = (WorkloadQuarantined, WorkloadReleased)
    return [each.event for each in lab.store.events(after=0, limit=10_000) if isinstance(each.event, kinds)]


def test_a_stored_pattern_that_is_not_re2_leaves_its_own_jobs_alone_and_stops_nobody_else(
    lab: Lab, tmp_path: Path
) -> None:
    broken = Rule(Action.RETRY, "any", termination_message="(")
    with closing(open_store(tmp_path / "holdfast.db")) as store:
        lab.store = store  # type: ignore[assignment] # the real one, since only it keeps texts
        store.put_entry(RetryPolicy("broken", (broken,)))
        store.put_entry(FailureCategory("cuda", (CategoryRule(log="("),)))
        lab.restart_controller()
        bad = lab.submit(job_named("bad", RetryPolicy("own", (broken,))), exits(1))
        held = lab.submit(job_named("held", retry_policies=("broken",)), exits(1))
        good = lab.submit(job_named("good"), exits(1))
        lab.pass_s(5)
        assert [lab.job(job).state for job in (held, good)] == [JobState.HELD, JobState.FAILED]
        assert "is not RE2" in store.quarantined()[bad].message


def test_a_job_whose_judgement_fails_is_left_alone_and_the_others_of_its_tick_are_judged(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    Poison(monkeypatch, gang, "conclude", "bad")
    bad = lab.submit(job_named("bad"), exits(1))
    good = [lab.submit(job_named(f"good{number}"), exits(number % 2)) for number in range(3)]
    lab.pass_s(5)
    assert [lab.job(job).state for job in good] == [JobState.SUCCEEDED, JobState.FAILED, JobState.SUCCEEDED]
    assert lab.job(bad).state is JobState.RUNNING
    assert lab.store.quarantined()[bad].message == "reconciling it: KeyError: 'no such field: colour'"
    assert [job.id for job in lab.store.jobs(JobFilter(quarantined=True))] == [bad]
    assert told(lab) == [WorkloadQuarantined(bad, "gang", "reconciling it: KeyError: 'no such field: colour'")]
    lab.tick()
    assert len(lab.controller.quarantine) == 1


def test_what_a_person_asks_for_is_tried_although_a_job_was_left_alone(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison = Poison(monkeypatch, gang, "conclude", "bad")
    bad = lab.submit(job_named("bad"), exits(0))
    lab.pass_s(5)
    lab.ask(RequestKind.RELEASE, bad)
    lab.pass_s(1)
    assert lab.store.quarantined().keys() == {bad}
    poison.take_away()
    lab.ask(RequestKind.RELEASE, bad)
    lab.pass_s(1)
    assert lab.store.quarantined() == {}
    assert lab.job(bad).state is JobState.SUCCEEDED
    assert [type(event) for event in told(lab)] == [
        WorkloadQuarantined,
        WorkloadReleased,
        WorkloadQuarantined,
        WorkloadReleased,
    ]


def test_a_controller_that_begins_tries_what_the_last_one_left_alone(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    poison = Poison(monkeypatch, gang, "conclude", "bad")
    bad = lab.submit(job_named("bad"), exits(0))
    lab.pass_s(5)
    poison.take_away()
    lab.restart_controller()
    lab.pass_s(1)
    assert lab.store.quarantined() == {}
    assert lab.job(bad).state is JobState.SUCCEEDED


@pytest.mark.parametrize("state", ["queued", "running", "backing off"])
def test_a_row_that_cannot_be_read_keeps_no_controller_from_starting(lab: Lab, state: str) -> None:
    plan = {"queued": FOREVER, "running": FOREVER, "backing off": exits(1)}[state]
    bad = lab.submit(job_named("bad", retrying(3, delay_s=100.0)), plan)
    good = lab.submit(job_named("good"), exits(0, after_s=3.0))
    if state != "queued":
        lab.pass_s(2)
    # Nobody writes such a row, so it is damaged where it lies.
    with lab.store._database.writing() as connection:  # noqa: SLF001
        unreadable = "UPDATE specs SET body = ? WHERE digest = (SELECT spec FROM jobs WHERE id = ?)"
        connection.exec_driver_sql(unreadable, ('{"name": "bad", "colour": "red"}', bad))
    for _ in range(2):
        lab.restart_controller()
        lab.pass_s(1)
        assert lab.store.quarantined().keys() == {bad}
        assert lab.store.quarantined()[bad].message.startswith("taking it in: ")
    lab.pass_s(5)
    assert lab.job(good).state is JobState.SUCCEEDED
    assert lab.tick().more is False
    assert lab.controller.state.capacity.charges.keys() <= {run.uid for run in lab.runs(bad)}


def test_a_job_that_cannot_be_placed_keeps_no_other_from_its_place(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """SC-015."""
    begin = gang.begin

    def poisoned(spec: Any, job: Any, *about: Any) -> Any:
        if job.name == "bad":
            message = "cannot be opened"
            raise RuntimeError(message)
        return begin(spec, job, *about)

    monkeypatch.setattr(gang, "begin", poisoned)
    bad, good = lab.submit(job_named("bad")), lab.submit(job_named("good"), exits(0))
    lab.pass_s(5)
    assert lab.job(good).state is JobState.SUCCEEDED
    assert lab.store.quarantined()[bad].message == "giving it a place: RuntimeError: cannot be opened"


def test_a_request_that_fails_is_about_its_workload_alone(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    Poison(monkeypatch, gang, "held", "bad")
    monkeypatch.setattr(lab.transport, "broken", True)  # so that both stay pending
    bad, good = lab.submit(job_named("bad")), lab.submit(job_named("good"))
    lab.tick()
    for job in (bad, good):
        lab.ask(RequestKind.HOLD, job)
    lab.tick()
    lab.tick()
    assert lab.job(good).state is JobState.HELD
    assert lab.store.quarantined()[bad].message == "acting on hold: KeyError: 'no such field: colour'"
    assert lab.store.requests(limit=10) == []


def test_what_a_program_did_is_taken_in_once_that_works_again(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    Poison(monkeypatch, lab.controller._observations, "_log_patterns", "bad")  # noqa: SLF001 - fails only where a bug is
    bad, good = lab.submit(job_named("bad"), exits(0)), lab.submit(job_named("good"), exits(0))
    lab.pass_s(5)
    assert lab.job(good).state is JobState.SUCCEEDED
    assert lab.store.quarantined()[bad].message.startswith("taking in what its programs did: KeyError")
    assert lab.engine.observe().keys() == {run.uid for run in lab.runs(bad)}  # its result is kept
    monkeypatch.undo()
    lab.ask(RequestKind.RELEASE, bad)
    lab.pass_s(1)
    assert lab.job(bad).state is JobState.SUCCEEDED


def test_a_run_that_is_missing_is_missed_again_once_that_works(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    Poison(monkeypatch, lab.controller._observations, "_log_patterns", "bad")  # noqa: SLF001 - fails only where a bug is
    bad, good = lab.submit(job_named("bad"), FOREVER), lab.submit(job_named("good"), FOREVER)
    lab.pass_s(2)
    lab.use(*lab.engine.nodes())
    lab.pass_s(5)
    assert [lab.job(job).attempt for job in (bad, good)] == [1, 2]
    monkeypatch.undo()
    lab.ask(RequestKind.RELEASE, bad)
    lab.pass_s(5)
    assert lab.job(bad).attempt == 2


def test_an_order_that_cannot_be_written_keeps_no_other_run_from_starting(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = publisher.sooner

    def poisoned(deadline_s: float | None, *rest: Any, **more: Any) -> Any:
        if deadline_s == 1234.0:
            message = "cannot be written"
            raise RuntimeError(message)
        return written(deadline_s, *rest, **more)

    monkeypatch.setattr(publisher, "sooner", poisoned)
    bad = lab.submit(job_named("bad", deadline_s=1234.0), exits(0))
    good = lab.submit(job_named("good"), exits(0))
    lab.pass_s(5)
    assert lab.job(good).state is JobState.SUCCEEDED
    assert lab.store.quarantined()[bad].message == "writing its orders: RuntimeError: cannot be written"
    monkeypatch.undo()
    lab.ask(RequestKind.RELEASE, bad)
    lab.pass_s(5)
    assert lab.job(bad).state is JobState.SUCCEEDED


def test_the_trouble_of_the_store_is_nobodys_in_particular(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any) -> Any:
        message = "the database is away"
        raise Unavailable(message)

    monkeypatch.setattr(gangs, "next_due", away)
    lab.submit(job_named("job"))
    with pytest.raises(Unavailable):
        lab.tick()
    monkeypatch.undo()
    lab.pass_s(1)
    assert lab.store.quarantined() == {}


def test_a_stored_record_that_cannot_be_read_is_left_alone_and_the_jobs_beside_it_run(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_store(tmp_path / "holdfast.db")) as store:
        damaged = JobSet("bad", name="bad")
        store.submit(Submission([], owner=damaged))
        with monkeypatch.context() as patch:
            patch.setattr("holdfast.storage.sql.codec.dump_state", lambda _: "{")
            taken = [each.id for each in store.requests(limit=10)]
            store.commit(Changes(workloads={"bad": damaged}, handled=taken))
        lab.store = store  # type: ignore[assignment] # the real one, since only its rows can be damaged
        good = lab.submit(job_named("good"), exits(0))
        lab.restart_controller()
        lab.pass_s(5)
        (found,) = store.quarantined().values()
        assert (found.id, found.kind, len(lab.controller.quarantine)) == ("bad", "jobset", 1)
        assert found.message.startswith("taking it in: Internal: the stored jobset bad")
        assert lab.job(good).state is JobState.SUCCEEDED
        assert told(lab) == [WorkloadQuarantined("bad", "jobset", found.message)]


@pytest.mark.parametrize("column", ["spec", "state"])
def test_a_damaged_set_whose_job_runs_keeps_no_executor_from_its_orders(tmp_path: Path, column: str) -> None:
    lab, path = SetLab(), tmp_path / "holdfast.db"
    with closing(open_store(path)) as store:
        lab.store = store  # type: ignore[assignment] # the real one, since only its rows can be damaged
        lab.restart_controller()
        lab.submit_set(manifest("bad", replicatedJobs=[group("w")]), lambda order: LASTS[order.job_name])
        good = lab.submit(job_named("good"))
        lab.pass_s(2)
        with closing(sqlite3.connect(path)) as database:
            database.execute(f"UPDATE workloads SET {column} = '{{' WHERE id = 'set-bad'")  # noqa: S608 - two of our own
            database.commit()
        lab.restart_controller()
        late = lab.submit(job_named("late"))
        lab.pass_s(20)
        assert [lab.job(job).state for job in (good, late)] == [JobState.SUCCEEDED] * 2
        assert {(each.id, each.kind) for each in store.quarantined().values()} == {
            ("set-bad", "jobset"),
            ("id-bad-w-0", "kubejob"),
        }
        assert lab.engine_runs() == []  # nobody can say what should run of it


def test_nothing_is_kept_in_memory_of_a_job_that_could_not_be_taken_in(lab: Lab) -> None:
    bad = lab.submit(job_named("bad", retrying(delay_s=100.0)), exits(1))
    lab.pass_s(5)
    state = lab.controller.state
    state.waiting_attempt(lab.job(bad))
    assert bad in state.unplaced
    state.drop(bad)  # as its quarantine does
    assert bad not in {*state.jobs, *state.active, *state.unplaced}
