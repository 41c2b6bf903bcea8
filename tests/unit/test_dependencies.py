"""Jobs, arrays and job sets that are waited for, under the real controller and a real database, in virtual time."""

from __future__ import annotations

from itertools import count, pairwise
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.job import JobState, Queue, Resources
from holdfast.domain.notifier import Medium, Notifier, Notify, Occasion
from holdfast.domain.workloads.array.model import Array, ArraySpec, Indexes
from holdfast.domain.workloads.dependencies import Condition, Dependency, OnUnmet
from holdfast.ports.notifications import NotificationFilter
from holdfast.ports.requests import RequestKind
from holdfast.ports.store import JobFilter
from holdfast.service.explain import Explainer
from holdfast.service.submit import Submitter, WrittenJob
from holdfast.storage.sql import open_store
from tests import databases
from tests.unit.conftest import Lab, exits, job_named, retrying

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from holdfast.engines.simulated.life import SimulatedRun
    from holdfast.ports.engine import RunOrder

QUEUED, RUNNING, WAITING, HELD = JobState.QUEUED, JobState.RUNNING, JobState.WAITING, JobState.HELD
SUCCEEDED, FAILED, CANCELLED = JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED
OK, ENDED, STARTED = Condition.OK, Condition.ENDED, Condition.STARTED


class Numbers:
    def __init__(self) -> None:
        self._numbers = count(1)

    def new(self) -> str:
        return f"id{next(self._numbers):04}"


