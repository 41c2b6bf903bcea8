"""Arrays under the real controller and a real database, in virtual time."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from holdfast.compiled.codec import SetChange, dump_change, dump_spec
from holdfast.domain.events.workloads import ArrayEnded
from holdfast.domain.job import JobState, Resources
from holdfast.domain.record import evolve
from holdfast.domain.workloads.array.model import MOST_WAITING, Array, ArraySpec, Indexes
from holdfast.domain.workloads.dependencies import Dependency, DependencyKind
from holdfast.domain.workloads.spec import JobSpec
from holdfast.ports.requests import Request, RequestKind
from holdfast.ports.store import JobFilter, Submission
from holdfast.service.retention import Retention
from holdfast.storage.sql import open_store
from tests import databases
from tests.unit.conftest import Lab, exits, retrying

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from holdfast.engines.simulated.life import SimulatedRun
    from holdfast.ports.engine import RunOrder


class NoFiles:
    """Files of runs, of which there are none."""

    def discard(self, job_ids: Sequence[str]) -> Mapping[str, str]:
        """Delete nothing of any job; nothing is left."""
        return dict.fromkeys(job_ids[:0], "")


class ArrayLab(Lab):
    """A lab with a real database; every task does what ``plan`` says."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.store = open_store(databases.migrated(path))  # type: ignore[assignment] # one store is as good as another
        self.plan: Callable[[RunOrder], SimulatedRun] = lambda _: exits(0)
        self.restart_controller()

    def _plan(self, order: RunOrder) -> SimulatedRun:
        self.orders.append(order)
        return self.plan(order)

    def submit_array(self, spec: ArraySpec) -> None:
        stored, now, queue = dump_spec(spec), self.clock.now(), spec.job.queue
        row = Array(id=spec.name, name=spec.name, spec=stored, created_at=now, queue=queue)
        self.store.submit(Submission([], owner=row))

    def array(self) -> Array:
        return self.store.workload(Array, "sweep")

    def counts(self) -> tuple[int, int, int]:
        state = self.array().state
        return state.succeeded, state.failed, state.cancelled

    def stored(self) -> Counter[JobState]:
        return Counter(job.state for job in self.store.jobs(JobFilter()))

    def started(self) -> Counter[str]:
        return Counter(order.job_name for order in self.orders)


@pytest.fixture
def lab(tmp_path: Path) -> ArrayLab:
    return ArrayLab(tmp_path / "holdfast.db")


def sweep(total: int, **limits: int) -> ArraySpec:
    job = JobSpec("sweep", ("train",), resources=Resources(1000), inline_policies=(retrying(2),))
    return ArraySpec(job, (Indexes(0, total - 1),), **limits)  # type: ignore[arg-type] # limits are the rest


def test_each_task_is_started_once_with_its_index_and_the_array_succeeds(lab: ArrayLab) -> None:
    lab.submit_array(sweep(9))
    lab.pass_s(10)
    assert (lab.array().ended, lab.counts()) == ("Succeeded", (9, 0, 0))
    assert lab.started() == {f"sweep-{index}": 1 for index in range(9)}
    told = sorted(order.containers[0].env["HOLDFAST_ARRAY_INDEX"] for order in lab.orders)
    assert told == [str(index) for index in range(9)]
    [ended] = [one.event for one in lab.store.events(after=0, limit=1000) if isinstance(one.event, ArrayEnded)]
    assert (ended.outcome, ended.succeeded, ended.reason) == ("Succeeded", 9, "9 of 9 tasks succeeded")
    assert lab.controller.state.jobs == {}


def test_never_more_exist_than_may_run_however_often_the_controller_is_restarted(lab: ArrayLab) -> None:
    lab.submit_array(sweep(7, max_running=2))
    for _ in range(30):
        lab.pass_s(0.5, every_s=0.5)
        assert len(lab.controller.state.jobs) <= 2
        lab.restart_controller()
    lab.pass_s(3)
    assert lab.counts() == (7, 0, 0)
    assert lab.started() == {f"sweep-{index}": 1 for index in range(7)}


def test_tasks_count_after_a_restart_whatever_retention_was_to_delete_before(lab: ArrayLab) -> None:
    lab.plan = lambda _: exits(0, after_s=2.0)
    lab.submit_array(sweep(5, max_running=1))
    for _ in range(5):
        lab.pass_s(3)
        list(Retention(lab.store, NoFiles()).sweep(ended_before=lab.clock.now()))
        lab.restart_controller()
    assert (lab.array().ended, lab.counts()) == ("Succeeded", (5, 0, 0))


