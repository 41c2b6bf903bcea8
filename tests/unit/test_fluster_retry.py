"""Fluster's RetryConfig as one policy: two budgets with counters and delays of their own; what is wrong with one."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.compiled.codec import dump_spec
from holdfast.controller.policy_catalog import PolicyCatalog
from holdfast.dialects.fluster.retry import RetryLimits, limits_of, read_retry, retry_warnings
from holdfast.domain.classify import classify
from holdfast.domain.failure import ContainerResult, EndedBy, FailureCondition, RunOutcome
from holdfast.domain.job import Job
from holdfast.domain.policy.decide import decide
from holdfast.domain.policy.model import Action, BuiltIn, RetryDefaults, RetryHistory, RetryPolicy, RetrySettings
from holdfast.domain.record import evolve
from holdfast.domain.workloads.gang.policies import compiled_for
from holdfast.domain.workloads.spec import JobSpec
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from holdfast.domain.policy.compiled import PolicySet
    from holdfast.errors import Problem

Given = dict[str, Any]
LOST = RunOutcome(
    conditions=frozenset({FailureCondition.EXECUTOR_LOST}), ended_by=EndedBy.LOST, started_at=1.0, node="w1"
)
NEVER_STARTED = RunOutcome(conditions=frozenset({FailureCondition.LAUNCH_FAILED}), started=False)
OOM = RunOutcome(
    (ContainerResult(137, signal=9, reason="OOMKilled"),), frozenset({FailureCondition.OOM_KILLED}), EndedBy.MEMORY
)


def exit_of(code: int) -> RunOutcome:
    return RunOutcome(containers=(ContainerResult(code, reason="Error"),))


def of_condition(condition: FailureCondition) -> RunOutcome:
    return RunOutcome(conditions=frozenset({condition}), started=False)


def policy_of(given: Given | None, defaults: RetryDefaults = RetryDefaults()) -> RetryPolicy:  # noqa: B008 - it is frozen
    problems: list[Problem] = []
    policy = read_retry(given, defaults, problems)
    assert problems == []
    assert policy is not None
    return policy


def spec_of(given: Given | None) -> JobSpec:
    return JobSpec("j", ("true",), inline_policies=(policy_of(given),), builtin=BuiltIn.NONE)


def compiled(given: Given | None) -> PolicySet:
    return compiled_for(spec_of(given), [])


def history_of(counters: dict[str, int]) -> RetryHistory:
    total = sum(counters.values())
    return RetryHistory("j", total + 1, tuple(counters.items()), total)


def lived(given: Given | None, outcomes: list[RunOutcome]) -> list[float | None]:
    """Return the delay before each retry, ``None`` where there was none."""
    policies, counters, delays = compiled(given), dict[str, int](), list[float | None]()
    for outcome in outcomes:
        decision = decide(policies, classify(outcome), history_of(counters), RetrySettings())
        delays.append(decision.delay_s if decision.grants_retry else None)
        if decision.counter is not None:
            counters[decision.counter] = counters.get(decision.counter, 0) + 1
    return delays


def test_what_is_absent_has_the_controllers_default_and_zero_is_zero() -> None:
    defaults = RetryDefaults(2, 50, 4000)
    nothing: list[Given | None] = [None, {}]
    for given in nothing:
        spec = JobSpec("j", ("true",), inline_policies=(policy_of(given, defaults),))
        assert limits_of(spec) == RetryLimits(2, 50)
    zeros = {"max_retries_failure": 0, "max_retries_preemption": 0, "initial_retry_delay_ms": 0}
    spec = JobSpec("j", ("true",), inline_policies=(policy_of(zeros, defaults),))
    assert limits_of(spec) == RetryLimits(0, 0)
    assert lived({"max_retries_failure": 1, "initial_retry_delay_ms": 0}, [exit_of(1)]) == [0.0]
    assert policy_of({}, defaults).rules[1].backoff != policy_of(zeros, defaults).rules[1].backoff
    assert limits_of(JobSpec("j", ("true",))) is None


def test_by_default_no_failure_is_retried_and_a_hundred_preemptions_are() -> None:
    assert lived(None, [exit_of(1)]) == [None]
    assert lived({}, [LOST] * 101).count(None) == 1


@pytest.mark.parametrize(
    ("given", "delays"),
    [
        pytest.param({"max_retry_delay_ms": 30_000}, [1, 2, 4, 8, 16], id="delays double"),
        pytest.param({"max_retry_delay_ms": 5_000}, [1, 2, 4, 5, 5, 5], id="the maximum is kept"),
        pytest.param({}, [1, 2, 4, 8, 16, 32, 60, 60], id="the default maximum is 60 s"),
        pytest.param(
            {"initial_retry_delay_ms": 3_000, "backoff_multiplier": 1.0}, [3, 3, 3, 3], id="a multiplier of 1"
        ),
        pytest.param(
            {"initial_retry_delay_ms": 500, "max_retry_delay_ms": 2_000, "backoff_multiplier": 3.0},
            [0.5, 1.5, 2, 2],
            id="a first delay below one second",
        ),
        pytest.param({"initial_retry_delay_ms": 0}, [0, 0, 0], id="a first delay of 0 stays 0"),
    ],
)
def test_delays_grow_up_to_their_maximum(given: Given, delays: list[float]) -> None:
    config = {"max_retries_failure": len(delays), **given}
    assert lived(config, [exit_of(1)] * (len(delays) + 1)) == [*delays, None]


@pytest.mark.parametrize(
    ("given", "outcomes", "delays"),
    [
        pytest.param(
            {"max_retries_failure": 1, "retry_on_exit_codes": [137]},
            [exit_of(137), exit_of(137)],
            [1, None],
            id="an allowed exit code is no retry beyond the budget",
        ),
        pytest.param(
            {"max_retries_failure": 2, "no_retry_on_exit_codes": [2]},
            [exit_of(1), exit_of(2)],
            [1, None],
            id="a denied exit code ends the job with retries left",
        ),
        pytest.param(
            {"max_retries_failure": 5},
            [exit_of(1), exit_of(1), LOST, exit_of(1)],
            [1, 2, 1, 4],
            id="a loss between two failures leaves the delays of failures alone",
        ),
    ],
)
def test_budgets_exit_codes_and_delays_agree(
    given: Given, outcomes: list[RunOutcome], delays: list[float | None]
) -> None:
    assert lived(given, outcomes) == delays


def test_the_first_failure_after_three_preemptions_waits_the_first_delay_and_the_budgets_are_apart() -> None:
    given = {"max_retries_failure": 2, "max_retries_preemption": 3}
    outcomes = [LOST, LOST, LOST, exit_of(1), exit_of(1), exit_of(1)]
    assert lived(given, outcomes) == [1, 2, 4, 1, 2, None]
    assert lived(given, [exit_of(1), exit_of(1), LOST, LOST, LOST, LOST]) == [1, 2, 1, 2, 4, None]


@pytest.mark.parametrize(
    "condition",
    [
        FailureCondition.PREEMPTED,
        FailureCondition.EVICTED,
        FailureCondition.NODE_LOST,
        FailureCondition.EXECUTOR_LOST,
        FailureCondition.IMAGE_PULL_FAILED,
    ],
)
def test_every_loss_of_its_worker_is_charged_to_one_counter(condition: FailureCondition) -> None:
    given = {"max_retries_preemption": 1, "max_retries_failure": 9, "no_retry_on_exit_codes": [137]}
    assert lived(given, [of_condition(condition), LOST]) == [1.0, None]
    assert lived(given, [LOST, of_condition(condition)]) == [1.0, None]


def test_what_could_not_be_started_is_tried_twice_more_whatever_the_budgets_are() -> None:
    given = {"max_retries_failure": 0, "max_retries_preemption": 0, "retry_on_exit_codes": [3]}
    assert lived(given, [NEVER_STARTED] * 3) == [1, 2, None]


def test_a_place_that_was_not_found_in_time_ends_the_job() -> None:
    given = {"max_retries_failure": 9, "max_retries_preemption": 9}
    assert lived(given, [of_condition(FailureCondition.UNSCHEDULABLE)]) == [None]


@pytest.mark.parametrize(
    ("given", "retried"),
    [
        ({"retry_on_exit_codes": [137, 139]}, {139: True, 1: False}),
        ({"no_retry_on_exit_codes": [1]}, {1: False, 2: True}),
        ({"retry_on_exit_codes": [1, 137], "no_retry_on_exit_codes": [1]}, {1: False, 137: True, 2: False}),
        ({}, {1: True, 2: True, 137: True, 255: True}),
    ],
)
def test_denied_exit_codes_come_before_allowed_ones(given: Given, retried: dict[int, bool]) -> None:
    for code, wanted in retried.items():
        (delay,) = lived({"max_retries_failure": 3, **given}, [exit_of(code)])
        assert (delay is not None) is wanted, code


def test_memory_and_deadlines_are_the_jobs_own_failures() -> None:
    over = RunOutcome((ContainerResult(143, signal=15),), ended_by=EndedBy.DEADLINE)
    for outcome in (OOM, over):
        assert lived({"max_retries_failure": 1}, [outcome, outcome]) == [1, None]
        assert lived(None, [outcome]) == [None]


def test_the_built_in_policy_is_left_out_and_a_user_who_ends_a_job_is_never_overruled() -> None:
    given = {"max_retries_preemption": 0}
    assert {rule.policy for rule in compiled(given).rules} == {"fluster"}
    cancelled = RunOutcome(ended_by=EndedBy.USER)
    assert lived({"max_retries_failure": 5}, [cancelled]) == [None]


def test_the_controller_keeps_jobs_with_and_without_the_built_in_policy_apart() -> None:
    catalog, without = PolicyCatalog(MemoryStore()), spec_of({})
    for spec, built_in in (
        (evolve(without, builtin=None), True),
        (without, False),
        (evolve(without, builtin=None), True),
    ):
        job = Job("j", "j", "default", 0, 0.0, dump_spec(spec))
        names = {rule.policy for rule in catalog.compiled(job, spec).rules}
        assert ("infrastructure" in names) is built_in


def test_the_defaults_that_are_set_are_those_of_the_next_launch() -> None:
    store, found = MemoryStore(), list[RetryLimits | None]()
    for defaults in (RetryDefaults(), RetryDefaults(2, 50, 4000)):
        store.put_settings(RetrySettings(fluster=defaults), None)
        policy = policy_of({"max_retries_preemption": 7}, store.catalogue().settings.fluster)
        found.append(limits_of(JobSpec("j", ("true",), inline_policies=(policy,))))
    assert found == [RetryLimits(0, 7), RetryLimits(2, 7)]


def test_of_very_many_failures_the_delay_is_the_maximum() -> None:
    policies = compiled({"max_retries_failure": 5000, "backoff_multiplier": 1000.0})
    history = RetryHistory("j", 2000, (("fluster/failure", 1999),), 1999)
    decision = decide(policies, classify(exit_of(1)), history, RetrySettings())
    assert (decision.action, decision.delay_s) == (Action.RETRY, 60.0)


def test_all_problems_are_told_at_once_with_their_paths() -> None:
    given = {
        "max_retries_failure": -1,
        "max_retries_preemption": 1 << 31,
        "initial_retry_delay_ms": -1,
        "backoff_multiplier": 0.5,
        "retry_on_exit_codes": [1, 256, -9],
        "no_retry_on_exit_codes": [True],
        "max_retrys": 3,
    }
    problems: list[Problem] = []
    assert read_retry(given, RetryDefaults(), problems) is None
    assert [problem.path for problem in problems] == [
        "retry.max_retries_failure",
        "retry.max_retries_preemption",
        "retry.initial_retry_delay_ms",
        "retry.backoff_multiplier",
        "retry.retry_on_exit_codes[1]",
        "retry.retry_on_exit_codes[2]",
        "retry.no_retry_on_exit_codes[0]",
        "retry.max_retrys",
    ]
    assert "137" in (problems[5].hint or "")


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"initial_retry_delay_ms": 10_000, "max_retry_delay_ms": 5_000}, True),
        ({"initial_retry_delay_ms": 60_001}, True),
        ({"initial_retry_delay_ms": 60_000}, False),
        ({"max_retry_delay_ms": 5}, False),
        ({"backoff_multiplier": float("nan")}, True),
        ({"backoff_multiplier": 1.0}, False),
    ],
)
def test_delays_that_are_set_have_to_agree(given: Given, *, wrong: bool) -> None:
    problems: list[Problem] = []
    assert (read_retry(given, RetryDefaults(retry_delay_ms=10), problems) is None) is wrong
    assert bool(problems) is wrong


def test_a_default_delay_above_the_jobs_own_maximum_is_cut_and_one_above_the_default_maximum_raises_it() -> None:
    slow = RetryDefaults(max_retries_failure=9, retry_delay_ms=90_000)
    delays: list[tuple[Given, float]] = [({}, 90.0), ({"max_retry_delay_ms": 5_000}, 5.0)]
    for given, first in delays:
        backoff = policy_of(given, slow).rules[-1].backoff
        assert backoff is not None
        assert (backoff.initial_s, backoff.max_s) == (first, first)


def test_what_is_dubious_is_told() -> None:
    given = {"max_retries_failure": 0, "retry_on_exit_codes": [1, 0], "no_retry_on_exit_codes": [1]}
    assert [str(one.path) for one in retry_warnings(given)] == [
        "retry.retry_on_exit_codes[1]",
        "retry.retry_on_exit_codes",
        "retry.max_retries_failure",
    ]
    assert retry_warnings(None) == retry_warnings({"max_retries_failure": 3}) == []


def test_any_order_of_losses_and_failures_spends_each_budget_exactly() -> None:
    given = {"max_retries_failure": 2, "max_retries_preemption": 2, "initial_retry_delay_ms": 0}
    for outcomes in set(itertools.permutations([LOST, LOST, exit_of(1), exit_of(1)])):
        assert lived(given, [*outcomes, exit_of(1)]) == [0.0] * 4 + [None]
        assert lived(given, [*outcomes, LOST]) == [0.0] * 4 + [None]
