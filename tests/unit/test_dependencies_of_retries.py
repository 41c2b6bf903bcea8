"""What is retried or rerun waits for its dependencies as they stand then, as if it were submitted now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.domain.events.rebuild import rebuild
from holdfast.domain.job import JobState
from holdfast.domain.record import evolve
from holdfast.domain.workloads.array.rerun import TaskChoice
from holdfast.domain.workloads.dependencies import Dependency, OnUnmet
from holdfast.errors import Conflict
from holdfast.ports.requests import Request, RequestKind
from holdfast.service.reruns import rerun
from tests.unit.conftest import exits
from tests.unit.test_dependencies import WaitingLab

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.domain.workloads.array.model import ArraySpec
    from holdfast.engines.simulated.life import SimulatedRun
    from holdfast.ports.engine import RunOrder

QUEUED, WAITING, HELD = JobState.QUEUED, JobState.WAITING, JobState.HELD
SUCCEEDED, FAILED, CANCELLED = JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED


def mended(order: RunOrder) -> SimulatedRun:
    """What is called bad fails at first, and succeeds once it is retried."""
    return exits(int(order.job_name.startswith("bad") and order.attempt == 1), after_s=5.0)


@pytest.fixture
def lab(tmp_path: Path) -> WaitingLab:
    lab = WaitingLab(tmp_path / "holdfast.db")
    lab.ends = mended
    return lab


def retry(lab: WaitingLab, *names: str) -> None:
    for name in names:
        lab.store.append(Request(RequestKind.RETRY, (lab.job(name).id,), lab.clock.now(), actor="ann"))


@pytest.mark.parametrize("restarts", [False, True], ids=["one controller", "restarted all the time"])
def test_what_the_cascade_cancelled_runs_after_what_it_waits_for_when_both_are_retried(
    lab: WaitingLab, *, restarts: bool
) -> None:
    lab.add("bad-fetch")
    lab.add("train", "bad-fetch")
    lab.add("report", "train", "bad-fetch:ended")
    lab.pass_s(8)
    assert lab.states("bad-fetch", "train", "report") == [FAILED, CANCELLED, CANCELLED]
    retry(lab, "bad-fetch", "train", "report")
    for _ in range(4):
        lab.pass_s(1)
        if restarts:
            lab.restart_controller()
    assert (lab.job("train").state, lab.job("train").reason) == (WAITING, "waits for job bad-fetch to succeed")
    lab.pass_s(20)
    assert lab.states("bad-fetch", "train", "report") == [SUCCEEDED] * 3
    assert lab.started() == ["bad-fetch", "bad-fetch", "train", "report"]
    assert lab.controller.state.waits.awaited == {}


def test_a_retried_job_that_waits_is_what_its_events_say(lab: WaitingLab) -> None:
    lab.add("bad-fetch")
    train = lab.add("train", "bad-fetch")
    lab.pass_s(8)
    retry(lab, "bad-fetch", "train")
    lab.tick()
    events = [event for event in lab.store.events(after=0, limit=1000) if event.job_id == train]
    assert rebuild(events) == evolve(lab.job(train), spec="", seq=0)


def test_a_job_is_not_retried_while_what_it_waits_for_can_never_happen(lab: WaitingLab) -> None:
    lab.add("bad-fetch")
    lab.add("train", "bad-fetch")
    lab.pass_s(8)
    with pytest.raises(Conflict, match="cannot run: job bad-fetch did not succeed: it failed: exit code 1") as refused:
        retry(lab, "train")
    assert "retry that first" in str(refused.value.hint)
    assert [request.kind for request in lab.store.requests(limit=9)] == []
    retry(lab, "bad-fetch")
    lab.ask(RequestKind.CANCEL, lab.job("bad-fetch").id)
    with pytest.raises(Conflict, match="did not succeed"):
        retry(lab, "train")


def test_what_fails_again_cancels_again_what_was_retried_with_it(lab: WaitingLab) -> None:
    lab.ends = lambda order: exits(int(order.job_name == "bad"), after_s=5.0)
    lab.add("bad")
    lab.add("train", "bad")
    lab.pass_s(8)
    retry(lab, "bad", "train")
    lab.pass_s(8)
    assert lab.states("bad", "train") == [FAILED, CANCELLED]
    assert lab.started() == ["bad", "bad"]


@pytest.mark.parametrize(
    ("condition", "state"),
    [("ok", SUCCEEDED), ("ended", SUCCEEDED), ("started", SUCCEEDED), ("failed", CANCELLED)],
)
def test_a_job_that_has_run_waits_again_for_what_runs_again(lab: WaitingLab, condition: str, state: JobState) -> None:
    first = "bad-first" if condition == "failed" else "first"
    lab.add(first)
    lab.add("bad-train", f"{first}:{condition}")
    lab.pass_s(20)
    assert lab.states("bad-train") == [FAILED]
    retry(lab, first, "bad-train")
    lab.pass_s(20)
    assert lab.states(first, "bad-train") == [SUCCEEDED, state]
    expected = [first, "bad-train", first, "bad-train"]
    assert lab.started() == (expected[:3] if condition == "failed" else expected)


def test_how_the_other_had_ended_at_submission_does_not_count_for_a_retry(lab: WaitingLab) -> None:
    lab.add("bad-fetch")
    lab.pass_s(8)
    lab.add("train", "bad-fetch")
    lab.pass_s(2)
    assert lab.states("train") == [CANCELLED]
    retry(lab, "bad-fetch", "train")
    lab.pass_s(20)
    assert lab.states("bad-fetch", "train") == [SUCCEEDED, SUCCEEDED]


def test_of_what_was_deleted_counts_what_had_happened(lab: WaitingLab) -> None:
    lab.add("first")
    lab.add("bad-train", "first")
    lab.add("bad-fetch")
    lab.add("other", "bad-fetch")
    lab.pass_s(20)
    lab.store.delete_finished([lab.job("first").id, lab.job("bad-fetch").id])
    with pytest.raises(Conflict, match="job bad-fetch did not succeed: it was deleted"):
        retry(lab, "other")
    retry(lab, "bad-train")
    lab.pass_s(8)
    assert lab.states("bad-train") == [SUCCEEDED]


def test_what_is_waited_for_stays_once_a_retry_is_accepted(lab: WaitingLab) -> None:
    lab.add("first")
    lab.add("train", "first")
    lab.ask(RequestKind.CANCEL, lab.job("train").id)
    lab.pass_s(8)
    assert lab.states("first", "train") == [SUCCEEDED, CANCELLED]
    retry(lab, "train")
    assert lab.store.delete_finished([lab.job("first").id]) == 0
    lab.pass_s(8)
    assert lab.states("train") == [SUCCEEDED]
    assert lab.store.delete_finished([lab.job("first").id]) == 1


def test_a_job_that_was_held_while_it_waited_still_waits_when_it_is_retried(lab: WaitingLab) -> None:
    lab.add("first")
    lab.add("then", "first")
    lab.pass_s(1)
    lab.ask(RequestKind.HOLD, lab.job("then").id)
    lab.pass_s(1)
    retry(lab, "then")
    lab.pass_s(1)
    assert (lab.job("then").state, lab.job("then").reason) == (WAITING, "waits for job first to succeed")
    lab.pass_s(12)
    assert lab.started() == ["first", "then"]
    assert lab.states("then") == [SUCCEEDED]


def test_a_retry_goes_by_what_is_to_follow_where_a_condition_cannot_be_met(lab: WaitingLab) -> None:
    lab.add("bad-fetch")
    lab.add("held", Dependency("bad-fetch", on_unmet=OnUnmet.HOLD))
    lab.add("bad-runs", Dependency("bad-fetch", on_unmet=OnUnmet.RUN))
    lab.pass_s(20)
    lab.ask(RequestKind.CANCEL, lab.job("held").id)
    lab.pass_s(1)
    assert lab.states("held", "bad-runs") == [CANCELLED, FAILED]
    retry(lab, "held", "bad-runs")
    lab.pass_s(8)
    assert lab.states("held", "bad-runs") == [HELD, SUCCEEDED]


def test_the_total_deadline_of_a_job_that_waits_again_begins_when_it_is_ready(lab: WaitingLab) -> None:
    lab.add("bad-fetch")
    lab.add("train", "bad-fetch", total_deadline_s=8.0)
    lab.pass_s(30)
    retry(lab, "bad-fetch", "train")
    lab.pass_s(20)
    assert lab.states("train") == [SUCCEEDED]


def rerun_of(lab: WaitingLab, name: str, choice: TaskChoice) -> str:
    def named(spec: ArraySpec, unused: str) -> ArraySpec:
        return evolve(spec, job=evolve(spec.job, name=unused))

    return rerun(lab.submitter, name, choice, named).array.name


FAILED_ONES, CANCELLED_ONES = TaskChoice(failed=True), TaskChoice(cancelled=True)


@pytest.mark.parametrize("served", [True, False], ids=["once the controller has acted", "before that"])
def test_a_rerun_of_a_cancelled_array_waits_for_what_is_retried(lab: WaitingLab, *, served: bool) -> None:
    lab.add("bad-fetch")
    lab.add_array("sweep", 2, "bad-fetch")
    lab.pass_s(8)
    with pytest.raises(Conflict, match="array 'sweep' cannot run: job bad-fetch did not succeed: it failed"):
        rerun_of(lab, "sweep", CANCELLED_ONES)
    retry(lab, "bad-fetch")
    if served:
        lab.tick()
    again = rerun_of(lab, "sweep", CANCELLED_ONES)
    lab.pass_s(3)
    assert lab.array(again).state.made == 0
    lab.pass_s(15)
    assert lab.started() == ["bad-fetch", "bad-fetch", f"{again}-0", f"{again}-1"]
    assert lab.array(again).ended == SUCCEEDED


def test_tasks_that_are_rerun_wait_for_the_last_rerun_of_the_tasks_of_their_index(lab: WaitingLab) -> None:
    lab.ends = lambda order: exits(int(order.job_name == "sweep-1"), after_s=5.0)
    lab.add_array("sweep", 3)
    lab.add_array("evaluate", 3, "sweep:index")
    lab.pass_s(20)
    assert [lab.array(name).ended for name in ("sweep", "evaluate")] == [FAILED, CANCELLED]
    with pytest.raises(Conflict, match="task 1 of array 'evaluate' cannot run: job sweep-1 did not succeed") as refused:
        rerun_of(lab, "evaluate", CANCELLED_ONES)
    assert "holdfast rerun sweep --failed" in str(refused.value.hint)
    first = rerun_of(lab, "sweep", FAILED_ONES)
    with pytest.raises(Conflict, match="of several arrays: sweep, sweep-rerun-1"):
        rerun_of(lab, "evaluate", TaskChoice(indexes=frozenset({0, 1})))
    then = rerun_of(lab, "evaluate", CANCELLED_ONES)
    lab.pass_s(20)
    assert lab.started()[-2:] == [f"{first}-1", f"{then}-1"]
    assert lab.array(then).ended == SUCCEEDED


def test_a_rerun_goes_by_what_had_happened_of_what_was_deleted_since(lab: WaitingLab) -> None:
    lab.add("first")
    lab.add_array("sweep", 2, "first")
    lab.add_array("bad", 2, "sweep:index")
    lab.add("bad-fetch")
    lab.add_array("never", 2, "bad-fetch")
    lab.pass_s(30)
    lab.store.delete_finished(
        [
            lab.job("first").id,
            lab.job("bad-fetch").id,
            *(f"{lab.array('sweep').id}-sweep-{index}" for index in range(2)),
        ]
    )
    with pytest.raises(Conflict, match="job bad-fetch did not succeed: it was deleted"):
        rerun_of(lab, "never", CANCELLED_ONES)
    lab.ends = lambda _: exits(0)
    names = [rerun_of(lab, "bad", FAILED_ONES), rerun_of(lab, "sweep", TaskChoice(indexes=frozenset({0})))]
    lab.pass_s(10)
    assert [lab.array(name).ended for name in names] == [SUCCEEDED, SUCCEEDED]


def test_what_is_submitted_waits_for_what_is_about_to_be_retried(lab: WaitingLab) -> None:
    lab.add("bad-fetch")
    lab.pass_s(8)
    retry(lab, "bad-fetch")
    lab.add("train", "bad-fetch")
    lab.pass_s(20)
    assert lab.states("bad-fetch", "train") == [SUCCEEDED, SUCCEEDED]