def test_a_task_is_retried_by_its_own_policy_and_counts_when_it_is_over(lab: ArrayLab) -> None:
    tries: Counter[str] = Counter()

    def plan(order: RunOrder) -> SimulatedRun:
        tries[order.job_name] += 1
        return exits(1 if order.job_name == "sweep-1" or tries[order.job_name] == 1 else 0)

    lab.plan = plan
    lab.submit_array(sweep(3))
    lab.pass_s(20)
    assert tries == {"sweep-0": 2, "sweep-1": 3, "sweep-2": 2}
    assert (lab.counts(), lab.array().ended) == ((2, 1, 0), "Failed")


def test_after_too_many_failures_the_others_are_cancelled(lab: ArrayLab) -> None:
    lab.plan = lambda order: exits(1) if order.job_name == "sweep-0" else exits(0, after_s=1000)
    lab.submit_array(sweep(300, max_failures=0, max_running=4))
    lab.pass_s(20)
    array = lab.array()
    assert (array.ended, array.state.failed) == ("Failed", 1)
    assert array.state.cancelled == array.state.made - 1
    assert lab.stored() == {JobState.FAILED: 1, JobState.CANCELLED: array.state.made - 1}
    assert set(lab.engine.observe()) == set()


def test_a_cancelled_array_stops_its_tasks_and_makes_no_more(lab: ArrayLab) -> None:
    lab.plan = lambda _: exits(0, after_s=1000)
    lab.submit_array(sweep(50, max_running=10))
    lab.pass_s(3)
    lab.ask(RequestKind.CANCEL, "sweep", "wrong data")
    lab.pass_s(15)
    array = lab.array()
    assert (array.ended, array.state.reason, array.state.made) == ("Cancelled", "wrong data", 10)
    assert lab.stored() == {JobState.CANCELLED: 10}


@pytest.mark.parametrize("kind", [RequestKind.CANCEL, RequestKind.DELETE])
@pytest.mark.parametrize("restarts", [False, True])
def test_one_that_is_stopped_in_the_tick_after_its_tasks_were_made_leaves_none_behind(
    lab: ArrayLab, kind: RequestKind, *, restarts: bool
) -> None:
    lab.submit_array(sweep(5))
    lab.tick()
    lab.ask(kind, "sweep")
    if restarts:
        lab.restart_controller()
    lab.pass_s(15)
    assert lab.stored() == {JobState.CANCELLED: 5}
    assert lab.controller.state.jobs == {}
    assert lab.orders == []


def test_a_task_is_cancelled_in_the_moment_it_was_made_too(lab: ArrayLab) -> None:
    lab.submit_array(sweep(3))
    lab.tick()
    lab.ask(RequestKind.CANCEL, "sweep-sweep-1")
    lab.pass_s(10)
    assert (lab.counts(), lab.array().ended) == ((2, 0, 1), "Cancelled")
    assert lab.started() == {"sweep-0": 1, "sweep-2": 1}


def test_a_task_cancelled_by_itself_is_counted_as_such(lab: ArrayLab) -> None:
    lab.plan = lambda _: exits(0, after_s=5)
    lab.submit_array(sweep(2))
    lab.pass_s(2)
    lab.ask(RequestKind.CANCEL, "sweep-sweep-1")
    lab.pass_s(20)
    assert (lab.counts(), lab.array().ended) == ((1, 0, 1), "Cancelled")


def test_a_deleted_array_goes_when_its_programs_have_stopped_and_its_tasks_stay(lab: ArrayLab) -> None:
    lab.plan = lambda _: exits(0, after_s=1000)
    lab.submit_array(sweep(20))
    lab.pass_s(3)
    lab.ask(RequestKind.DELETE, "sweep")
    lab.pass_s(15)
    assert lab.store.workloads(Array) == []
    assert lab.stored() == {JobState.CANCELLED: 20}
    assert lab.controller.state.jobs == {}


@pytest.mark.parametrize("kind", [RequestKind.CANCEL, RequestKind.DELETE])
@pytest.mark.parametrize("restarts", [False, True])
def test_while_the_programs_of_a_stopped_array_end_one_by_one_no_other_task_takes_their_places(
    lab: ArrayLab, kind: RequestKind, *, restarts: bool
) -> None:
    lab.plan = lambda order: evolve(exits(0, after_s=1000), term_delay_s=2.0 * int(order.job_name[-1]))
    lab.submit_array(sweep(9))
    lab.pass_s(3)
    lab.ask(kind, "sweep")
    for _ in range(15):
        lab.pass_s(1)
        if restarts:
            lab.restart_controller()
    assert lab.started() == {f"sweep-{index}": 1 for index in range(4)}
    assert lab.stored() == {JobState.CANCELLED: 9}