class WaitingLab(Lab):
    """A lab with a real database and real submission; a program's name says how it ends."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.store = open_store(databases.migrated(path))  # type: ignore[assignment] # one store is as good as another
        self.submitter = Submitter(self.store, self.clock, Numbers())
        self.ends: Callable[[RunOrder], SimulatedRun] = lambda order: exits(int(order.job_name.startswith("bad")))
        self.restart_controller()

    def _plan(self, order: RunOrder) -> SimulatedRun:
        self.orders.append(order)
        return self.ends(order)

    def add(self, name: str, *after: str | Dependency, **fields: object) -> str:
        """Submit a job that waits for others, each named or as ``name:condition``."""
        spec = job_named(name, **{"resources": Resources(100), "after": tuple(map(named, after)), **fields})
        return self.submitter.submit(spec).id

    def add_array(self, name: str, total: int, *after: str | Dependency, first: int = 0, **limits: int) -> str:
        job = job_named(name, resources=Resources(100), after=tuple(map(named, after)))
        spec = ArraySpec(job, (Indexes(first, first + total - 1),), **limits)  # type: ignore[arg-type] # the rest
        return self.submitter.submit_array(WrittenJob(spec.job, array=spec, manifest="{}")).id

    def states(self, *names: str) -> list[JobState]:
        return [self.job(name).state for name in names]

    def started(self) -> list[str]:
        return [order.job_name for order in self.orders]

    def array(self, name: str) -> Array:
        return self.store.workload(Array, name)


def named(text: str | Dependency) -> Dependency:
    if isinstance(text, Dependency):
        return text
    name, _, word = text.partition(":")
    if word == "index":
        return Dependency(name, by_index=True)
    return Dependency(name, Condition(word or "ok"))


@pytest.fixture
def lab(tmp_path: Path) -> WaitingLab:
    return WaitingLab(tmp_path / "holdfast.db")


@pytest.mark.parametrize("restarts", [False, True], ids=["one controller", "restarted all the time"])
@pytest.mark.parametrize(
    ("other", "condition", "state"),
    [
        ("good", "ok", SUCCEEDED),
        ("good", "failed", CANCELLED),
        ("good", "ended", SUCCEEDED),
        ("good", "started", SUCCEEDED),
        ("bad", "ok", CANCELLED),
        ("bad", "failed", SUCCEEDED),
        ("bad", "ended", SUCCEEDED),
        ("bad", "started", SUCCEEDED),
    ],
)
@pytest.mark.parametrize("late", [False, True], ids=["submitted before the other ends", "after that"])
def test_a_job_runs_only_when_its_condition_holds(
    lab: WaitingLab, other: str, condition: str, state: JobState, *, late: bool, restarts: bool
) -> None:
    """SQ-007."""
    lab.add(other)
    if late:
        lab.pass_s(3)
    lab.add("next", f"{other}:{condition}")
    for _ in range(5):
        if restarts:
            lab.restart_controller()
        lab.pass_s(1)
    assert lab.states("next") == [state]
    assert lab.started() == [other, "next"][: 1 + (state is SUCCEEDED)]
    assert lab.controller.state.waits.awaited == {}


def test_nothing_starts_before_the_other_has_ended_and_it_then_starts_at_once(lab: WaitingLab) -> None:
    lab.ends = lambda _: exits(0, after_s=10)
    lab.add("first")
    lab.add("then", "first")
    lab.pass_s(9)
    assert lab.started() == ["first"]
    then = lab.job("then")
    assert (then.state, then.reason, then.ready_at) == (WAITING, "waits for job first to succeed", None)
    lab.pass_s(2)
    then, first = lab.job("then"), lab.job("first")
    assert (then.state, then.ready_at) == (RUNNING, first.ended_at)


def test_started_holds_as_soon_as_the_other_runs(lab: WaitingLab) -> None:
    lab.ends = lambda _: exits(0, after_s=100)
    lab.add("server")
    lab.add("client", "server:started")
    lab.pass_s(3)
    assert lab.states("server", "client") == [RUNNING, RUNNING]


def test_a_retry_in_progress_is_no_failure_and_a_hold_is_only_waiting(lab: WaitingLab) -> None:
    """RD-010."""
    tries = count(1)
    lab.ends = lambda order: exits(int(order.job_name == "flaky" and next(tries) <= 2))
    policy = retrying(5, delay_s=10.0)
    lab.submitter.submit(job_named("flaky", policy))
    lab.add("next", "flaky")
    lab.pass_s(5)
    assert lab.states("flaky", "next") == [JobState.BACKOFF, WAITING]
    lab.ask(RequestKind.HOLD, lab.job("flaky").id)
    lab.pass_s(60)
    assert lab.states("flaky", "next") == [HELD, WAITING]
    told = Explainer(lab.store).why("next")
    assert told.headline == "Job next waits for job flaky to succeed"
    [line] = told.summary
    assert line.startswith("It waits for job flaky to succeed. Job flaky is held until it is released: ")
    lab.ask(RequestKind.RELEASE, lab.job("flaky").id)
    lab.pass_s(60)
    assert lab.states("flaky", "next") == [SUCCEEDED, SUCCEEDED]


def test_what_can_never_hold_cancels_a_whole_chain_in_one_commit_and_says_why(lab: WaitingLab) -> None:
    lab.add("bad")
    names = ["bad", *(f"job{number}" for number in range(40))]
    for before, name in pairwise(names):
        lab.add(name, before)
    lab.pass_s(3)
    jobs = {job.name: job for job in lab.store.jobs(JobFilter())}
    assert {jobs[name].state for name in names[1:]} == {CANCELLED}
    assert {jobs[name].ended_at for name in names} == {jobs["bad"].ended_at}
    assert jobs["job0"].reason.startswith("job bad did not succeed: it failed: exit code 1")
    assert jobs["job1"].reason.startswith("job job0 did not succeed: it was cancelled: job bad did not succeed: ")
    assert max(len(job.reason) for job in jobs.values()) < 300
    assert lab.started() == ["bad"]
    assert Explainer(lab.store).why("job0").headline.startswith("Job job0 was cancelled: job bad did not succeed")


def test_a_cancelled_job_has_neither_succeeded_nor_failed(lab: WaitingLab) -> None:
    lab.ends = lambda _: exits(0, after_s=5)
    lab.add("other")
    for condition in ("ok", "failed", "ended"):
        lab.add(condition, f"other:{condition}")
    lab.pass_s(2)
    lab.ask(RequestKind.CANCEL, lab.job("other").id, "no more need")
    lab.pass_s(12)
    assert lab.states("ok", "failed", "ended") == [CANCELLED, CANCELLED, SUCCEEDED]
    assert lab.job("failed").reason == "job other did not fail: it was cancelled: no more need"


def test_one_that_is_cancelled_before_it_starts_has_never_started(lab: WaitingLab) -> None:
    lab.add("other", queue="default", node_selector={"zone": "nowhere"})
    lab.add("next", "other:started")
    lab.pass_s(2)
    lab.ask(RequestKind.CANCEL, lab.job("other").id, "no such place")
    lab.pass_s(2)
    assert lab.job("next").reason == "job other never started: it was cancelled: no such place"


def test_all_of_several_must_hold_and_what_has_happened_is_kept_over_restarts(lab: WaitingLab) -> None:
    lab.ends = lambda order: exits(0, after_s=30.0 if order.job_name == "slow" else 1.0)
    lab.add("quick")
    lab.add("slow")
    lab.add("both", "quick", "slow:ended")
    lab.pass_s(5)
    assert (lab.job("both").reason, lab.job("both").met) == ("waits for job slow to end", (0,))
    lab.store.delete_finished([lab.job("quick").id])
    lab.restart_controller()
    lab.pass_s(40)
    assert lab.states("both") == [SUCCEEDED]


def test_how_the_other_had_ended_at_submission_counts_even_when_it_is_forgotten_at_once(lab: WaitingLab) -> None:
    lab.add("good")
    lab.add("bad")
    lab.pass_s(3)
    lab.add("after-good", "good")
    lab.add("after-bad", "bad")
    lab.store.delete_finished([lab.job("good").id, lab.job("bad").id])
    lab.pass_s(3)
    assert lab.states("after-good", "after-bad") == [SUCCEEDED, CANCELLED]
    assert lab.job("after-bad").reason.startswith("job bad did not succeed: it failed: exit code 1")


@pytest.mark.parametrize("restarts", [False, True])
def test_on_unmet_hold_waits_for_a_person_and_run_goes_on(lab: WaitingLab, *, restarts: bool) -> None:
    lab.add("bad")
    lab.add("good")
    lab.add("held", Dependency("bad", on_unmet=OnUnmet.HOLD), "good")
    lab.add("runs", Dependency("bad", on_unmet=OnUnmet.RUN), "good")
    for _ in range(4):
        lab.pass_s(1)
        if restarts:
            lab.restart_controller()
    assert lab.states("held", "runs") == [HELD, SUCCEEDED]
    assert lab.job("held").reason.startswith("job bad did not succeed: it failed: exit code 1")
    lab.ask(RequestKind.RELEASE, lab.job("held").id)
    lab.pass_s(3)
    assert lab.states("held") == [SUCCEEDED]


def test_a_waiting_job_can_be_held_and_released_and_still_waits(lab: WaitingLab) -> None:
    lab.ends = lambda _: exits(0, after_s=20)
    lab.add("first")
    then = lab.add("then", "first")
    lab.pass_s(1)
    lab.ask(RequestKind.HOLD, then, "not yet")
    lab.pass_s(1)
    lab.ask(RequestKind.RELEASE, then)
    lab.pass_s(1)
    assert (lab.job(then).state, lab.job(then).reason) == (WAITING, "waits for job first to succeed")
    lab.ask(RequestKind.HOLD, then, "not yet")
    lab.pass_s(30)
    assert (lab.job(then).state, lab.job(then).reason) == (HELD, "not yet")
    assert lab.job(then).ready_at is not None
    lab.ask(RequestKind.RELEASE, then)
    lab.pass_s(2)
    assert lab.job(then).state is RUNNING


def test_a_waiting_job_can_be_cancelled_and_nothing_is_remembered_of_it(lab: WaitingLab) -> None:
    lab.ends = lambda _: exits(0, after_s=20)
    lab.add("first")
    then = lab.add("then", "first")
    last = lab.add("last", "then")
    lab.pass_s(1)
    lab.ask(RequestKind.CANCEL, then, "wrong data")
    lab.pass_s(1)
    assert lab.states(then, last) == [CANCELLED, CANCELLED]
    assert lab.job(last).reason == "job then did not succeed: it was cancelled: wrong data"
    assert lab.controller.state.waits.awaited == {}


def test_a_task_can_be_waited_for_as_soon_as_it_is_made_though_others_waited_for_it_before(lab: WaitingLab) -> None:
    lab.ends = lambda order: exits(0, after_s=5.0 if order.job_name == "prep" else 0.0)
    lab.add("prep")
    lab.add_array("sweep", 2, "prep")
    lab.add_array("each", 2, "sweep:index")
    lab.pass_s(2)
    lab.store.put_entry(Queue("default", paused=True))
    lab.pass_s(6)
    assert lab.states("prep", "sweep-0", "each-0") == [SUCCEEDED, QUEUED, WAITING]
    lab.add("report", "sweep-0:ended")
    lab.pass_s(2)
    assert lab.states("report") == [WAITING]
    lab.store.put_entry(Queue("default"))
    lab.pass_s(3)
    assert lab.states("sweep-0", "each-0", "report") == [SUCCEEDED, SUCCEEDED, SUCCEEDED]


def test_deadlines_and_the_time_for_a_place_begin_when_it_is_ready(lab: WaitingLab) -> None:
    lab.ends = lambda order: exits(0, after_s=100.0 if order.job_name == "slow" else 8.0)
    lab.add("slow")
    lab.add("total", "slow", total_deadline_s=10.0)
    lab.add("short", "slow", total_deadline_s=5.0)
    lab.add("placed", "slow", scheduling_timeout_s=5.0)
    lab.add("nowhere", "slow", scheduling_timeout_s=5.0, node_selector={"zone": "nowhere"})
    lab.pass_s(99)
    assert set(lab.states("total", "short", "placed", "nowhere")) == {WAITING}
    lab.pass_s(40)
    assert lab.states("total", "short", "placed", "nowhere") == [SUCCEEDED, FAILED, SUCCEEDED, FAILED]
    assert "found no place within 5s" in lab.job("nowhere").reason
    assert lab.job("nowhere").ended_at == pytest.approx((lab.job("slow").ended_at or 0.0) + 5.0, abs=1.1)


def test_waiting_costs_nothing_in_a_tick(lab: WaitingLab) -> None:
    lab.ends = lambda _: exits(0, after_s=1000)
    lab.add("first")
    specs = [job_named(f"j{number}", after=(Dependency("first"),)) for number in range(3000)]
    lab.submitter.submit_many(specs)
    lab.pass_s(20)
    looked: list[Sequence[str]] = []
    gangs = lab.controller.state.kinds["gang"]
    reconcile = gangs.reconcile
    gangs.reconcile = lambda keys, now: (looked.append(keys), reconcile(keys, now))[1]  # type: ignore[method-assign,func-returns-value]
    lab.pass_s(20)
    assert sum(map(len, looked)) < 50
    assert len(lab.controller.state.pending) == 0
    assert not lab.controller.state.changes


def test_many_that_waited_for_one_are_all_started_and_none_twice(lab: WaitingLab) -> None:
    lab.add("first")
    specs = [job_named(f"j{number}", resources=Resources(1), after=(Dependency("first"),)) for number in range(1500)]
    lab.submitter.submit_many(specs)
    lab.pass_s(25)
    assert lab.store.count_by_state() == {"Succeeded": 1501}
    assert sorted(lab.started()) == sorted(["first", *(spec.name for spec in specs)])


def test_a_new_controller_looks_up_in_one_query_what_ended_before_it(
    lab: WaitingLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.ends = lambda _: exits(1, after_s=1.5)
    others = [lab.add(f"other-{number}") for number in range(12)]
    specs = [job_named(f"j{number}", after=(Dependency(others[number % 12]),)) for number in range(360)]
    lab.submitter.submit_many(specs)
    lab.pass_s(1)
    with monkeypatch.context() as patch:  # none of them moves in the commit that ends what they wait for
        patch.setattr("holdfast.controller.dependencies._AT_ONCE", 0)
        lab.clock.time += 1
        lab.step()
    assert lab.store.count_by_state() == {"Failed": 12, "Waiting": 360}
    asked: list[Sequence[str]] = []
    by_id = lab.store.jobs_by_id
    lab.store.jobs_by_id = lambda ids: (asked.append(ids), by_id(ids))[1]  # type: ignore[method-assign,assignment,func-returns-value]
    lab.restart_controller()
    for _ in range(60):
        lab.tick()
    assert (len(asked), sorted(asked[0])) == (1, sorted(others))
    assert lab.store.count_by_state() == {"Failed": 12, "Cancelled": 360}


def test_the_order_in_a_submission_does_not_matter(lab: WaitingLab) -> None:
    specs = [
        job_named("c", after=(named("b"), named("a"))),
        job_named("b", after=(named("a:ended"),)),
        job_named("a"),
    ]
    lab.submitter.submit_many(specs)
    lab.pass_s(10)
    assert lab.started() == ["a", "b", "c"]


# arrays


def test_an_array_waits_as_a_whole_without_any_task(lab: WaitingLab) -> None:
    lab.ends = lambda order: exits(0, after_s=5.0 if order.job_name == "prep" else 1.0)
    lab.add("prep")
    lab.add_array("sweep", 10, "prep")
    lab.pass_s(3)
    assert lab.store.count_by_state() == {"Running": 1}
    lab.restart_controller()
    lab.pass_s(10)
    assert lab.array("sweep").ended == "Succeeded"


def test_an_array_whose_condition_can_never_hold_ends_without_a_task(lab: WaitingLab) -> None:
    lab.add("bad")
    lab.add_array("sweep", 10, "bad")
    lab.add("report", "sweep:ended")
    lab.add("never", "sweep")
    lab.pass_s(5)
    assert lab.array("sweep").ended == "Cancelled"
    assert lab.array("sweep").state.reason.startswith("job bad did not succeed: it failed")
    assert lab.states("report", "never") == [SUCCEEDED, CANCELLED]
    assert lab.job("never").reason.startswith("array sweep did not succeed: it was cancelled: job bad did not")


@pytest.mark.parametrize("restarts", [False, True])
def test_an_array_that_is_to_be_held_waits_for_a_person_and_then_for_the_rest(
    lab: WaitingLab, *, restarts: bool
) -> None:
    lab.ends = lambda order: exits(int(order.job_name == "bad"), after_s=10.0 if order.job_name == "prep" else 1.0)
    lab.store.put_entry(Notifier("ops", Medium.WEBHOOK, url="https://example.org"))
    lab.store.put_entry(Queue("default", notify=(Notify("ops", (Occasion.HOLD,)),)))
    lab.add("bad")
    lab.add("prep")
    lab.add_array("sweep", 10, Dependency("bad", on_unmet=OnUnmet.HOLD), "prep")
    lab.pass_s(3)
    assert lab.array("sweep").state.held.startswith("job bad did not succeed: it failed")
    if restarts:
        lab.restart_controller()
    lab.ask(RequestKind.RELEASE, lab.array("sweep").id)
    lab.pass_s(3)
    assert (lab.array("sweep").state.held, lab.array("sweep").state.made) == ("", 0)
    lab.pass_s(20)
    assert lab.array("sweep").ended == "Succeeded"
    [told] = lab.store.notifications(NotificationFilter(), limit=10)
    assert (told.report.event, told.report.reason[:23]) == ("array.held", "job bad did not succeed")


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(("failing", "state"), [("none", SUCCEEDED), ("sweep-3", CANCELLED)])
def test_a_job_waits_for_a_whole_array(lab: WaitingLab, failing: str, state: JobState, *, restarts: bool) -> None:
    lab.ends = lambda order: exits(int(order.job_name == failing))
    lab.add_array("sweep", 9, max_running=3)
    lab.add("report", "sweep")
    for _ in range(12):
        assert lab.job("report").state is WAITING or lab.array("sweep").ended
        lab.pass_s(1)
        if restarts:
            lab.restart_controller()
    assert lab.states("report") == [state]


@pytest.mark.parametrize("restarts", [False, True])
def test_tasks_wait_for_the_tasks_of_their_own_index(lab: WaitingLab, *, restarts: bool) -> None:
    lab.ends = lambda order: exits(int(order.job_name == "first-2"), after_s=3.0)
    lab.add_array("first", 6, max_running=2)
    lab.add_array("second", 5, "first:index", first=1)
    for _ in range(20):
        if restarts:
            lab.restart_controller()
        lab.pass_s(1)
    started = lab.started()
    assert sorted(started) == [*(f"first-{n}" for n in range(6)), *(f"second-{n}" for n in (1, 3, 4, 5))]
    assert all(started.index(f"first-{n}") < started.index(f"second-{n}") for n in (1, 3, 4, 5))
    assert started.index("second-1") < started.index("first-5")
    assert lab.job("second-2").reason.startswith("job first-2 did not succeed: it failed: exit code 1")
    state = lab.array("second").state
    assert (state.status, state.succeeded, state.cancelled) == ("Cancelled", 4, 1)
    assert lab.controller.state.waits.awaited == {}


def test_tasks_of_an_index_that_is_never_made_any_more_are_cancelled(lab: WaitingLab) -> None:
    lab.ends = lambda _: exits(0, after_s=50.0)
    lab.add_array("first", 500, max_running=2)
    lab.add_array("second", 500, "first:index")
    lab.pass_s(5)
    assert len(lab.controller.state.jobs) < 200
    lab.ask(RequestKind.CANCEL, lab.array("first").id, "enough")
    lab.pass_s(30)
    assert (lab.array("second").ended, lab.array("second").state.cancelled) == ("Cancelled", 500)
    assert lab.job("second-499").reason == "job first-499 did not succeed: it was cancelled: its array ended without it"
    assert lab.controller.state.waits.awaited == {}


def test_an_array_that_is_deleted_can_never_be_waited_for_any_more(lab: WaitingLab) -> None:
    lab.ends = lambda _: exits(0, after_s=50.0)
    lab.add_array("sweep", 3)
    lab.add("report", "sweep:ended")
    lab.pass_s(3)
    lab.ask(RequestKind.DELETE, lab.array("sweep").id)
    lab.pass_s(20)
    assert (lab.job("report").state, lab.job("report").reason) == (CANCELLED, "array sweep did not end: it was deleted")


def test_a_waiting_array_can_be_cancelled(lab: WaitingLab) -> None:
    lab.ends = lambda _: exits(0, after_s=50.0)
    lab.add("prep")
    lab.add_array("sweep", 3, "prep")
    lab.pass_s(2)
    lab.ask(RequestKind.CANCEL, lab.array("sweep").id, "enough")
    lab.pass_s(2)
    assert (lab.array("sweep").ended, lab.array("sweep").state.reason) == ("Cancelled", "enough")
    assert lab.controller.state.waits.awaited == {}
