"""Which category a failure gets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.category import CategoryRule, FailureCategory
from holdfast.domain.classify import CategoryMatch, CompiledCategories, classify
from holdfast.domain.failure import ContainerResult, PodEvent, RunOutcome
from holdfast.domain.policy.model import ContainerScope, ExitCodeOperator, ExitCodes
from holdfast.domain.record import evolve


def matched(rule: CategoryRule, outcome: RunOutcome) -> bool:
    compiled = CompiledCategories.compile([FailureCategory("it", (rule,))])
    return compiled.match(classify(outcome), outcome).category == "it"


def codes(*values: int) -> ExitCodes:
    return ExitCodes(ExitCodeOperator.IN, frozenset(values), ContainerScope.ANY_FAILED)


OOM = frozenset({"OOMKilled"})
MAIN, SIDE = ContainerResult(1, message="normal failure"), ContainerResult(137, "side", reason="OOMKilled")
WARNING = PodEvent("Warning", "devices unavailable for nvidia.com/gpu", "UnexpectedAdmissionError")

TABLE: list[tuple[str, CategoryRule, RunOutcome, bool]] = [
    ("condition by reason", CategoryRule(conditions=OOM), RunOutcome((SIDE,)), True),
    (
        "condition by reason alone",
        CategoryRule(conditions=frozenset({"Evicted"})),
        RunOutcome((ContainerResult(1, reason="Evicted"),)),
        True,
    ),
    ("condition by the engine", CategoryRule(conditions=OOM), RunOutcome((MAIN,), OOM), True),
    (
        "condition of another container",
        CategoryRule(conditions=OOM, container_name="main"),
        RunOutcome((SIDE, MAIN)),
        False,
    ),
    (
        "condition of the pod, container named",
        CategoryRule(conditions=frozenset({"Evicted"}), container_name="main"),
        RunOutcome((), frozenset({"Evicted"})),
        True,
    ),
    ("exit code of any", CategoryRule(exit_codes=codes(1)), RunOutcome((SIDE, MAIN)), True),
    ("exit code of init", CategoryRule(exit_codes=codes(1)), RunOutcome((ContainerResult(1, "i", init=True),)), True),
    (
        "exit code of the named",
        CategoryRule(exit_codes=codes(137), container_name="main"),
        RunOutcome((SIDE, MAIN)),
        False,
    ),
    ("message", CategoryRule(termination_message="failure$"), RunOutcome((MAIN,)), True),
    (
        "message of one that ended well",
        CategoryRule(termination_message="success"),
        RunOutcome((ContainerResult(0, message="success"), MAIN)),
        False,
    ),
    (
        "message is not the platform's",
        CategoryRule(termination_message="manifest"),
        RunOutcome(message="manifest"),
        False,
    ),
    ("log", CategoryRule(log="Xid 79"), RunOutcome((MAIN,), log_tail=("a", "NVRM: Xid 79: gone")), True),
    ("log, miss", CategoryRule(log="Xid 79"), RunOutcome((MAIN,), log_tail=("a", "")), False),
    ("platform's message", CategoryRule(pod_error="manifest"), RunOutcome(message="no match in manifest"), True),
    ("empty platform's message", CategoryRule(pod_error=".*"), RunOutcome(), False),
    ("event", CategoryRule(pod_event="gpu", pod_event_type="Warning"), RunOutcome(events=(WARNING,)), True),
    (
        "event of another type",
        CategoryRule(pod_event=".*", pod_event_type="Normal"),
        RunOutcome(events=(WARNING,)),
        False,
    ),
    (
        "event of another reason",
        CategoryRule(pod_event=".*", pod_event_type="Warning", pod_event_reason="x"),
        RunOutcome(events=(WARNING,)),
        False,
    ),
    ("no event", CategoryRule(pod_event=".*", pod_event_type="Warning"), RunOutcome((MAIN,)), False),
    ("all must hold", CategoryRule(exit_codes=codes(1), log="x"), RunOutcome((MAIN,), log_tail=("y",)), False),
]


@pytest.mark.parametrize(("rule", "outcome", "expected"), [pytest.param(*row[1:], id=row[0]) for row in TABLE])
def test_a_category_rule_matches(rule: CategoryRule, outcome: RunOutcome, *, expected: bool) -> None:
    assert matched(rule, outcome) is expected


_WORDS = st.sampled_from(["OOMKilled", "Evicted", "AppError", "Error"])
_RULES = st.builds(
    CategoryRule,
    conditions=st.none() | st.frozensets(_WORDS, min_size=1),
    container_name=st.sampled_from([None, "main", "side"]),
    exit_codes=st.sampled_from([None, codes(1), codes(137)]),
    log=st.sampled_from([None, "a", ".*"]),
)
_OUTCOMES = st.builds(
    RunOutcome,
    st.lists(
        st.builds(ContainerResult, st.sampled_from([0, 1, 137]), st.sampled_from(["main", "side"]), reason=_WORDS),
        max_size=2,
    ).map(tuple),
    st.frozensets(_WORDS),
    log_tail=st.lists(st.sampled_from(["", "a", "b"]), max_size=2).map(tuple),
    error_line=st.sampled_from(["", "a"]),
)


@given(st.lists(_RULES, min_size=1, max_size=4), _OUTCOMES)
def test_what_rules_a_rule_out_early_never_changes_which_one_matches(
    rules: list[CategoryRule], outcome: RunOutcome
) -> None:
    listed = [FailureCategory(str(index), (rule,)) for index, rule in enumerate(rules)]
    compiled = CompiledCategories.compile(listed, built_in=listed)
    every = tuple(evolve(rule, conditions=None, of_output=False) for rule in compiled.rules)
    failure = classify(outcome)
    assert compiled.match(failure, outcome) == evolve(compiled, rules=every).match(failure, outcome)


def test_the_first_category_by_precedence_then_name_wins() -> None:
    rule = CategoryRule(exit_codes=codes(1), subcategory="s")
    categories = [FailureCategory("b", (rule,), 1), FailureCategory("z", (rule,), 0), FailureCategory("c", (rule,), 0)]
    compiled = CompiledCategories.compile(categories)
    outcome = RunOutcome((MAIN,))
    assert compiled.match(classify(outcome), outcome).category == "c"


def test_a_rules_hint_beats_its_categorys_and_the_pod_action_is_kept() -> None:
    rules = (CategoryRule(exit_codes=codes(2)), CategoryRule(exit_codes=codes(1), hint="rule's"))
    compiled = CompiledCategories.compile([FailureCategory("c", rules, hint="category's", pod_action="Delete")])
    one, two = RunOutcome((MAIN,)), RunOutcome((ContainerResult(2),))
    assert compiled.match(classify(one), one) == CategoryMatch("c", "", "rule's", "Delete")
    assert compiled.match(classify(two), two) == CategoryMatch("c", "", "category's", "Delete")


def test_what_matches_nothing_gets_the_default() -> None:
    compiled = CompiledCategories.compile([], default_category="uncategorized", default_subcategory="unknown")
    outcome = RunOutcome((MAIN,))
    assert compiled.match(classify(outcome), outcome) == CategoryMatch("uncategorized", "unknown")