def test_memory_and_rows_hold_only_tasks_that_were_made(lab: ArrayLab) -> None:
    lab.submit_array(sweep(100_000))
    lab.pass_s(5)
    assert len(lab.controller.state.jobs) <= MOST_WAITING + 4
    assert len(lab.store.jobs(JobFilter())) <= 2 * MOST_WAITING


def test_its_record_is_not_written_for_each_task_that_ends(lab: ArrayLab) -> None:
    lab.submit_array(sweep(40))
    lab.pass_s(2)
    before = lab.array()
    lab.pass_s(2)
    ended = lab.store.count_by_state("sweep")[JobState.SUCCEEDED]
    assert (0 < ended < 40, lab.array()) == (True, before)


def test_none_of_a_held_array_starts_whatever_happens_and_all_of_it_goes_on_when_it_is_released(lab: ArrayLab) -> None:
    tries: Counter[str] = Counter()

    def plan(order: RunOrder) -> SimulatedRun:
        tries[order.job_name] += 1
        return exits(int(tries[order.job_name] == 1), after_s=4)

    lab.plan = plan
    lab.submit_array(sweep(12))
    lab.pass_s(2)
    running = set(lab.started())
    assert len(running) == 4
    lab.ask(RequestKind.HOLD, "sweep", "too hot")
    lab.pass_s(10)
    assert (set(lab.started()), lab.stored()) == (running, {JobState.HELD: 12})
    lab.ask(RequestKind.RELEASE, "sweep-sweep-5")
    lab.restart_controller()
    lab.pass_s(10)
    assert (lab.array().state.held, set(lab.started()), lab.stored()) == ("too hot", running, {JobState.HELD: 12})
    lab.ask(RequestKind.RELEASE, "sweep")
    lab.pass_s(60)
    assert (lab.array().ended, lab.counts()) == ("Succeeded", (12, 0, 0))
    assert lab.started() == {f"sweep-{index}": 2 for index in range(12)}


def test_a_hold_at_any_moment_keeps_tasks_that_are_just_made_and_releases_only_those_it_held(lab: ArrayLab) -> None:
    lab.submit_array(sweep(3))
    lab.tick()
    lab.ask(RequestKind.HOLD, "sweep-sweep-1", "mine")
    lab.ask(RequestKind.HOLD, "sweep")
    lab.pass_s(5)
    assert (lab.stored(), lab.orders) == ({JobState.HELD: 3}, [])
    lab.ask(RequestKind.RELEASE, "sweep")
    lab.pass_s(10)
    assert lab.stored() == {JobState.SUCCEEDED: 2, JobState.HELD: 1}
    assert lab.store.job("sweep-sweep-1").reason == "mine"
    lab.ask(RequestKind.CANCEL, "sweep")
    lab.pass_s(5)
    assert (lab.array().ended, lab.counts()) == ("Cancelled", (2, 0, 1))


def test_a_held_array_that_waits_for_something_makes_its_tasks_once_it_is_released(lab: ArrayLab) -> None:
    lab.plan = lambda _: exits(0, after_s=5)
    prep = lab.submit(JobSpec("prep", ("prep",)))
    after = (Dependency("prep", target=DependencyKind.JOB, id=prep),)
    lab.submit_array(evolve(sweep(2), job=evolve(sweep(2).job, after=after)))
    lab.ask(RequestKind.HOLD, "sweep")
    lab.pass_s(10)
    assert (lab.array().state.made, lab.store.job(prep).state) == (0, JobState.SUCCEEDED)
    lab.restart_controller()
    lab.pass_s(2)
    lab.ask(RequestKind.RELEASE, "sweep")
    lab.pass_s(20)
    assert (lab.array().ended, lab.counts()) == ("Succeeded", (2, 0, 0))


def test_other_limits_hold_from_then_on_and_what_is_waited_for_stays_so(lab: ArrayLab) -> None:
    lab.plan = lambda _: exits(0, after_s=5)
    prep = lab.submit(JobSpec("prep", ("prep",)))
    spec = evolve(
        sweep(9, max_running=1),
        job=evolve(sweep(9).job, after=(Dependency("prep", target=DependencyKind.JOB, id=prep),)),
    )

    def limit(most: int) -> None:
        change = dump_change(SetChange("", dump_spec(evolve(spec, max_running=most))))
        lab.store.append(Request(RequestKind.UPDATE, ("sweep",), lab.clock.now(), payload=change))

    lab.submit_array(spec)
    lab.pass_s(2)
    limit(2)
    lab.pass_s(7)
    assert (lab.array().state.made, lab.array().generation) == (2, 2)
    lab.restart_controller()
    limit(4)
    lab.pass_s(2)
    assert len(lab.controller.state.jobs) == 4
    lab.pass_s(20)
    assert (lab.array().ended, lab.counts()) == ("Succeeded", (9, 0, 0))
