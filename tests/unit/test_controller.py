"""The controller's rules, in virtual time: what becomes of jobs, attempts and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.domain.failure import EndedBy, FailureCondition
from holdfast.domain.job import JobState, Queue, Resources
from holdfast.domain.lifecycle import AttemptStatus, Ending, RunStatus
from holdfast.domain.policy.model import (
    Action,
    AntiAffinity,
    BuiltIn,
    MemoryGrowth,
    Mutation,
    RetryPolicy,
    RetrySettings,
    Rule,
)
from holdfast.domain.record import evolve
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.errors import Unavailable
from holdfast.ports.engine import NodeInfo, Observation, RunPhase, StopReason
from holdfast.ports.exchange import ExchangeRequest
from holdfast.ports.requests import RequestKind
from holdfast.ports.store import Changes
from tests.unit.conftest import Lab, ends_with, exits, job_named, retrying

if TYPE_CHECKING:
    from holdfast.ports.engine import RunOrder

FOREVER = SimulatedRun(duration_s=None)
STOPPING = RunPhase.STOPPING


def test_a_job_goes_through_every_phase_and_succeeds(lab: Lab) -> None:
    job = lab.submit(job_named("ok"))
    lab.pass_s(1)
    assert lab.job(job).state is JobState.SUCCEEDED
    assert lab.phases(job) == [
        ("ScheduleAttempts", "SUCCESS", "SCHEDULED"),
        ("PrepareAttempts", "SUCCESS", "PREPARING"),
        ("PromoteToPrepared", "SUCCESS", "PREPARED"),
        ("StartAttempts", "SUCCESS", "CREATING"),
        ("PromoteToRunning", "SUCCESS", "RUNNING"),
        ("DetectCompletion", "SUCCESS", "TERMINATING"),
        ("PromoteToTerminated", "SUCCESS", "TERMINATED"),
    ]


def test_a_failure_is_judged_once_and_its_retry_is_a_new_attempt(lab: Lab) -> None:
    job = lab.submit(job_named("flaky", retrying(3)), lambda order: exits(0 if order.attempt == 3 else 9))
    lab.pass_s(10)
    attempts = lab.attempts(job)
    assert lab.job(job).state is JobState.SUCCEEDED
    assert [attempt.ending for attempt in attempts] == [Ending.FAILED, Ending.FAILED, Ending.SUCCEEDED]
    assert [attempt.status for attempt in attempts] == [
        AttemptStatus.ERROR,
        AttemptStatus.ERROR,
        AttemptStatus.TERMINATED,
    ]
    assert (lab.job(job).retries, dict(lab.job(job).counters)) == (2, {"inline/default": 2})


def test_a_retry_waits_for_its_backoff_and_is_ready_at_that_instant(lab: Lab) -> None:
    job = lab.submit(job_named("slow", retrying(3, delay_s=30.0)), lambda order: exits(1 if order.attempt == 1 else 0))
    lab.pass_s(2)
    waiting = lab.job(job)
    assert (waiting.state, waiting.retry_at) == (JobState.BACKOFF, 1_000_031.0)
    lab.clock.time = 1_000_030.9
    lab.step(2)
    assert lab.job(job).state is JobState.BACKOFF
    lab.clock.time = 1_000_031.0
    lab.step()
    assert lab.job(job).state is JobState.RUNNING


def test_progress_is_written_down_every_few_seconds_at_most(lab: Lab) -> None:
    job = lab.submit(job_named("slow"), exits(0, after_s=1000.0))
    lab.pass_s(2)
    (run,), life, written = lab.runs(job), lab.clock.now(), [""]
    for step in range(1, 81):
        lab.clock.time += 0.25
        seen = Observation(run.uid, RunPhase.RUNNING, run.started_at, progress=f"step {step}")
        request = ExchangeRequest("local", step, lab.engine.nodes(), {run.uid: seen}, life, "memory 1")
        lab.controller.tick([request])
        written.append(lab.runs(job)[0].progress)
    assert 3 <= len(set(written)) - 1 <= 5
    assert int(written[-1].removeprefix("step ")) > 55


@pytest.mark.parametrize("name", [name for name in Changes.__struct_fields__ if name != "epoch"])
def test_whatever_a_tick_changed_is_worth_a_commit(name: str) -> None:
    changes = Changes(epoch=3)
    assert not changes
    kept = getattr(changes, name)
    kept.append(1) if isinstance(kept, list) else kept.update({1: None})
    assert changes


class Looked(dict[str, str]):
    """Which job each run is of, and which runs were asked about."""

    def get(self, uid: str, default: Any = None) -> Any:  # noqa: ANN401 - as its parent
        self.asked = [*getattr(self, "asked", ()), uid]
        return super().get(uid, default)


def test_what_an_executor_repeats_is_taken_in_once_however_it_came(lab: Lab) -> None:
    """SL-013."""
    for number in range(3):
        lab.submit(job_named(f"slow{number}", resources=Resources(1000)), FOREVER)
    lab.pass_s(20)
    looked = lab.controller.state.owner = Looked(lab.controller.state.owner)
    life, copies = lab.clock.now(), {}
    for number in range(1, 4):
        copies = {uid: evolve(seen) for uid, seen in lab.engine.observe().items()}  # as over a wire
        lab.controller.tick([ExchangeRequest("local", number, lab.engine.nodes(), copies, life, "memory 1")])
    assert len(copies) == 3
    assert getattr(looked, "asked", []) == []


def test_a_waiting_retry_holds_no_resources(lab: Lab) -> None:
    lab.submit(job_named("big", retrying(3, delay_s=3600.0), resources=Resources(4000)), exits(1))
    lab.pass_s(2)
    other = lab.submit(job_named("other", resources=Resources(4000)))
    lab.pass_s(2)
    assert lab.job(other).state is JobState.SUCCEEDED


def test_a_gang_stops_as_a_whole_and_is_charged_for_the_rank_that_failed_first(lab: Lab) -> None:
    def rank(order: RunOrder) -> SimulatedRun:
        return exits(7, after_s=5.0) if order.rank == 2 and order.attempt == 1 else exits(0, after_s=60.0)

    job = lab.submit(job_named("gang", retrying(1), gang=4), rank)
    lab.pass_s(8)
    first = lab.attempts(job)[0]
    assert first.failure is not None
    assert (first.failure.rank, first.ending) == (2, Ending.FAILED)
    endings = {run.rank: run.outcome.ended_by for run in lab.runs(job) if run.attempt == 1 and run.outcome}
    assert endings == {0: EndedBy.CASCADE, 1: EndedBy.CASCADE, 2: EndedBy.ITSELF, 3: EndedBy.CASCADE}
    lab.pass_s(70)
    assert (lab.job(job).state, lab.job(job).retries) == (JobState.SUCCEEDED, 1)


def test_the_ranks_of_a_gang_are_told_to_stop_all_at_once(lab: Lab) -> None:
    def rank(order: RunOrder) -> SimulatedRun:
        return exits(7) if order.rank == 1 else evolve(FOREVER, term_delay_s=20.0)

    job = lab.submit(job_named("gang", gang=4), rank)
    lab.step(3)
    lab.clock.time += 1.0
    lab.step()
    phases = {uid.split("-")[-2]: seen.phase for uid, seen in lab.engine.observe().items()}
    assert phases == {"0": STOPPING, "2": STOPPING, "3": STOPPING}
    assert [run.status for run in lab.runs(job)].count(RunStatus.TERMINATING) == 3


def test_a_rank_that_ends_well_does_not_end_its_gang(lab: Lab) -> None:
    job = lab.submit(job_named("gang", gang=2), lambda order: exits(0, after_s=1.0 + 10 * order.rank))
    lab.pass_s(5)
    assert lab.attempts(job)[0].status is AttemptStatus.RUNNING
    lab.pass_s(10)
    assert lab.job(job).state is JobState.SUCCEEDED


@pytest.mark.parametrize("when", ["queued", "running", "backoff", "held"])
def test_a_cancelled_job_ends_and_never_retries(lab: Lab, when: str) -> None:
    hold = Rule(Action.HOLD, "hold")
    policies = {"held": retrying(9, rules=(hold,)), "backoff": retrying(9, delay_s=3600.0)}
    plan = FOREVER if when == "running" else exits(1)
    need = Resources(64_000) if when == "queued" else Resources(1000)
    job = lab.submit(job_named("job", policies.get(when, retrying(9)), resources=need), plan)
    lab.pass_s(2)
    lab.ask(RequestKind.CANCEL, job, "changed my mind")
    lab.pass_s(3)
    after = lab.job(job)
    assert (after.state, after.reason) == (JobState.CANCELLED, "changed my mind")
    lab.pass_s(4000, every_s=1000)
    assert lab.job(job) == after


def test_a_late_failure_report_changes_nothing_after_a_cancel(lab: Lab) -> None:
    job = lab.submit(job_named("stubborn", retrying(9)), lambda _: evolve(exits(3, after_s=2.0), term_delay_s=30.0))
    lab.pass_s(1)
    lab.ask(RequestKind.CANCEL, job)
    lab.pass_s(40)
    assert lab.job(job).state is JobState.CANCELLED
    assert len(lab.attempts(job)) == 1


def test_a_report_of_a_run_that_another_executor_has_changes_nothing(lab: Lab) -> None:
    job = lab.submit(job_named("mine", retrying(9)), FOREVER)
    lab.pass_s(1)
    (run,) = lab.runs(job)
    over = exits(3).outcome
    told = Observation(run.uid, RunPhase.FINISHED, outcome=over, progress="all done")
    for executor in ("other", "another"):
        lab.controller.tick([ExchangeRequest(executor, 1, (), {run.uid: told})])
    lab.pass_s(20)
    (after,) = lab.runs(job)
    assert (after.status, after.progress, after.outcome) == (RunStatus.RUNNING, "", None)
    assert lab.job(job).state is JobState.RUNNING


def test_a_held_job_is_released_into_a_new_attempt_without_using_budget(lab: Lab) -> None:
    hold = Rule(Action.HOLD, "look", hold_reason="look at the disk")
    job = lab.submit(job_named("job", retrying(0, rules=(hold,))), lambda order: exits(1 if order.attempt == 1 else 0))
    lab.pass_s(3)
    assert lab.job(job).state is JobState.HELD
    assert "look at the disk" in lab.job(job).reason
    lab.ask(RequestKind.RELEASE, job)
    lab.pass_s(3)
    assert (lab.job(job).state, lab.job(job).retries, lab.job(job).attempt) == (JobState.SUCCEEDED, 0, 2)


def test_memory_grows_after_oom_and_the_growth_survives_a_preemption(lab: Lab) -> None:
    grow = Rule(
        Action.RETRY, "oom", conditions=frozenset({"OOMKilled"}), mutate=Mutation(memory=MemoryGrowth(factor=2.0))
    )
    plans = {
        1: ends_with(FailureCondition.OOM_KILLED, EndedBy.MEMORY),
        2: ends_with(FailureCondition.PREEMPTED, EndedBy.PREEMPTION),
        3: exits(0),
    }
    spec = job_named("job", RetryPolicy("p", (grow,)), resources=Resources(1000, 1 << 30))
    job = lab.submit(spec, lambda order: plans[order.attempt])
    lab.pass_s(30)
    assert lab.job(job).state is JobState.SUCCEEDED
    assert [order.resources.memory >> 30 for order in lab.orders] == [1, 2, 2]


def test_a_job_grown_beyond_every_node_fails_with_that_reason(lab: Lab) -> None:
    grow = Rule(Action.RETRY, "oom", mutate=Mutation(memory=MemoryGrowth(factor=4.0)))
    spec = job_named("job", RetryPolicy("p", (grow,)), resources=Resources(1000, 4 << 30))
    job = lab.submit(spec, ends_with(FailureCondition.OOM_KILLED, EndedBy.MEMORY))
    lab.pass_s(5)
    assert lab.job(job).state is JobState.FAILED
    assert "needs 16Gi memory, the largest node has 8Gi" in lab.job(job).reason


def test_anti_affinity_avoids_the_last_node_where_there_is_another(lab: Lab) -> None:
    lab.use(NodeInfo("a", Resources(4000, 8 << 30)), NodeInfo("b", Resources(4000, 8 << 30)))
    elsewhere = Rule(Action.RETRY, "elsewhere", anti_affinity=AntiAffinity.NODE)
    job = lab.submit(
        job_named("job", retrying(3, rules=(elsewhere,))), lambda order: exits(1 if order.attempt < 3 else 0)
    )
    lab.pass_s(20)
    assert lab.job(job).state is JobState.SUCCEEDED
    assert [run.node for run in lab.runs(job)] == ["a", "b", "a"]


def test_a_lost_executor_is_not_the_users_failure(lab: Lab) -> None:
    job = lab.submit(job_named("job"), lambda order: FOREVER if order.attempt == 1 else exits(0))
    lab.pass_s(2)
    lab.transport.broken = True
    for _ in range(70):
        lab.clock.time += 1.0
        lab.executor.step()
        lab.tick()
    assert all(seen.outcome for seen in lab.engine.observe().values()), "the executor fenced itself"
    assert "ExecutorLost" in (lab.attempts(job)[0].failure or pytest.fail("no failure")).conditions
    lab.transport.broken = False
    lab.pass_s(10)
    assert (lab.job(job).state, lab.job(job).attempt) == (JobState.SUCCEEDED, 2)


def test_a_run_the_executor_no_longer_has_is_lost_also_after_a_restart(lab: Lab) -> None:
    job = lab.submit(job_named("job"), lambda order: FOREVER if order.attempt == 1 else exits(0))
    lab.pass_s(2)
    lab.use(NodeInfo("n0", Resources(4000, 8 << 30)))
    lab.restart_controller()
    lab.pass_s(10)
    assert [attempt.ending for attempt in lab.attempts(job)] == [Ending.FAILED, Ending.SUCCEEDED]


def test_a_restarted_controller_goes_on_where_the_last_one_stopped(lab: Lab) -> None:
    job = lab.submit(job_named("job", retrying(3, delay_s=20.0)), lambda order: exits(1 if order.attempt == 1 else 0))
    for _ in range(60):
        lab.restart_controller()
        lab.pass_s(1)
    assert lab.job(job).state is JobState.SUCCEEDED
    assert [order.uid for order in lab.orders] == [f"{job}-1-0-1", f"{job}-2-0-1"]


def test_nothing_is_handed_out_before_it_is_committed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    job = lab.submit(job_named("job"), exits(0))
    commit = lab.store.commit

    def refuse(_: object) -> None:
        raise Unavailable

    monkeypatch.setattr(lab.store, "commit", refuse)
    lab.pass_s(5)
    assert lab.orders == []
    monkeypatch.setattr(lab.store, "commit", commit)
    lab.pass_s(5)
    assert lab.job(job).state is JobState.SUCCEEDED
    assert len(lab.orders) == 1


def test_a_scheduling_timeout_restarts_with_each_attempt_and_does_not_count_backoff(lab: Lab) -> None:
    spec = job_named("job", retrying(1, delay_s=50.0), scheduling_timeout_s=10.0, resources=Resources(64_000))
    job = lab.submit(spec)
    lab.pass_s(11)
    assert lab.job(job).state is JobState.BACKOFF
    lab.pass_s(55)
    assert lab.job(job).state is JobState.QUEUED
    lab.pass_s(10)
    failures = [attempt.failure for attempt in lab.attempts(job)]
    assert lab.job(job).state is JobState.FAILED
    assert [failure.cause.value for failure in failures if failure] == ["scheduler_timeout"] * 2
    assert "needs 64 cpu, the largest node has 4" in lab.job(job).reason


def test_a_total_deadline_covers_all_attempts(lab: Lab) -> None:
    job = lab.submit(job_named("job", retrying(99), total_deadline_s=10.0), exits(1, after_s=3.0))
    lab.pass_s(15)
    assert (lab.job(job).state, lab.job(job).attempt) == (JobState.FAILED, 4)
    assert "total deadline of 10s" in lab.job(job).reason


def test_lowering_the_global_cap_stops_jobs_at_their_next_failure(lab: Lab) -> None:
    job = lab.submit(job_named("storm", retrying(1000)), exits(1))
    lab.pass_s(6)
    assert lab.job(job).state is JobState.RUNNING
    lab.store.put_settings(RetrySettings(global_max_retries=2), None)
    lab.pass_s(3)
    assert lab.job(job).state is JobState.FAILED
    assert "retries are used (globalMaxRetries)" in lab.job(job).reason


@pytest.mark.parametrize(
    ("builtin", "preempted", "lost"),
    [(BuiltIn.ALL, 101, 101), (BuiltIn.LOST_ONLY, 1, 4), (BuiltIn.NONE, 1, 1)],
)
def test_the_settings_say_how_much_of_the_built_in_policy_applies(
    lab: Lab, builtin: BuiltIn, preempted: int, lost: int
) -> None:
    lab.store.put_settings(RetrySettings(builtin=builtin), None)
    jobs = [
        lab.submit(job_named(f"job-{n}"), ends_with(condition, ended_by))
        for n, (condition, ended_by) in enumerate(
            [(FailureCondition.PREEMPTED, EndedBy.PREEMPTION), (FailureCondition.EXECUTOR_LOST, EndedBy.LOST)]
        )
    ]
    lab.pass_s(20_000, every_s=20.0)
    assert [lab.job(job).state for job in jobs] == [JobState.FAILED] * 2
    assert [lab.job(job).attempt for job in jobs] == [preempted, lost]


@pytest.mark.parametrize(("share", "order"), [(0.0, "a b c d a b c d"), (0.5, "a a b b c c d d")])
def test_the_share_of_retries_is_what_the_settings_say_from_the_next_round_on(
    lab: Lab, share: float, order: str
) -> None:
    lab.store.put_settings(RetrySettings(retry_share=share), None)
    lab.use(NodeInfo("n0", Resources(1000, 8 << 30, 0)))
    for name in "abcd":
        lab.submit(job_named(name, retrying(1)), exits(1))
    lab.pass_s(20)
    assert " ".join(each.job_name for each in lab.orders) == order


def test_queue_policies_come_first_and_a_paused_queue_starts_nothing(lab: Lab) -> None:
    lab.store.put_entry(RetryPolicy("strict", (Rule(Action.FAIL, "no", conditions=frozenset({"AppError"})),)))
    lab.store.put_entry(Queue("ml", retry_policies=("strict",), paused=True))
    job = lab.submit(job_named("job", retrying(5), queue="ml"), exits(1))
    lab.pass_s(3)
    assert (lab.job(job).state, lab.job(job).reason) == (JobState.QUEUED, "queue ml is paused")
    lab.store.put_entry(Queue("ml", retry_policies=("strict",)))
    lab.pass_s(5)
    decision = lab.attempts(job)[0].decision
    assert decision is not None
    assert (decision.policy, decision.rule, decision.policy_revision) == ("strict", "no", 1)


def test_a_run_nobody_knows_is_stopped(lab: Lab) -> None:
    job = lab.submit(job_named("job"), FOREVER)
    lab.pass_s(1)
    order = lab.orders[0]
    lab.engine.start([evolve(order, uid="stray")])
    lab.pass_s(2)
    assert "stray" not in lab.engine.observe()
    assert lab.job(job).state is JobState.RUNNING


def test_a_run_stopped_before_it_was_begun_is_never_started(lab: Lab) -> None:
    job = lab.submit(job_named("job"), FOREVER)
    lab.transport.broken = True
    lab.controller.tick()
    lab.transport.broken = False
    lab.executor.step()
    lab.ask(RequestKind.CANCEL, job)
    lab.pass_s(2)
    assert lab.job(job).state is JobState.CANCELLED
    assert {run.status for run in lab.runs(job)} <= {RunStatus.CANCELLED, RunStatus.TERMINATED}


def test_what_will_not_die_is_ended_without_it_and_keeps_nothing_waiting(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = lab.submit(job_named("zombie", grace_s=5.0), FOREVER)
    lab.pass_s(2)
    monkeypatch.setattr(lab.engine, "stop", lambda _: None)
    lab.ask(RequestKind.CANCEL, job)
    lab.pass_s(94)  # the lease, the grace and the allowance are 95 s
    assert lab.job(job).state is JobState.RUNNING
    lab.pass_s(4)
    assert lab.job(job).state is JobState.CANCELLED
    assert lab.phases(job)[-1] == ("TerminateAttempts", "EXPIRED", "TERMINATED")


def test_capacity_adds_up_after_everything_has_ended(lab: Lab) -> None:
    for number in range(20):
        lab.submit(job_named(f"j{number}", retrying(2)), exits(number % 2, after_s=0.5 + number % 3))
    lab.pass_s(60)
    ledger = lab.controller.state.capacity
    assert ledger.free == {place.key: place.capacity for place in ledger.places.values()}
    assert all((usage.jobs, usage.resources) == (0, Resources(0)) for usage in ledger.usage.values())
    assert not ledger.charges
    assert lab.controller.state.jobs == {}


def test_stop_reasons_reach_the_engine(lab: Lab) -> None:
    job = lab.submit(job_named("job"), FOREVER)
    lab.pass_s(1)
    lab.ask(RequestKind.CANCEL, job)
    lab.pass_s(1)
    outcome = lab.runs(job)[0].outcome
    assert outcome is not None
    assert outcome.ended_by is EndedBy.USER
    assert StopReason.USER.value == outcome.ended_by.value


def test_a_living_node_is_shown_as_seen_lately(lab: Lab) -> None:
    lab.pass_s(100)
    assert lab.clock.now() - lab.store.nodes()[0].seen_at <= 31.0
