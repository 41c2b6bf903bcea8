"""Children of jobs end with their parents, under the real controller and a real database, in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.domain.job import JobState, Resources
from holdfast.domain.workloads.family import ChildrenEnd
from holdfast.ports.requests import RequestKind
from holdfast.ports.store import Changes, JobFilter
from holdfast.service.submit import Submitter, WrittenJob
from holdfast.storage.sql import open_store
from tests import databases
from tests.unit.conftest import Lab, exits, job_named, retrying
from tests.unit.test_dependencies import Numbers

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.engines.simulated.life import SimulatedRun
    from holdfast.ports.exchange import ExchangeRequest, ExchangeResponse

RUNNING, QUEUED, SUCCEEDED = JobState.RUNNING, JobState.QUEUED, JobState.SUCCEEDED
FAILED, CANCELLED, BACKOFF = JobState.FAILED, JobState.CANCELLED, JobState.BACKOFF


class FamilyLab(Lab):
    """A lab with a real database and real submission, which notes what is committed."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.store = open_store(databases.migrated(path))  # type: ignore[assignment] # one store is as good as another
        self.submitter = Submitter(self.store, self.clock, Numbers())
        self.commits: list[Changes] = []
        commit = self.store.commit

        def noted(changes: Changes) -> None:
            commit(changes)
            self.commits.append(changes)

        self.store.commit = noted  # type: ignore[method-assign] # to look at what a commit held
        self.restart_controller()

    def add(
        self, name: str, parent: str = "", plan: SimulatedRun | None = None, *, retries: int = 0, **fields: object
    ) -> str:
        planned = plan or exits(0, after_s=1000)
        self.plans[name] = lambda _: planned
        policies = (retrying(retries, delay_s=100),) if retries else ()
        spec = job_named(name, *policies, **{"resources": Resources(100), **fields})
        return self.submitter.submit(WrittenJob(spec, parent=self.job(parent).id if parent else "")).id

    def states(self) -> dict[str, JobState]:
        return {job.name: job.state for job in self.store.jobs(JobFilter())}


@pytest.fixture
def lab(tmp_path: Path) -> FamilyLab:
    return FamilyLab(tmp_path / "holdfast.db")


@pytest.mark.parametrize(("how", "state"), [("well", SUCCEEDED), ("badly", FAILED), ("cancelled", CANCELLED)])
def test_what_is_below_a_job_ends_with_it_the_deepest_first_and_nothing_else_does(
    lab: FamilyLab, how: str, state: JobState
) -> None:
    lab.add("p", plan=exits(int(how == "badly"), after_s=10 if how != "cancelled" else 1000))
    lab.add("c", "p")
    lab.add("done", "p", exits(0))
    lab.add("g", "c")
    lab.add("waits", "p", resources=Resources(10_000))
    lab.add("other")
    lab.pass_s(5)
    assert lab.states() == {
        "p": RUNNING,
        "c": RUNNING,
        "done": SUCCEEDED,
        "g": RUNNING,
        "waits": QUEUED,
        "other": RUNNING,
    }
    if how == "cancelled":
        lab.ask(RequestKind.CANCEL, lab.job("p").id)
    lab.pass_s(10)
    assert lab.states() == {
        "p": state,
        "c": CANCELLED,
        "done": SUCCEEDED,
        "g": CANCELLED,
        "waits": CANCELLED,
        "other": RUNNING,
    }
    assert [lab.job(name).reason for name in ("g", "c", "waits")] == [f"its parent, job p, has ended: {state}"] * 3
    [together] = [
        one for one in lab.commits if any(job.name == "p" and job.state is state for job in one.jobs.values())
    ]
    asked = [job.name for job in together.jobs.values() if job.cancel_requested and job.name != "p"]
    assert sorted(asked) == ["c", "g", "waits"], "in the commit of the parent's end"
    assert asked.index("g") < asked.index("c")


def test_of_a_cancelled_family_the_programs_of_children_are_told_to_stop_first(lab: FamilyLab) -> None:
    jobs = [lab.add("p"), lab.add("c", "p"), lab.add("g", "c")]
    lab.pass_s(5)
    for job in reversed(jobs):
        lab.ask(RequestKind.CANCEL, job)
    told: list[str] = []
    exchange = lab.transport.exchange

    def noted(request: ExchangeRequest) -> ExchangeResponse:
        answer = exchange(request)
        told.extend(run.order.job_name for run in answer.desired.values() if run.stop is not None)
        return answer

    lab.transport.exchange = noted  # type: ignore[method-assign] # to look at an answer
    lab.step()
    assert told == ["g", "c", "p"]


