"""Measures how many policy decisions one core makes in a second, with 20 rules of mixed matchers."""

from __future__ import annotations

import time

from holdfast.domain.failure import Cause, ContainerResult, Failure, FailureCondition
from holdfast.domain.policy.compiled import PolicySet
from holdfast.domain.policy.decide import decide
from holdfast.domain.policy.model import (
    Action,
    ExitCodeOperator,
    ExitCodes,
    RetryHistory,
    RetryPolicy,
    RetrySettings,
    Rule,
)

_BATCH = 2000
_SETTINGS = RetrySettings(global_max_retries=100)
_HISTORY = RetryHistory("job-1", 2, (("mixed/rule19", 1),), 1, 1 << 30)
_MESSAGE = "Traceback (most recent call last): RuntimeError: a message of the length that programs leave behind"


def measure(seconds: float = 1.0) -> dict[str, float]:
    """Measure decisions per second of one core's time, for about ``seconds`` per case."""
    cases = {
        "match first": (_mixed(), _failure(10)),
        "match last": (_mixed(), _failure(29)),
        "no match": (_mixed(), _failure(99)),
        "3 composed policies": (_composed(), _failure(29)),
    }
    return {name: _rate(policies, failure, seconds) for name, (policies, failure) in cases.items()}


def _rate(policies: PolicySet, failure: Failure, seconds: float) -> float:
    decisions, start = 0, time.process_time()
    while (took := time.process_time() - start) < seconds:
        for _ in range(_BATCH):
            decide(policies, failure, _HISTORY, _SETTINGS)
        decisions += _BATCH
    return decisions / took


def _failure(exit_code: int) -> Failure:
    return Failure(
        Cause.KERNEL_NONZERO_EXIT,
        frozenset({FailureCondition.APP_ERROR}),
        (ContainerResult(exit_code, message=_MESSAGE),),
        category="gpu",
        subcategory="ecc",
        node="node-1",
        ran_s=12.0,
    )


def _rules() -> tuple[Rule, ...]:
    """Return 20 rules; exit code 10 matches the first, 29 only the last, 99 none."""
    retry = Action.RETRY
    kinds = (
        lambda code: Rule(retry, exit_codes=ExitCodes(ExitCodeOperator.IN, frozenset({code, code + 100}))),
        lambda _: Rule(retry, conditions=frozenset({FailureCondition.OOM_KILLED, FailureCondition.EVICTED})),
        lambda code: Rule(retry, termination_message=rf"(?i)cuda.*error {code}"),
        lambda code: Rule(retry, categories=frozenset({f"category-{code}"}), subcategories=frozenset({"x"})),
        lambda code: Rule(retry, signals=frozenset({code % 30}), ran_shorter_than_s=60),
    )
    rules = tuple(kinds[i % 5](i + 10) for i in range(19))
    return (*rules, Rule(retry, exit_codes=ExitCodes(ExitCodeOperator.IN, frozenset({29}))))


def _mixed() -> PolicySet:
    return PolicySet.compile([RetryPolicy("mixed", _rules(), 50)])


def _composed() -> PolicySet:
    rules = _rules()
    parts = (rules[:7], rules[7:14], rules[14:])
    return PolicySet.compile([RetryPolicy(f"part{i}", part, 50) for i, part in enumerate(parts)])


if __name__ == "__main__":
    for name, rate in measure().items():
        print(f"{name:20} {rate:>10,.0f} decisions/s")
