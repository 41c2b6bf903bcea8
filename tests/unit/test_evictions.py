"""A machine that runs out of memory or disk: programs are evicted one at a time, and policies decide what follows."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.failure import Cause, EndedBy
from holdfast.domain.job import JobState, Resources
from holdfast.domain.placement.pressure import PAUSE, Lack, Pressure
from holdfast.domain.policy.model import Action, RetryPolicy, Rule
from holdfast.domain.shortage import OVER_AFTER_S, Shortage
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.engine import NodeInfo, RunPhase
from holdfast.ports.requests import RequestKind
from holdfast.service.explain import Explainer
from holdfast.wire.render_events import event_view
from tests.unit.conftest import exits, job_named, retrying
from tests.unit.jobset_lab import FOREVER, SetLab, group, manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.ports.engine import RunOrder
    from tests.unit.conftest import Lab

MI = 1 << 20
ENDLESS = SimulatedRun(0.0, None)
SLOW = SimulatedRun(0.0, None, term_delay_s=20.0)
HARD = Lack(Shortage.MEMORY, 400 * MI, 16_384 * MI, 800 * MI)
SOFT = Lack(Shortage.MEMORY, 400 * MI, 16_384 * MI, 800 * MI, hard=False)


class Machine:
    """The machine of a lab, whose memory is used as each run says."""

    def __init__(self, lab: Lab, *lacks: Lack) -> None:
        self.lab = lab
        self.lacks = lacks or (HARD,)
        self.uses: dict[str, int] = {}
        self.enough_below: int | None = None
        """There is enough as soon as no more than this is used."""
        self.look = 0

    def running(self) -> Mapping[str, int]:
        seen = self.lab.engine.observe()
        return {
            uid: self.uses.get(uid.split("-")[2], 0) * MI
            for uid, each in seen.items()
            if each.phase is not RunPhase.FINISHED
        }

    def pass_s(self, seconds: float, *, pressed: bool = True) -> None:
        """Let time pass, with a look at the machine each second."""
        for _ in range(round(seconds)):
            self.look += 1
            running = self.running()
            enough = self.enough_below is not None and sum(running.values()) <= self.enough_below * MI
            uses = {uid: {Shortage.MEMORY: used} for uid, used in running.items()}
            self.lab.engine.pressed = Pressure(self.look, self.lacks, uses) if pressed and not enough else None
            self.lab.pass_s(1)


def once(first: SimulatedRun = ENDLESS) -> Callable[[RunOrder], SimulatedRun]:
    return lambda order: first if order.attempt == 1 else exits(0)


def test_what_uses_more_than_it_requested_is_evicted_fails_as_that_and_runs_again_once_there_is_enough(
    lab: Lab,
) -> None:
    big = lab.submit(job_named("big", resources=Resources(1000, 100 * MI)), once())
    small = lab.submit(job_named("small", resources=Resources(1000, 100 * MI)), ENDLESS)
    machine = Machine(lab)
    machine.uses, machine.enough_below = {"big": 900, "small": 50}, 50
    lab.pass_s(3)
    machine.pass_s(8)
    ended = lab.attempts(big)[0]
    assert ended.failure is not None
    assert (ended.failure.cause, ended.failure.ended_by) == (Cause.AGENT_TRANSIENT, EndedBy.EVICTION)
    assert ended.failure.conditions == frozenset({"Evicted"})
    told = "node n0 was low on memory: 400Mi of 16Gi available, and the minimum is 800Mi; it used 900Mi"
    assert ended.failure.message == f"{told} and had requested 100Mi"
    machine.pass_s(OVER_AFTER_S + 5)
    assert (lab.job(big).state, lab.job(small).state) == (JobState.SUCCEEDED, JobState.RUNNING)
    assert (lab.job(big).counters, lab.job(big).retries) == ({"infrastructure/evicted": 1}, 1)
    assert lab.job(small).attempt == 1
    assert told in " ".join(Explainer(lab.store).why(big, 1).summary)


def test_one_at_a_time_and_never_two_for_one_pressure(lab: Lab) -> None:
    lab.use(NodeInfo("n0", Resources(16_000, 8 << 30, 0)))
    jobs = [lab.submit(job_named(f"j{number}"), once(SLOW)) for number in range(5)]
    machine = Machine(lab, SOFT)
    machine.uses = {f"j{number}": 100 + number for number in range(5)}
    machine.enough_below = 206  # of two that are left, the smallest
    lab.pass_s(3)
    going = []
    for _ in range(120):
        machine.pass_s(1)
        running = [lab.runs(job)[0] for job in jobs]
        going.append(sum(run.interrupted is not None and run.ended_at is None for run in running))
    assert set(going) == {0, 1}
    ended = [
        len([run for run in lab.runs(job) if run.outcome and run.outcome.ended_by is EndedBy.EVICTION]) for job in jobs
    ]
    assert ended == [0, 0, 1, 1, 1]


def test_a_node_under_pressure_gets_no_new_work_and_says_so_and_it_goes_on_when_that_is_over(lab: Lab) -> None:
    machine = Machine(lab)
    machine.pass_s(1)
    waiting = lab.submit(job_named("waits"), exits(0))
    machine.pass_s(60)
    told = "node n0 has been short of memory since 1970-01-12T13:46:40Z: 400Mi of 16Gi available, and the minimum"
    assert (lab.job(waiting).state, lab.job(waiting).reason) == (JobState.QUEUED, f"{told} is 800Mi")
    machine.pass_s(OVER_AFTER_S - 5, pressed=False)
    assert lab.job(waiting).state is JobState.QUEUED
    machine.pass_s(10, pressed=False)
    assert lab.job(waiting).state is JobState.SUCCEEDED
    told_of = [event_view(each).type for each in lab.store.events(limit=1000) if "node" in event_view(each).type]
    assert [each.rpartition(".node.")[2].partition(".v")[0] for each in told_of] == ["short", "recovered"]


@pytest.mark.parametrize(
    ("rule", "state"),
    [
        (Rule(Action.HOLD, "mine", conditions=frozenset({"Evicted"})), JobState.HELD),
        (Rule(Action.FAIL, "mine", conditions=frozenset({"Evicted"})), JobState.FAILED),
        (Rule(Action.FAIL, "mine", conditions=frozenset({"Preempted"})), JobState.SUCCEEDED),
    ],
)
def test_a_rule_that_names_evicted_decides(lab: Lab, rule: Rule, state: JobState) -> None:
    job = lab.submit(job_named("job", RetryPolicy("p", (rule,))), once())
    machine = Machine(lab)
    machine.uses, machine.enough_below = {"job": 900}, 0
    lab.pass_s(3)
    machine.pass_s(50)
    assert lab.job(job).state is state


def test_a_soft_threshold_leaves_a_program_its_grace_and_a_hard_one_ends_that(lab: Lab) -> None:
    soft = lab.submit(job_named("soft", grace_s=60.0), once(SLOW))
    machine = Machine(lab, SOFT)
    machine.uses = {"soft": 900}
    lab.pass_s(3)
    machine.pass_s(15)
    assert lab.runs(soft)[0].ended_at is None
    machine.lacks = (HARD, SOFT)
    machine.pass_s(4)
    (run,) = [each for each in lab.runs(soft) if each.attempt == 1]
    assert run.outcome is not None
    assert (run.outcome.ended_by, run.outcome.containers[0].signal) == (EndedBy.EVICTION, 9)
    assert lab.attempts(soft)[0].failure is not None
    assert "low on memory" in lab.attempts(soft)[0].failure.message  # type: ignore[union-attr] # just asserted


def test_a_controller_that_begins_anew_while_one_is_being_evicted_evicts_no_other(lab: Lab) -> None:
    first = lab.submit(job_named("first", grace_s=60.0), once(SLOW))
    second = lab.submit(job_named("second"), ENDLESS)
    machine = Machine(lab, SOFT)
    machine.uses, machine.enough_below = {"first": 900, "second": 90}, 90
    lab.pass_s(3)
    machine.pass_s(5)
    assert lab.runs(first)[0].interrupted is not None
    for _ in range(4):
        lab.restart_controller()
        machine.look = 0
        machine.pass_s(4)
    machine.pass_s(60)
    assert lab.job(first).state is JobState.SUCCEEDED
    assert (lab.job(second).state, lab.job(second).attempt) == (JobState.RUNNING, 1)
    assert [run.outcome.ended_by for run in lab.runs(first) if run.outcome] == [EndedBy.EVICTION, EndedBy.ITSELF]


def test_where_evicting_does_not_help_the_next_one_comes_ever_later(lab: Lab) -> None:
    lab.use(NodeInfo("n0", Resources(16_000, 8 << 30, 0)))
    jobs = [lab.submit(job_named(f"j{number}"), ENDLESS) for number in range(4)]
    machine = Machine(lab)
    machine.uses = dict.fromkeys(("j0", "j1", "j2", "j3"), 900)
    lab.pass_s(3)
    machine.pass_s(120)
    ends = sorted(run.ended_at for job in jobs for run in lab.runs(job) if run.ended_at is not None)
    apart = [later - earlier for earlier, later in pairwise(ends)]
    assert len(ends) == 4
    assert all(pause >= PAUSE.initial_s * 2**number for number, pause in enumerate(apart))


def test_a_gang_is_evicted_as_a_whole_and_fails_once(lab: Lab) -> None:
    gang = lab.submit(job_named("gang", retrying(1), gang=2), once())
    machine = Machine(lab)
    machine.uses, machine.enough_below = {"gang": 400}, 0
    lab.pass_s(3)
    machine.pass_s(60)
    assert (lab.job(gang).state, lab.job(gang).retries) == (JobState.SUCCEEDED, 1)
    ended = [run.outcome.ended_by for run in lab.runs(gang) if run.outcome is not None and run.attempt == 1]
    assert ended == [EndedBy.EVICTION] * 2


def test_who_cancels_what_is_being_evicted_gets_it_cancelled(lab: Lab) -> None:
    job = lab.submit(job_named("job", grace_s=60.0), SLOW)
    machine = Machine(lab, SOFT)
    machine.uses = {"job": 900}
    lab.pass_s(3)
    machine.pass_s(5)
    lab.ask(RequestKind.CANCEL, job)
    machine.pass_s(90)
    assert lab.job(job).state is JobState.CANCELLED


IGNORED = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}


@pytest.mark.parametrize(("rules", "ended"), [({"podFailurePolicy": IGNORED}, ""), ({}, "Failed")])
def test_of_a_job_of_pods_the_one_is_evicted_that_uses_most_and_fails_as_disrupted(
    rules: dict[str, object], ended: str
) -> None:
    lab = SetLab()
    two = group("w", 1, backoffLimit=0, completions=2, parallelism=2, **rules)
    set_id = lab.submit_set(manifest(replicatedJobs=[two]), lambda _: exits(0, after_s=FOREVER))
    lab.pass_s(3)
    small, large = sorted(lab.engine_runs())
    for look in range(1, 12):
        uses = {small: {Shortage.MEMORY: 10 * MI}, large: {Shortage.MEMORY: 900 * MI}}
        lab.engine.pressed = Pressure(look, (HARD,), uses) if large in lab.engine_runs() else None
        lab.pass_s(1)
    lab.pass_s(OVER_AFTER_S + 5)
    assert lab.store.workload(JobSet, set_id).state.terminal.value == ended
    by_uid = {run.uid: run for run in lab.store.runs("id-train-w-0")}
    outcome = by_uid[large].outcome
    assert outcome is not None
    assert (outcome.ended_by, "node n0 was low on memory" in outcome.message) == (EndedBy.EVICTION, True)
    assert by_uid[small].interrupted is None
    assert len(by_uid) == (2 if ended else 3)
