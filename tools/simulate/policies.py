"""Random policies, queues, categories and settings: what operators write, all of it valid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.category import CategoryRule, FailureCategory
from holdfast.domain.failure import Cause, FailureCondition
from holdfast.domain.job import Ceiling, Queue
from holdfast.domain.policy.model import (
    Action,
    AntiAffinity,
    Backoff,
    ExitCodeOperator,
    ExitCodes,
    JitterMode,
    MemoryGrowth,
    Mutation,
    RetryPolicy,
    RetrySettings,
    Rule,
)
from holdfast.domain.record import evolve

if TYPE_CHECKING:
    from holdfast.domain.workloads.spec import JobSpec
    from tools.simulate.chance import Chance

POLICIES = ("patient", "strict", "memory")
QUEUES = ("default", "research", "nightly")
GIB = 1 << 30
_ACTIONS = (Action.RETRY,) * 7 + (Action.FAIL, Action.IGNORE, Action.HOLD)


def random_policy(chance: Chance, name: str) -> RetryPolicy:
    """Draw a policy of up to four rules."""
    rules = tuple(_rule(chance, f"r{index}") for index in range(chance.randint(0, 4)))
    return RetryPolicy(
        name,
        rules,
        retry_limit=chance.choice((None, 0, 1, 2, 3)),
        default_action=chance.choice((Action.RETRY, Action.RETRY, Action.FAIL)),
        backoff=_backoff(chance) if chance.happens(0.7) else None,
        anti_affinity=chance.choice((AntiAffinity.NONE, AntiAffinity.NODE)),
    )


UNTRIED_EVERY, FIRST_UNTRIED = 13, 4
"""One seed of this many has jobs whose retries are kept off the nodes that were tried, from this one on."""


def kept_off_tried(spec: JobSpec) -> JobSpec:
    """Return a job whose retries, by whatever rule of its own, are kept off the nodes that were tried."""
    own = spec.inline_policies or (RetryPolicy("inline", default_action=Action.RETRY, retry_limit=6),)
    return evolve(spec, inline_policies=tuple(map(_kept_off, own)))


def _kept_off(policy: RetryPolicy) -> RetryPolicy:
    rules = [evolve(rule, mutate=evolve(rule.mutate or Mutation(), avoid_same_node=True)) for rule in policy.rules]
    last = Rule(Action.RETRY, "untried", retry_limit=8, mutate=Mutation(avoid_same_node=True))
    return evolve(policy, rules=(*rules, last))


def _rule(chance: Chance, name: str) -> Rule:
    action = chance.choice(_ACTIONS)
    grows = chance.happens(0.2)
    growth = MemoryGrowth(factor=2.0, max=6 * GIB) if chance.happens(0.5) else MemoryGrowth(static=GIB)
    return evolve(
        _matching(chance),
        action=action,
        name=name,
        retry_limit=chance.choice((None, None, 0, 1, 2)),
        backoff=_backoff(chance) if chance.happens(0.3) else None,
        mutate=Mutation(growth) if grows else None,
        anti_affinity=chance.choice((None, AntiAffinity.NODE)),
        hold_reason="look at it" if action is Action.HOLD else "",
    )


def _matching(chance: Chance) -> Rule:
    """Draw what a rule looks at; its action comes later."""
    operator = chance.choice((ExitCodeOperator.IN, ExitCodeOperator.NOT_IN))
    conditions = frozenset(chance.sample([str(each) for each in FailureCondition], 3))
    blank = Action.RETRY
    return chance.choice(
        (
            Rule(blank, exit_codes=ExitCodes(operator, frozenset(chance.sample((1, 2, 3, 137), 2)))),
            Rule(blank, conditions=conditions),
            Rule(blank, termination_message="(?i)connection|timeout"),
            Rule(blank, causes=frozenset({str(Cause.OOM_KILLED), str(Cause.AGENT_TRANSIENT)})),
            Rule(blank, categories=frozenset({"network"})),
            Rule(blank, signals=frozenset({11})),
            Rule(blank, ran_shorter_than_s=3.0),
            Rule(blank),
        )
    )


def _backoff(chance: Chance) -> Backoff:
    return Backoff(
        initial_s=chance.choice((0.0, 0.5, 2.0, 8.0)),
        max_s=20.0,
        multiplier=chance.choice((1.0, 2.0)),
        jitter=chance.choice(tuple(JitterMode)),
    )


def random_queue(chance: Chance, name: str) -> Queue:
    """Draw a queue's weight, limits and policies."""
    limited = chance.happens(0.4)
    return Queue(
        name,
        weight=chance.choice((0.5, 1.0, 3.0)),
        max_running=Ceiling(chance.choice((2000, 4000, 6000))) if limited else Ceiling(),
        max_running_jobs=chance.choice((None, None, None, 1, 3)),
        retry_policies=tuple(chance.sample(POLICIES, chance.randint(0, 2))),
    )


def random_settings(chance: Chance) -> RetrySettings:
    """Draw the operator's settings; one time in eight the kill switch."""
    cap = chance.choice((None, None, None, None, 2, 3, 5, 0))
    return RetrySettings(cap, Backoff(initial_s=chance.choice((0.0, 1.0, 4.0)), max_s=30.0))


def network_category() -> FailureCategory:
    """Return the one category of these worlds."""
    rule = CategoryRule(termination_message="(?i)connection", subcategory="refused", hint="is the service up?")
    return FailureCategory("network", (rule,))
