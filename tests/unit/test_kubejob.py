"""Kubernetes Jobs: indexes as text, counting, order of evaluation, replacement, back-off, suspension."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.failure import ContainerResult
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.model import Action, ContainerScope, ExitCodeOperator, ExitCodes
from holdfast.domain.record import evolve
from holdfast.domain.workloads.base import Result
from holdfast.domain.workloads.kubejob.indexes import format_indexes, parse_indexes
from holdfast.domain.workloads.kubejob.model import (
    POD_BACKOFF,
    BackoffRecord,
    CompletionMode,
    JobResult,
    KubeJobSpec,
    KubeJobState,
    Pod,
    PodAction,
    PodPhase,
    PodReplacement,
    PodRule,
    SuccessRule,
)
from holdfast.domain.workloads.kubejob.reconcile import reconcile
from holdfast.domain.workloads.kubejob.rulesets import judge
from holdfast.domain.workloads.kubejob.tally import remaining_s, updated
from tools.cases.podjob import started_by, stopped_by

LONG_AGO, NOW = 0.0, 100_000.0
INDEXED = CompletionMode.INDEXED


def pod(name: str, phase: PodPhase = PodPhase.RUNNING, code: int | None = None, **more: Any) -> Pod:  # noqa: ANN401 - any field
    containers = () if code is None else (ContainerResult(code),)
    return Pod(name=name, phase=phase, containers=containers, **more)


def failed(name: str, code: int = 1, **more: Any) -> Pod:  # noqa: ANN401 - any field
    return pod(name, PodPhase.FAILED, code, **more)


def look(spec: KubeJobSpec, *pods: Pod, state: KubeJobState | None = None, now: float = NOW) -> JobResult:
    return reconcile(spec, state or KubeJobState(started_at=now), pods, now)


@pytest.mark.parametrize(
    ("indexes", "text"),
    [([], ""), ([3], "3"), ([0, 1], "0,1"), ([0, 1, 2], "0-2"), ([1, 3, 4, 5, 7], "1,3-5,7"), ([9, 8, 1], "1,8,9")],
)
def test_indexes_are_written_as_kubernetes_does(indexes: list[int], text: str) -> None:
    assert format_indexes(indexes) == text
    assert parse_indexes(text, 10) == frozenset(indexes)


@given(st.frozensets(st.integers(0, 60)))
def test_indexes_come_back_as_they_were(indexes: frozenset[int]) -> None:
    assert parse_indexes(format_indexes(indexes), 61) == indexes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1-2-3", "at most two parts"),
        ("x", 'cannot convert string to integer for index: "x"'),
        ("10", 'too large index: "10"'),
        ("4,2", "non-increasing order, previous: 4, current: 2"),
        ("4-2", "non-increasing order, previous: 4, current: 2"),
        ("-1", "cannot convert"),
    ],
)
def test_a_wrong_list_of_indexes_is_refused_in_the_words_of_the_api(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_indexes(text, 10)


@pytest.mark.parametrize(("failures", "wait"), [(0, 0), (1, 10), (2, 20), (6, 320), (7, 600), (100, 600)])
def test_the_delay_doubles_up_to_ten_minutes(failures: int, wait: float) -> None:
    assert remaining_s(POD_BACKOFF, failures, elapsed_s=0) == wait
    assert remaining_s(POD_BACKOFF, failures, elapsed_s=700) == 0


@pytest.mark.parametrize(
    ("failures", "successes", "count"),
    [([1.0, 2.0], [], 5), ([1.0, 2.0], [1.0], 1), ([1.0], [1.0], 0), ([], [1.0], 0), ([], [], 3)],
)
def test_a_success_forgets_the_failures_that_are_not_later(
    failures: list[float], successes: list[float], count: int
) -> None:
    assert updated(BackoffRecord(3, 0.5), failures, successes).failures == count


ANY = ContainerScope.ANY_FAILED
RULES = (
    PodRule(PodAction.IGNORE, conditions=frozenset({("DisruptionTarget", "True")})),
    PodRule(PodAction.FAIL_JOB, ExitCodes(ExitCodeOperator.IN, frozenset({3}), ANY), reason="Three"),
    PodRule(PodAction.FAIL_JOB, ExitCodes(ExitCodeOperator.NOT_IN, frozenset({143, 1}), ANY), "main"),
)


@pytest.mark.parametrize(
    ("facts", "action", "rule"),
    [
        (failed("p", 143, conditions=frozenset({("DisruptionTarget", "True")})), PodAction.IGNORE, 0),
        (failed("p", 143, conditions=frozenset({("DisruptionTarget", "False")})), PodAction.COUNT, None),
        (failed("p", 3), PodAction.FAIL_JOB, 1),
        (failed("p", 9), PodAction.FAIL_JOB, 2),
        (failed("p", 0), PodAction.COUNT, None),
        (pod("p", code=3), PodAction.COUNT, None),
    ],
)
def test_the_first_rule_that_matches_a_failed_pod_decides(facts: Pod, action: PodAction, rule: int | None) -> None:
    verdict = judge(KubeJobSpec(failure_rules=RULES), facts)
    assert (verdict.action, verdict.rule) == (action, rule)


def test_a_rule_may_name_the_reason_of_the_job_it_fails() -> None:
    condition = look(KubeJobSpec(failure_rules=RULES), failed("p", 3)).state.finished
    assert condition is not None
    assert condition.reason == "Three"
    assert (
        condition.message == "Container main for pod default/p failed with exit code 3 matching FailJob rule at index 1"
    )


def test_an_ended_pod_is_counted_once_however_often_it_is_seen() -> None:
    spec, seen = KubeJobSpec(backoff_limit=2), failed("p", finished_at=LONG_AGO)
    first = look(spec, seen)
    again = look(spec, seen, pod("q"), state=first.state)
    assert (first.state.failed, again.state.failed, again.state.backoff.failures) == (1, 1, 1)
    assert not started_by(again)


def test_a_job_ends_only_when_its_last_pod_has_gone() -> None:
    spec = KubeJobSpec(parallelism=2, completions=2, backoff_limit=0)
    first = look(spec, failed("p"), pod("q"))
    assert (stopped_by(first), first.state.finished, first.state.failed) == (("q",), None, 2)
    going = look(spec, failed("p"), pod("q", deleting=True), state=first.state)
    assert going.state.finished is None
    done = look(spec, failed("p"), failed("q"), state=going.state)
    assert done.state.finished is not None
    assert (done.state.finished.reason, done.state.failed) == ("BackoffLimitExceeded", 2)


@pytest.mark.parametrize("replacement", PodReplacement)
@pytest.mark.parametrize(("last", "counts"), [(failed("q", 143), (2, 0)), (pod("q", PodPhase.SUCCEEDED, 0), (1, 1))])
def test_what_still_works_when_a_job_has_failed_counts_as_failed_until_it_ends_otherwise(
    replacement: PodReplacement, last: Pod, counts: tuple[int, int]
) -> None:
    spec = KubeJobSpec(parallelism=2, completions=2, backoff_limit=0, replacement=replacement)
    decided = look(spec, failed("p"), pod("q")).state
    assert (decided.failed, decided.succeeded, decided.terminating) == (2, 0, 1)
    ended = look(spec, failed("p"), last, state=decided).state
    assert ended.finished is not None
    assert ended.finished.type == "Failed"
    assert (ended.failed, ended.succeeded, ended.active, ended.terminating) == (*counts, 0, 0)
    seen = look(spec, failed("p"), last).state  # the same as of one that had ended by then
    assert (seen.failed, seen.succeeded) == counts


@pytest.mark.parametrize(
    ("last", "succeeded"), [(failed("b", 143, index=1), 1), (pod("b", PodPhase.SUCCEEDED, 0, index=1), 2)]
)
def test_what_still_works_when_a_job_is_complete_never_counts_as_failed(last: Pod, succeeded: int) -> None:
    spec = KubeJobSpec(parallelism=3, completions=3, mode=INDEXED, success_rules=(SuccessRule(frozenset({0})),))
    first, other = pod("a", PodPhase.SUCCEEDED, 0, index=0), pod("c", index=2, deleting=True)
    decided = look(spec, first, pod("b", index=1), evolve(other, deleting=False)).state
    assert (decided.failed, decided.succeeded, decided.terminating) == (0, 1, 2)
    going = look(spec, first, last, other, state=decided)
    again = look(spec, first, last, other, state=going.state)  # each is counted once
    done = look(spec, failed("c", 143, index=2), state=again.state).state
    assert done.finished is not None
    assert (done.finished.type, done.failed, done.succeeded) == ("Complete", 0, succeeded)
    assert len(done.completed_indexes) == succeeded
    assert not done.stopped_at_end


def test_a_recorded_success_is_not_undone_by_a_later_failure() -> None:
    spec = KubeJobSpec(
        parallelism=2, completions=2, mode=INDEXED, backoff_limit=0, success_rules=(SuccessRule(frozenset({0})),)
    )
    first = look(spec, pod("a", PodPhase.SUCCEEDED, 0, index=0), pod("b", index=1))
    assert [one.type for one in first.state.conditions] == ["SuccessCriteriaMet"]
    done = look(spec, pod("a", PodPhase.SUCCEEDED, 0, index=0), failed("b", index=1), state=first.state)
    assert done.state.finished is not None
    assert done.state.finished.type == "Complete"


@pytest.mark.parametrize(
    ("spec", "pods", "created", "deleted"),
    [
        (KubeJobSpec(parallelism=3, completions=5), [pod("a")], 2, 0),
        (KubeJobSpec(parallelism=3, completions=2), [], 2, 0),
        (KubeJobSpec(parallelism=1, completions=5), [pod("a"), pod("b", ready=True)], 0, 1),
        (KubeJobSpec(parallelism=2, completions=2), [pod("a", deleting=True)], 2, 0),
        (KubeJobSpec(parallelism=2, completions=2, replacement=PodReplacement.FAILED), [pod("a", deleting=True)], 1, 0),
        (KubeJobSpec(parallelism=3, completions=None), [pod("a", PodPhase.SUCCEEDED, 0), pod("b")], 0, 0),
    ],
)
def test_as_many_pods_are_started_as_there_is_work(
    spec: KubeJobSpec, pods: list[Pod], created: int, deleted: int
) -> None:
    synced = look(spec, *pods)
    assert (len(started_by(synced)), len(stopped_by(synced))) == (created, deleted)


def test_a_work_queue_is_done_when_one_succeeded_and_the_others_have_ended() -> None:
    done = look(
        KubeJobSpec(parallelism=2, completions=None), pod("a", PodPhase.SUCCEEDED, 0), failed("b")
    ).state.finished
    assert done is not None
    assert done.reason == "CompletionsReached"


def test_indexes_with_a_limit_of_their_own_wait_by_themselves() -> None:
    spec = KubeJobSpec(parallelism=3, completions=3, mode=INDEXED, backoff_limit_per_index=5, backoff_limit=100)
    synced = look(spec, failed("a", index=0, index_failures=2, finished_at=NOW - 1), pod("b", index=1))
    assert [order.index for order in started_by(synced)] == [2]
    assert synced.wake_at == NOW - 1 + 40
    later = look(spec, pod("b", index=1), pod("c", index=2), state=synced.state, now=NOW + 60)
    assert [(order.index, order.index_failures) for order in started_by(later)] == [(0, 3)]


def test_the_delay_of_an_index_grows_with_failures_that_are_ignored_too() -> None:
    rule = PodRule(PodAction.IGNORE, ExitCodes(ExitCodeOperator.IN, frozenset({9}), ANY))
    spec = KubeJobSpec(completions=1, mode=INDEXED, backoff_limit_per_index=5, failure_rules=(rule,))
    for counted, ignored, code, wait_s in [(0, 0, 9, 10.0), (0, 2, 9, 40.0), (1, 1, 9, 40.0), (1, 2, 1, 80.0)]:
        ended = failed("a", code, index=0, index_failures=counted, index_ignored=ignored, finished_at=NOW)
        waits = look(spec, ended)
        assert (started_by(waits), waits.wake_at) == ((), NOW + wait_s)
        (order,) = started_by(look(spec, ended, state=waits.state, now=NOW + wait_s))
        assert (order.index_failures, order.index_ignored) == (counted + (code != 9), ignored + (code == 9))


def test_a_pod_that_was_going_when_its_job_was_suspended_is_not_counted_when_it_has_gone() -> None:
    spec = KubeJobSpec(parallelism=2, completions=2, backoff_limit=0, replacement=PodReplacement.FAILED)
    stopped = look(evolve(spec, suspend=True), pod("a", deleting=True), pod("b"))
    assert (stopped_by(stopped), stopped.state.terminating) == (("b",), 2)
    resumed = look(spec, failed("a", 143), failed("b", 143), state=stopped.state, now=NOW + 50)
    assert (resumed.state.failed, len(started_by(resumed))) == (0, 2)


def test_suspension_stops_pods_counts_none_and_starts_the_deadline_anew() -> None:
    spec = KubeJobSpec(active_deadline_s=10, backoff_limit=0)
    running = look(spec, pod("a"))
    assert running.wake_at == NOW + 10
    stopped = look(evolve(spec, suspend=True), pod("a"), state=running.state, now=NOW + 5)
    assert (stopped_by(stopped), stopped.state.failed, stopped.state.started_at) == (("a",), 0, None)
    resumed = look(spec, failed("a", 143), state=stopped.state, now=NOW + 50)
    assert (resumed.state.failed, resumed.state.started_at, resumed.state.finished) == (0, NOW + 50, None)
    suspended = next(one for one in resumed.state.conditions if one.type == "Suspended")
    assert (suspended.status, suspended.reason, suspended.message) == (False, "JobResumed", "Job resumed")


def test_a_job_managed_by_someone_else_is_left_alone() -> None:
    synced = look(KubeJobSpec(managed_by="example.com/other"), state=KubeJobState())
    assert synced == Result(state=KubeJobState())


@given(st.lists(st.booleans(), max_size=30), st.integers(1, 3), st.integers(0, 4), st.integers(1, 5))
def test_a_job_always_ends_within_its_limits(fates: list[bool], parallel: int, limit: int, completions: int) -> None:
    spec = KubeJobSpec(parallelism=parallel, completions=completions, mode=INDEXED, backoff_limit=limit)
    state, pods, now, turn = KubeJobState(), dict[str, Pod](), 0.0, 0
    for _ in range(200):
        synced = reconcile(spec, state, list(pods.values()), now)
        state = synced.state
        if state.finished:
            break
        for name in stopped_by(synced):
            del pods[name]
        for order in started_by(synced):
            assert order.index not in {one.index for one in pods.values() if one.active}
            pods[f"p{len(pods)}-{now}"] = Pod(name=f"p{len(pods)}-{now}", index=order.index)
        now += 700
        for name, one in pods.items():
            if one.active:
                good = turn >= len(fates) or fates[turn]
                turn += 1
                pods[name] = evolve(
                    one, phase=PodPhase.SUCCEEDED if good else PodPhase.FAILED, finished_at=now,
                    containers=(ContainerResult(0 if good else 1),),
                )  # fmt: skip
    assert state.finished
    assert state.failed <= limit + parallel
    assert (state.finished.type == "Complete") == (state.completed_indexes == frozenset(range(completions)))


JUDGED = (
    PodRule(PodAction.FAIL_JOB, exit_codes=ExitCodes(ExitCodeOperator.IN, frozenset({42})), name="fatal"),
    PodRule(PodAction.IGNORE, exit_codes=ExitCodes(ExitCodeOperator.IN, frozenset({7}))),
)


def test_pods_that_fail_at_once_count_for_each_other() -> None:
    pods = [failed(name, 1) for name in "abc"]
    found = reconcile(KubeJobSpec(parallelism=3, backoff_limit=1), KubeJobState(started_at=NOW - 5), pods, NOW)
    assert [decided.decision.code for decided in found.decisions] == [
        DecisionCode.FAIL_DEFAULT,
        DecisionCode.POLICY_LIMIT,
        DecisionCode.POLICY_LIMIT,
    ]
    assert [decided.decision.limits[-1].used for decided in found.decisions] == [0, 1, 2]


ANY_NUMBER = ("globalMaxRetries", 0, None)


@pytest.mark.parametrize(
    ("spec", "code", "failed_before", "cap", "expected"),
    [
        ({}, 1, 0, None, (Action.RETRY, DecisionCode.RETRY, None, (ANY_NUMBER, ("backoffLimit", 0, 6)))),
        (
            {"backoff_limit": 0},
            1,
            0,
            None,
            (Action.FAIL, DecisionCode.POLICY_LIMIT, None, (ANY_NUMBER, ("backoffLimit", 0, 0))),
        ),
        ({}, 1, 0, 0, (Action.FAIL, DecisionCode.GLOBAL_LIMIT, None, (("globalMaxRetries", 0, 0),))),
        ({}, 1, 2, 2, (Action.FAIL, DecisionCode.GLOBAL_LIMIT, None, (("globalMaxRetries", 2, 2),))),
        ({}, 1, 1, 2, (Action.RETRY, DecisionCode.RETRY, None, (("globalMaxRetries", 1, 2), ("backoffLimit", 1, 6)))),
        ({"failure_rules": JUDGED}, 42, 0, None, (Action.FAIL, DecisionCode.FAIL_RULE, "fatal", (ANY_NUMBER,))),
        ({"failure_rules": JUDGED}, 7, 0, None, (Action.IGNORE, DecisionCode.IGNORE, "rule1", (ANY_NUMBER,))),
        (
            {"failure_rules": JUDGED},
            7,
            0,
            0,
            (Action.FAIL, DecisionCode.GLOBAL_LIMIT, "rule1", (("globalMaxRetries", 0, 0),)),
        ),
    ],
)
def test_each_failed_pod_has_a_decision_with_its_rule_and_limits(
    spec: dict[str, Any], code: int, failed_before: int, cap: int | None, expected: tuple[Any, ...]
) -> None:
    before = KubeJobState(started_at=NOW - 5, failed=failed_before)
    found = reconcile(KubeJobSpec(**spec), before, [failed("p", code)], NOW, cap=cap)
    assert [each.pod for each in found.decisions] == ["p"]
    decision = found.decisions[0].decision
    limits = tuple((use.name, use.used, use.limit) for use in decision.limits)
    assert (decision.action, decision.code, decision.rule, limits) == expected
    assert (found.state.finished is not None) is (decision.action is Action.FAIL)
    again = reconcile(KubeJobSpec(**spec), found.state, [failed("p", code)], NOW + 1, cap=cap)
    assert again.decisions == (), "a failure is judged once"


def test_the_kill_switch_ends_a_job_at_its_next_failure_and_not_before() -> None:
    going = reconcile(KubeJobSpec(), KubeJobState(started_at=NOW, failed=3), [pod("p")], NOW, cap=0)
    assert going.state.finished is None
    over = reconcile(KubeJobSpec(), going.state, [failed("p")], NOW + 1, cap=0)
    assert over.state.finished is not None
    assert (over.state.finished.reason, over.state.finished.message) == (
        "BackoffLimitExceeded",
        "globalMaxRetries is 0",
    )
