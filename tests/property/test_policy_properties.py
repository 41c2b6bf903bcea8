"""What holds for every policy and failure, against a small model written independently of the engine."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.failure import Cause, ContainerResult, Failure, FailureCondition, LogMatch
from holdfast.domain.policy.compiled import PolicySet
from holdfast.domain.policy.decide import decide, delay_s, grow_memory
from holdfast.domain.policy.matchers import matches
from holdfast.domain.policy.model import (
    Action,
    AntiAffinity,
    Backoff,
    ContainerScope,
    ExitCodeOperator,
    ExitCodes,
    JitterMode,
    MemoryGrowth,
    Mutation,
    RetryHistory,
    RetryPolicy,
    RetrySettings,
    Rule,
)
from holdfast.domain.record import evolve
from holdfast.domain.terms.settings import UnknownEnd
from tests.reading import compile_rule
from tools.cases.armada_pods import grow_containers

CONDITIONS = st.frozensets(st.sampled_from(["OOMKilled", "Evicted", "AppError"]), max_size=2)
WORDS = st.sampled_from(["", "gpu", "net"])
NAMES = st.sampled_from(["main", "side", "setup"])
CODES = st.sampled_from([0, 1, 2, 137])
BACKOFFS = st.builds(
    Backoff,
    st.floats(0, 1000),
    st.none() | st.floats(0, 10_000),
    st.floats(1, 100),
    st.sampled_from(JitterMode),
    st.floats(0, 1),
)
GROWTHS = st.builds(MemoryGrowth, factor=st.floats(1, 10), max=st.none() | st.integers(0, 1 << 40)) | st.builds(
    MemoryGrowth, static=st.integers(1, 1 << 40), max=st.none() | st.integers(0, 1 << 40)
)
CONTAINERS = st.builds(
    ContainerResult,
    st.none() | CODES,
    NAMES,
    st.none() | st.sampled_from([9, 15]),
    st.sampled_from(["", "Error", "OOMKilled"]),
    st.sampled_from(["", "cuda error", "ok"]),
    st.booleans(),
)
LOG_PATTERNS = [".*", "cuda", "^ok$"]
FAILURES = st.builds(
    Failure,
    st.sampled_from([Cause.OOM_KILLED, Cause.UNKNOWN, Cause.USER_CANCELLED]),
    CONDITIONS,
    st.lists(CONTAINERS, max_size=3).map(tuple),
    WORDS,
    WORDS,
    node=st.none() | st.just("n1"),
    ran_s=st.none() | st.sampled_from([0.0, 5.0, 60.0]),
    log_matches=st.lists(st.builds(LogMatch, st.sampled_from(LOG_PATTERNS), st.just("a line")), max_size=2).map(tuple),
)
EXIT_CODES = st.builds(
    ExitCodes,
    st.sampled_from(ExitCodeOperator),
    st.frozensets(CODES, min_size=1, max_size=2),
    st.sampled_from(ContainerScope),
)
NONE = st.none()
RULES = st.builds(
    Rule,
    st.sampled_from(Action),
    exit_codes=NONE | EXIT_CODES,
    conditions=NONE | CONDITIONS,
    termination_message=NONE | st.sampled_from([".*", "cuda", "^ok$", ""]),
    log=NONE | st.sampled_from(LOG_PATTERNS),
    categories=NONE | st.frozensets(WORDS, min_size=1),
    subcategories=NONE | st.frozensets(WORDS, min_size=1),
    causes=NONE | st.frozensets(st.sampled_from(["oom_killed", "unknown"]), min_size=1),
    signals=NONE | st.frozensets(st.sampled_from([9, 15]), min_size=1),
    container_name=NONE | NAMES,
    include_init_containers=st.booleans(),
    ran_shorter_than_s=NONE | st.just(30.0),
    ran_longer_than_s=NONE | st.just(1.0),
    retry_limit=NONE | st.integers(0, 4),
    backoff=NONE | BACKOFFS,
    anti_affinity=NONE | st.sampled_from(AntiAffinity),
    mutate=NONE | st.builds(Mutation, NONE | GROWTHS, st.booleans()),
)
SPARSE_RULES = st.one_of(
    RULES,
    st.builds(Rule, st.sampled_from(Action), exit_codes=EXIT_CODES, retry_limit=NONE | st.integers(0, 4)),
    st.builds(Rule, st.sampled_from(Action), conditions=CONDITIONS, container_name=NONE | NAMES),
    st.builds(Rule, st.sampled_from(Action), termination_message=st.sampled_from([".*", "cuda"])),
)
POLICIES = st.lists(
    st.builds(
        RetryPolicy,
        st.just(""),
        st.lists(SPARSE_RULES, max_size=5).map(tuple),
        NONE | st.integers(0, 4),
        st.sampled_from(Action),
        NONE | BACKOFFS,
        st.sampled_from(AntiAffinity),
        on_unknown_end=NONE | st.sampled_from(UnknownEnd),
    ),
    max_size=3,
).map(lambda found: [evolve(policy, name=f"p{i}") for i, policy in enumerate(found)])
SETTINGS = st.builds(RetrySettings, NONE | st.integers(0, 6), BACKOFFS)


def _model_matches(rule: Rule, failure: Failure) -> bool:
    """Say again, slowly and plainly, when a rule matches."""
    failed = [c for c in failure.containers if c.exit_code not in (None, 0)]
    seen = [c for c in failed if not c.init] + [c for c in failed if c.init and rule.include_init_containers]
    seen = [c for c in seen if rule.container_name in (None, c.name)]
    checks = [rule.container_name is None or bool(seen)]
    if rule.exit_codes is not None:
        looked_at = seen if rule.exit_codes.scope is ContainerScope.ANY_FAILED else seen[:1]
        inside = [c.exit_code in rule.exit_codes.values for c in looked_at]
        checks.append(any(inside) if rule.exit_codes.operator is ExitCodeOperator.IN else not all(inside))
    if rule.conditions is not None:
        there = {c.reason for c in seen}
        if rule.container_name is None:
            there |= failure.conditions
        elif any(c.reason != "OOMKilled" for c in seen):
            there |= failure.conditions & ({"AppError", "OOMKilled"} if len(failed) == 1 else {"AppError"})
        checks.append(bool(there & rule.conditions))
    if rule.termination_message is not None:
        checks.append(any(c.message and re.search(rule.termination_message, c.message) for c in seen))
    checks += [rule.log is None or rule.log in {match.pattern for match in failure.log_matches}]
    checks += [rule.categories is None or failure.category in rule.categories]
    checks += [rule.subcategories is None or failure.subcategory in rule.subcategories]
    checks += [rule.causes is None or failure.cause in rule.causes]
    checks += [rule.signals is None or any(c.signal in rule.signals for c in seen)]
    ran_s = failure.ran_s
    checks += [rule.ran_shorter_than_s is None or (ran_s is not None and ran_s < rule.ran_shorter_than_s)]
    checks += [rule.ran_longer_than_s is None or (ran_s is not None and ran_s > rule.ran_longer_than_s)]
    return all(checks)


@given(POLICIES, FAILURES)
def test_the_first_match_wins(policies: list[RetryPolicy], failure: Failure) -> None:
    rules = [(policy.name, i, rule) for policy in policies for i, rule in enumerate(policy.rules)]
    expected = next(((name, i) for name, i, rule in rules if _model_matches(rule, failure)), None)
    found = PolicySet.compile(policies).first_match(failure)
    assert (None if found.index is None else (found.policy, found.index)) == expected


@given(POLICIES, st.lists(FAILURES, max_size=12), SETTINGS)
def test_limits_are_never_exceeded(
    policies: list[RetryPolicy], failures: list[Failure], settings: RetrySettings
) -> None:
    compiled = PolicySet.compile(policies)
    limits = {rule.counter: rule.limit for rule in (*compiled.rules, compiled.default)}
    counters: dict[str, int] = {}
    for attempt, failure in enumerate(failures, 1):
        total = sum(counters.values())
        decision = decide(compiled, failure, RetryHistory("j", attempt, tuple(counters.items()), total), settings)
        if decision.counter is not None:
            counters[decision.counter] = counters.get(decision.counter, 0) + 1
        assert decision.grants_retry or (decision.counter is None and decision.delay_s == 0)
        assert not (settings.global_max_retries == 0 and decision.grants_retry)
    cap = settings.global_max_retries
    assert cap is None or sum(counters.values()) <= cap
    assert all(limits[name] is None or count <= (limits[name] or 0) for name, count in counters.items())


@given(POLICIES, FAILURES, SETTINGS, st.integers(0, 5), st.floats(0, 0.99))
def test_explaining_changes_nothing_that_is_decided(
    policies: list[RetryPolicy], failure: Failure, settings: RetrySettings, total: int, draw: float
) -> None:
    compiled = PolicySet.compile(policies)
    history = RetryHistory("j", total + 1, (("p0/rule0", total),), total, 1 << 20)
    plain = decide(compiled, failure, history, settings, draw=draw)
    explained = decide(compiled, failure, history, settings, draw=draw, explain=True)
    assert evolve(explained, considered=(), delay_because="") == plain
    assert all(not each.matched for each in explained.considered[:-1])
    assert all(each.because for each in explained.considered)


@given(EXIT_CODES, st.lists(st.builds(ContainerResult, st.sampled_from([0, None]), NAMES), max_size=3))
def test_exit_code_0_never_matches(codes: ExitCodes, containers: list[ContainerResult]) -> None:
    failure = Failure(Cause.UNKNOWN, frozenset({FailureCondition.PREEMPTED}), tuple(containers))
    rule = Rule(Action.RETRY, exit_codes=codes, include_init_containers=True)
    assert not matches(compile_rule(rule).matchers, failure)


@given(BACKOFFS, st.integers(1, 5000), st.text(max_size=8), st.floats(0, 0.99))
def test_delays_are_bounded_and_never_shrink_without_jitter(backoff: Backoff, n: int, seed: str, draw: float) -> None:
    cap = float("inf") if backoff.max_s is None else backoff.max_s
    assert 0 <= delay_s(backoff, n, seed=seed, draw=draw) <= cap
    plain = evolve(backoff, jitter=JitterMode.NONE)
    assert delay_s(plain, n, seed=seed) <= delay_s(plain, n + 1, seed=seed)


@given(st.integers(0, 1 << 40), GROWTHS)
def test_growth_never_shrinks_and_stays_below_its_maximum(memory: int, growth: MemoryGrowth) -> None:
    grown = grow_memory(memory, growth)
    assert grown >= memory
    assert growth.max is None or grown <= max(memory, growth.max)


@given(st.dictionaries(NAMES, st.none() | st.integers(1, 1 << 40)), st.integers(0, 1 << 40))
def test_containers_never_share_more_than_was_granted(main: dict[str, int | None], static: int) -> None:
    grown = grow_containers(main, {}, static=static)
    total = sum(size or 0 for size in main.values())
    assert total <= sum(grown.values()) <= total + static
