"""A job that waits gets another turn within a tick, wherever it waits, and keeps it over restarts and retries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.events.jobs import JobReprioritized
from holdfast.domain.job import JobState, Resources
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.engine import NodeInfo
from holdfast.ports.requests import RequestKind
from tests.unit.conftest import exits, job_named, retrying
from tests.unit.jobset_lab import SetLab, group, manifest

if TYPE_CHECKING:
    from tests.unit.conftest import Lab

WHOLE = Resources(4000)
ENDLESS = SimulatedRun(0.0, None)


def give(lab: Lab, job: str, priority: int) -> None:
    lab.ask(RequestKind.REPRIORITIZE, job, f"priority {priority}", payload=str(priority))


def test_who_waits_goes_ahead_of_others_from_the_next_tick_on(lab: Lab) -> None:
    first = lab.submit(job_named("first", resources=WHOLE), exits(0, after_s=10.0))
    lab.pass_s(2)
    others = [lab.submit(job_named(name, resources=WHOLE), exits(0, after_s=5.0)) for name in ("a", "b", "c")]
    lab.pass_s(2)
    give(lab, others[2], 7)
    give(lab, others[1], 3)
    lab.tick()
    lab.restart_controller()
    lab.pass_s(40)
    begun = sorted(others, key=lambda job: lab.job(job).started_at or 0.0)
    assert begun == [others[2], others[1], others[0]]
    assert [lab.job(job).priority for job in (first, *others)] == [0, 0, 3, 7]
    told = [one.event for one in lab.store.events(limit=1000) if isinstance(one.event, JobReprioritized)]
    assert [(one.priority, one.before) for one in told] == [(7, 0), (3, 0)]


def test_what_runs_keeps_its_place_and_its_new_priority_counts_for_its_retry(lab: Lab) -> None:
    job = lab.submit(job_named("train", retrying(1), resources=WHOLE), lambda order: exits(order.attempt % 2))
    lab.submit(job_named("other", resources=WHOLE, priority=5), exits(0, after_s=5.0))
    lab.step(2)
    give(lab, job, 9)
    give(lab, job, 9)
    lab.pass_s(30)
    assert (lab.job(job).state, lab.job(job).priority) == (JobState.SUCCEEDED, 9)
    told = [one for one in lab.store.events(limit=1000) if isinstance(one.event, JobReprioritized)]
    assert len(told) == 1, "the same again changes nothing"


def test_what_has_ended_stays_as_it_is_and_what_waits_for_a_person_waits_on(lab: Lab) -> None:
    done, held = lab.submit(job_named("done"), exits(0)), lab.submit(job_named("held", resources=WHOLE), ENDLESS)
    lab.pass_s(5)
    lab.ask(RequestKind.HOLD, held)
    lab.pass_s(5)
    for job in (done, held):
        give(lab, job, 4)
    lab.pass_s(2)
    assert [(lab.job(job).state, lab.job(job).priority) for job in (done, held)] == [
        (JobState.SUCCEEDED, 0),
        (JobState.HELD, 4),
    ]


def test_pods_that_wait_for_a_place_take_their_turn_by_the_new_priority() -> None:
    lab = SetLab()
    lab.use(NodeInfo("n0", Resources(1000, 8 << 30, 0)))
    one = group("w", 3, backoffLimit=0)
    one["template"]["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": 1}}
    set_id = lab.submit_set(manifest(replicatedJobs=[one]), lambda _: exits(0, after_s=10.0))
    lab.pass_s(3)
    give(lab, "id-train-w-2", 5)
    lab.pass_s(60)
    assert lab.store.workload(JobSet, set_id).state.terminal.value == "Completed"
    assert [order.job_name for order in lab.orders] == ["train-w-0", "train-w-2", "train-w-1"]