def test_a_controller_that_dies_at_the_end_of_a_parent_leaves_no_child_behind(lab: FamilyLab) -> None:
    lab.add("p", plan=exits(0, after_s=10))
    lab.add("c", "p")
    lab.pass_s(5)
    while lab.job("p").state is RUNNING:
        lab.clock.time += 1
        lab.executor.step()
    lab.restart_controller()
    lab.pass_s(5)
    assert lab.states() == {"p": SUCCEEDED, "c": CANCELLED}
    assert lab.job("c").attempt == 1


def test_a_job_that_is_tried_again_keeps_its_children_unless_they_end_with_its_attempt(lab: FamilyLab) -> None:
    rules = {"keeps": ChildrenEnd.WITH_JOB, "ends": ChildrenEnd.WITH_ATTEMPT}
    for name, rule in rules.items():
        lab.add(name, plan=exits(1, after_s=10), children=rule, retries=1)
    for name in rules:
        lab.add(f"of-{name}", name)
    lab.pass_s(20)
    assert lab.states() == {"keeps": BACKOFF, "ends": BACKOFF, "of-keeps": RUNNING, "of-ends": CANCELLED}
    assert lab.job("of-ends").reason == "its parent, job ends, is retried"
    lab.add("second", "ends")
    lab.restart_controller()
    lab.pass_s(5)
    assert lab.job("second").state is RUNNING, "what comes in between is of the next attempt"
    lab.pass_s(90)
    assert (lab.job("ends").state, lab.job("second").state) == (RUNNING, RUNNING)
    lab.pass_s(30)
    assert lab.states() == {
        "keeps": FAILED,
        "ends": FAILED,
        "of-keeps": CANCELLED,
        "of-ends": CANCELLED,
        "second": CANCELLED,
    }


@pytest.mark.parametrize(("code", "child"), [(0, CANCELLED), (1, RUNNING)])
def test_a_job_may_leave_its_children_when_it_fails(lab: FamilyLab, code: int, child: JobState) -> None:
    lab.add("p", plan=exits(code, after_s=10), children=ChildrenEnd.UNLESS_FAILED)
    lab.add("c", "p")
    lab.pass_s(20)
    assert lab.job("c").state is child


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_child_that_comes_when_its_parent_has_ended_never_runs(
    lab: FamilyLab, *, deleted: bool, restarted: bool
) -> None:
    lab.add("p", plan=exits(0))
    lab.pass_s(5)
    lab.add("c", "p")
    lab.add("g", "c")
    if deleted:
        assert lab.store.delete_finished([lab.job("p").id]) == 1
    if restarted:
        lab.restart_controller()
    lab.pass_s(5)
    ended = "its parent has ended" if deleted else "its parent, job p, has ended: Succeeded"
    assert (lab.job("c").state, lab.job("c").reason, lab.job("c").attempt) == (CANCELLED, ended, 0)
    assert (lab.job("g").state, lab.job("g").attempt) == (CANCELLED, 0)


def test_a_child_that_somebody_runs_again_runs_also_without_its_parent(lab: FamilyLab) -> None:
    lab.add("p", plan=exits(0, after_s=10))
    lab.add("c", "p")
    lab.pass_s(20)
    lab.ask(RequestKind.RETRY, lab.job("c").id)
    lab.pass_s(2)
    lab.restart_controller()
    lab.pass_s(10)
    assert lab.job("c").state is RUNNING
    lab.ask(RequestKind.RETRY, lab.job("p").id)
    lab.pass_s(20)
    assert lab.states() == {"p": SUCCEEDED, "c": CANCELLED}, "its parent was back, and ended again"


def test_families_forget_what_has_ended(lab: FamilyLab) -> None:
    lab.add("p")
    for at in range(5):
        lab.add(f"c{at}", "p", exits(0))
    lab.add("late", "p")
    lab.pass_s(5)
    families = lab.controller.state.families
    assert [*families.below(lab.job("p").id)] == [lab.job("late").id]
    lab.ask(RequestKind.CANCEL, lab.job("late").id)
    lab.pass_s(5)
    assert [*families.below(lab.job("p").id)] == []
