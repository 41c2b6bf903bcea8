"""What must not run twice: ``onUnknownEnd`` of jobs, arrays and policies, where it is asked, and what follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.dialects.manifests import manifest_warnings, read_manifest
from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Caller
from holdfast.domain.failure import Cause, EndedBy, Failure, RunOutcome
from holdfast.domain.job import JobState, Resources
from holdfast.domain.policy.builtin import INFRASTRUCTURE
from holdfast.domain.policy.compiled import PolicySet
from holdfast.domain.policy.decide import decide
from holdfast.domain.policy.explain import explain
from holdfast.domain.policy.model import Action, RetryHistory, RetryPolicy, RetrySettings, Rule
from holdfast.domain.terms.settings import UnknownEnd
from holdfast.domain.workloads.gang.policies import unknown_end_policy
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.engine import NodeInfo
from holdfast.ports.requests import RequestKind
from holdfast.service.operations.nodes import Nodes
from tests.unit.conftest import Lab, job_named
from tests.unit.test_shortages import refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.policy.model import Decision
    from holdfast.ports.engine import RunOrder

BY = Caller(Principal("me", roles=(Role.ADMIN,)), 0.0)

RETRY, HOLD, FAIL = UnknownEnd
LOST = Failure(Cause.AGENT_TRANSIENT, frozenset({"ExecutorLost", "EndUnknown"}), message="executor e was lost")
SEEN = Failure(Cause.AGENT_TRANSIENT, frozenset({"ExecutorLost"}), started=False)
FOREVER = SimulatedRun(duration_s=None)


def names(condition: str, action: Action = Action.RETRY) -> Rule:
    return Rule(action, condition.lower(), conditions=frozenset({condition}))


def judged(
    policies: Sequence[RetryPolicy] = (),
    failure: Failure = LOST,
    *,
    job: UnknownEnd | None = None,
    array: UnknownEnd | None = None,
) -> Decision:
    spec = job_named("job", on_unknown_end=job, array_on_unknown_end=array)
    then = unknown_end_policy(spec, policies)
    compiled = PolicySet.compile(policies, infrastructure=INFRASTRUCTURE, unknown_end=then)
    return decide(compiled, failure, RetryHistory("job"), RetrySettings(), explain=True)


P = RetryPolicy("p", on_unknown_end=FAIL)
Q = RetryPolicy("q", on_unknown_end=HOLD)
ANY = RetryPolicy("any", (Rule(Action.RETRY, "all"),))
EXPECTED = RetryPolicy("expected", (names("ExecutorLost"),))
SILENT = RetryPolicy("silent", (names("AppError"),))
TABLE: list[tuple[str, Decision, Action, str | None]] = [
    ("nobody says anything", judged(), Action.RETRY, "executor-lost"),
    ("the job holds", judged(job=HOLD), Action.HOLD, "job"),
    ("the job fails", judged(job=FAIL), Action.FAIL, "job"),
    ("the job retries", judged([P], job=RETRY, array=HOLD), Action.RETRY, "executor-lost"),
    ("the job before its array", judged(job=FAIL, array=HOLD), Action.FAIL, "job"),
    ("the array before policies", judged([P], array=HOLD), Action.HOLD, "array"),
    ("the first policy that says it", judged([SILENT, Q, P]), Action.HOLD, "policy q"),
    (
        "a rule of the user",
        judged([RetryPolicy("p", (names("ExecutorLost"),))], job=HOLD),
        Action.RETRY,
        "executorlost",
    ),
    ("a rule that names it", judged([RetryPolicy("p", (names("EndUnknown"),))], job=FAIL), Action.RETRY, "endunknown"),
    (
        "no rule that matches anything",
        judged([RetryPolicy("p", (Rule(Action.RETRY, "all"),))], job=HOLD),
        Action.HOLD,
        "job",
    ),
    ("nor a default action", judged([RetryPolicy("p", default_action=Action.RETRY)], job=HOLD), Action.HOLD, "job"),
    ("an end that is known", judged(failure=SEEN, job=HOLD), Action.RETRY, "executor-lost"),
]


@pytest.mark.parametrize(("decision", "action", "rule"), [pytest.param(*row[1:], id=row[0]) for row in TABLE])
def test_who_decides_after_an_unknown_end(decision: Decision, action: Action, rule: str | None) -> None:
    assert (decision.action, decision.rule) == (action, rule)


def test_a_retry_after_an_unknown_end_is_charged_to_lost_executors() -> None:
    assert judged([SILENT], job=RETRY).counter == "infrastructure/executor-lost"


def warned(spec: dict[str, object], kind: str = "Job") -> list[str]:
    manifest = read_manifest({"apiVersion": "holdfast.dev/v1", "kind": kind, "metadata": {"name": "n"}, "spec": spec})
    return [warning.path for warning in manifest_warnings(manifest)]


TO_LOST: dict[str, object] = {"action": "Retry", "name": "lost", "onConditions": ["ExecutorLost"]}
BY_CAUSE: dict[str, object] = {"action": "Ignore", "name": "cause", "onCauses": ["agent_transient"]}
KNOWN: dict[str, object] = {"action": "Hold", "name": "known", "onConditions": ["EndUnknown"]}
OTHER: dict[str, object] = {"action": "Retry", "name": "other", "onConditions": ["AppError"]}
HOLDS: dict[str, object] = {"action": "Hold", "name": "holds", "onConditions": ["NodeLost"]}


@pytest.mark.parametrize(
    ("rules", "says", "paths"),
    [
        ([TO_LOST], "Hold", ["spec.retry.rules[0]"]),
        ([OTHER, TO_LOST, TO_LOST | {"name": "again"}], "Fail", ["spec.retry.rules[1]"]),
        ([BY_CAUSE], "Hold", ["spec.retry.rules[0]"]),
        ([HOLDS], "Hold", []),
        ([KNOWN, TO_LOST], "Hold", []),
        ([TO_LOST], "Retry", []),
        ([OTHER], "Hold", []),
    ],
)
def test_a_rule_that_voids_what_must_not_run_twice_is_pointed_out(
    rules: list[dict[str, object]], says: str, paths: list[str]
) -> None:
    job: dict[str, object] = {"command": ["true"], "retry": {"rules": rules}}
    assert warned({**job, "onUnknownEnd": says}) == paths
    assert warned({**job, "array": {"indices": "0-3", "onUnknownEnd": says}}) == paths
    assert warned({**job, "retry": {"rules": rules, "onUnknownEnd": says}}) == paths
    assert warned({"rules": rules, "onUnknownEnd": says}, "RetryPolicy") == [
        path.replace(".retry", "") for path in paths
    ]
    assert warned({**job, "onUnknownEnd": "Retry", "retry": {"rules": rules, "onUnknownEnd": says}}) == []


UNKNOWN = "how it ended is unknown, and onUnknownEnd of the"


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        (judged(job=HOLD), f"The job is held until someone releases it: {UNKNOWN} job is Hold."),
        (judged([P]), f"It is not retried: {UNKNOWN} policy p is Fail."),
    ],
)
def test_the_explanation_says_whose_word_it_is(decision: Decision, told: str) -> None:
    assert told in explain(decision, LOST, RetryHistory("job"), RetrySettings())


def lose_the_executor(lab: Lab) -> None:
    """Let nobody hear of an executor for longer than its lease."""
    lab.transport.broken = True
    for _ in range(70):
        lab.clock.time += 1.0
        lab.executor.step()
        lab.tick()
    lab.transport.broken = False


@pytest.mark.parametrize(
    ("says", "state"), [(HOLD, JobState.HELD), (FAIL, JobState.FAILED), (RETRY, JobState.SUCCEEDED)]
)
@pytest.mark.parametrize("gang", [1, 2])
def test_what_must_not_run_twice_is_not_started_again(lab: Lab, says: UnknownEnd, state: JobState, gang: int) -> None:
    spec = job_named("job", on_unknown_end=says, gang=gang)
    job = lab.submit(spec, lambda order: FOREVER if order.attempt == 1 else SimulatedRun())
    lab.pass_s(2)
    lose_the_executor(lab)
    lab.pass_s(20)
    assert lab.job(job).state is state
    assert len(lab.orders) == gang * (2 if says is RETRY else 1)
    if says is HOLD:
        assert "onUnknownEnd of the job is Hold" in lab.job(job).reason


def lost_or_refused(order: RunOrder) -> SimulatedRun:
    """Have rank 0 refused for a shortage, and nobody know how the others ended."""
    gone = RunOutcome(conditions=frozenset({"ExecutorLost"}), ended_by=EndedBy.LOST, message="its supervisor is gone")
    return SimulatedRun(outcome=gone if order.rank else refusal()) if order.attempt == 1 else SimulatedRun()


@pytest.mark.parametrize(
    ("says", "state"), [(HOLD, JobState.HELD), (FAIL, JobState.FAILED), (RETRY, JobState.SUCCEEDED)]
)
def test_a_shortage_under_another_rank_runs_nothing_again_of_which_nobody_knows_the_end(
    lab: Lab, says: UnknownEnd, state: JobState
) -> None:
    job = lab.submit(job_named("gang", on_unknown_end=says, gang=3), lost_or_refused)
    lab.pass_s(40)
    assert (lab.job(job).state, lab.job(job).attempt) == (state, 2 if says is RETRY else 1)


def test_a_users_rule_is_asked_first_about_an_unknown_end_beside_a_shortage(lab: Lab) -> None:
    mine = RetryPolicy("mine", (names("EndUnknown"),), retry_limit=1)
    job = lab.submit(job_named("gang", mine, on_unknown_end=HOLD, gang=2), lost_or_refused)
    lab.pass_s(40)
    assert (lab.job(job).state, dict(lab.job(job).counters)) == (JobState.SUCCEEDED, {"mine/endunknown": 1})


@pytest.mark.parametrize(("says", "state"), [(HOLD, JobState.HELD), (FAIL, JobState.FAILED), (RETRY, JobState.QUEUED)])
def test_a_drained_job_of_which_nobody_knows_the_end_is_not_started_elsewhere(
    lab: Lab, says: UnknownEnd, state: JobState
) -> None:
    job = lab.submit(job_named("job", on_unknown_end=says), FOREVER)
    lab.pass_s(2)
    Nodes(lab.store, lab.clock).cordon(BY, "n0", "a new kernel", drain=True)
    lose_the_executor(lab)
    lab.pass_s(5)
    assert (lab.job(job).state, len(lab.orders)) == (state, 1)
    (attempt,) = lab.attempts(job)[:1]
    assert attempt.failure is not None
    assert attempt.failure.conditions == {"Evicted", "ExecutorLost", "EndUnknown"}


def test_what_was_told_to_stop_on_a_machine_that_was_replaced_meanwhile_has_run(lab: Lab) -> None:
    job = lab.submit(job_named("job", on_unknown_end=HOLD), FOREVER)
    lab.pass_s(2)
    lab.ask(RequestKind.PREEMPT, job)
    lab.tick()
    lab.use(NodeInfo("n0", Resources(4000, 8 << 30)))
    lab.restart_controller()
    lab.pass_s(5)
    [run], [attempt] = lab.runs(job), lab.attempts(job)
    assert attempt.failure is not None
    assert attempt.failure.conditions == {"Preempted", "ExecutorLost", "EndUnknown"}
    assert run.may_have_run
    assert (lab.job(job).state, len(lab.orders)) == (JobState.HELD, 1)
