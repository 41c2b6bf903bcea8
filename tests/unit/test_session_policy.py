"""Retry policies of sessions: fields, bounds, partial documents and precedence; cases are named by their ids."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.compiled.codec import dump_spec, load_as
from holdfast.domain.policy.model import JitterMode
from holdfast.domain.sessions.policy import (
    BackoffStrategy,
    RetryEligibleCause,
    SessionRetryPolicy,
    document,
    effective,
    merged,
    partial,
)
from holdfast.errors import InvalidPolicy, Problem

FIELDS = (
    "max_retries", "retry_delay", "backoff", "backoff_multiplier", "max_retry_delay", "jitter", "jitter_ratio",
    "eligible_causes", "emit_retry_events",
)  # fmt: skip
NUMBERS = ("max_retries", "retry_delay", "backoff_multiplier", "max_retry_delay", "jitter_ratio")
CAUSES = (
    "agent_transient", "scheduler_timeout", "image_pull_failure", "kernel_nonzero_exit", "oom_killed", "unknown",
)  # fmt: skip
DEFAULTS: dict[str, Any] = {
    "max_retries": 0, "retry_delay": 60.0, "backoff": "fixed", "backoff_multiplier": 2.0, "max_retry_delay": 3600.0,
    "jitter": "deterministic", "jitter_ratio": 0.25, "eligible_causes": sorted(CAUSES), "emit_retry_events": True,
}  # fmt: skip
EVERY_FIELD: dict[str, Any] = {
    "max_retries": 7, "retry_delay": 1.5, "backoff": "exponential", "backoff_multiplier": 0.5, "max_retry_delay": None,
    "jitter": "random", "jitter_ratio": 1.0, "eligible_causes": ["oom_killed", "agent_transient"],
    "emit_retry_events": False,
}  # fmt: skip
POSITIVE = st.floats(0, 1e300, exclude_min=True)
POLICIES = st.builds(
    SessionRetryPolicy,
    st.integers(0, 1000),
    POSITIVE,
    st.sampled_from(BackoffStrategy),
    POSITIVE,
    st.none() | POSITIVE,
    st.sampled_from(JitterMode),
    st.floats(0, 1),
    st.frozensets(st.sampled_from(RetryEligibleCause)),
    st.booleans(),
)
LAYERS = st.builds(
    lambda policy, names: {name: value for name, value in document(policy).items() if name in names},
    POLICIES,
    st.sets(st.sampled_from(FIELDS)),
)


def problems_of(wrong: object, path: str = "") -> tuple[Problem, ...]:
    with pytest.raises(InvalidPolicy) as caught:
        partial(wrong, path)
    return caught.value.problems


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param({}, {}, id="RV-001"),
        pytest.param({"jitter_ratio": 0}, {"jitter_ratio": 0.0}, id="RV-004-least"),
        pytest.param({"jitter_ratio": 1}, {"jitter_ratio": 1.0}, id="RV-004-most"),
        pytest.param({"backoff_multiplier": 0.5}, {"backoff_multiplier": 0.5}, id="RV-005"),
        pytest.param({"max_retry_delay": None}, {"max_retry_delay": None}, id="RV-006"),
        pytest.param({"max_retries": 0}, {"max_retries": 0}, id="no-retries"),
        pytest.param({"max_retries": 1000.0}, {"max_retries": 1000}, id="most-retries"),
        pytest.param({"eligible_causes": []}, {"eligible_causes": []}, id="never"),
        pytest.param(
            {"eligible_causes": ["unknown", "oom_killed", "unknown"]},
            {"eligible_causes": ["oom_killed", "unknown"]},
            id="causes-sorted-once",
        ),
        pytest.param(
            {"eligible_causes": RetryEligibleCause.defaults()}, {"eligible_causes": sorted(CAUSES)}, id="causes-as-set"
        ),
    ],
)
def test_a_partial_document_keeps_what_it_sets_and_nothing_else(
    value: dict[str, Any], expected: dict[str, Any]
) -> None:
    fields = partial(value)
    assert fields == expected
    assert json.loads(json.dumps(fields)) == expected
    assert [type(field) for field in fields.values()] == [type(field) for field in expected.values()]


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        pytest.param("retry_delay", 0, "a number of seconds greater than 0", id="RV-003-zero"),
        pytest.param("retry_delay", -5, "a number of seconds greater than 0", id="RV-003-negative"),
        pytest.param("jitter_ratio", -0.01, "a number from 0 to 1", id="RV-004-below"),
        pytest.param("jitter_ratio", 1.01, "a number from 0 to 1", id="RV-004-above"),
        pytest.param("backoff_multiplier", 0, "a number greater than 0", id="RV-005"),
        pytest.param("max_retry_delay", 0, "null", id="RV-007"),
        pytest.param("max_retries", -1, "a whole number from 0 to 1000", id="negative-retries"),
        pytest.param("max_retries", 1001, "a whole number from 0 to 1000", id="too-many-retries"),
        pytest.param("max_retries", 1.5, "a whole number from 0 to 1000", id="half-a-retry"),
        pytest.param("max_retries", "3", "a whole number from 0 to 1000", id="text"),
        pytest.param("backoff", "linear", "exponential", id="backoff"),
        pytest.param("backoff", ["fixed"], "fixed", id="backoff-list"),
        pytest.param("jitter", "some", "deterministic", id="jitter"),
        pytest.param("emit_retry_events", 1, "true", id="one-is-no-boolean"),
        pytest.param("eligible_causes", "unknown", f"a list of any of {', '.join(CAUSES)}", id="text-as-causes"),
        pytest.param("eligible_causes", ["unknown"] * 101, f"a list of any of {', '.join(CAUSES)}", id="many-causes"),
    ],
)
def test_a_value_that_is_not_allowed_is_refused_with_what_is(name: str, value: object, allowed: str) -> None:
    (problem,) = problems_of({name: value}, "retry_policy")
    assert problem.path == f"retry_policy.{name}"
    assert allowed in problem.allowed


@pytest.mark.parametrize(
    "name", ["max_retries", "retry_delay", "backoff_multiplier", "max_retry_delay", "jitter_ratio"]
)
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, True, False, 10**400, "1", [], {}])
def test_only_finite_numbers_are_numbers(name: str, value: object) -> None:
    assert [problem.path for problem in problems_of({name: value})] == [name]


@pytest.mark.parametrize("name", [name for name in FIELDS if name != "max_retry_delay"])
def test_null_is_a_value_of_one_field_only(name: str) -> None:
    (problem,) = problems_of({name: None})
    assert (problem.path, problem.hint) == (name, "leave it out to inherit it")
    assert problem.message == "null is not allowed"


@pytest.mark.parametrize(
    ("cause", "message", "hint"),
    [
        ("user_cancelled", '"user_cancelled" is never retried, whatever a policy says', "remove it"),
        ("validation_error", '"validation_error" is never retried, whatever a policy says', "remove it"),
        ("quota_exceeded", '"quota_exceeded" is never retried, whatever a policy says', "remove it"),
        ("execution_timeout", 'unknown cause "execution_timeout"', "it counts as unknown"),
        ("stalled", 'unknown cause "stalled"', "it counts as unknown"),
        ("oom_kiled", 'unknown cause "oom_kiled"', "did you mean oom_killed?"),
        (3, "unknown cause 3", None),
    ],
)
def test_a_cause_that_cannot_be_named_is_refused_at_its_place(cause: object, message: str, hint: str | None) -> None:
    (problem,) = problems_of({"eligible_causes": ["unknown", cause]}, "spec.retry_policy")
    assert problem == Problem("spec.retry_policy.eligible_causes[1]", message, CAUSES, hint)


def test_all_problems_are_reported_together() -> None:
    wrong = {"max_retrys": 1, "retry_delay": 0, "jitter": None, "eligible_causes": ["x", "user_cancelled"]}
    assert {problem.path: problem.hint for problem in problems_of(wrong, "p")} == {
        "p.retry_delay": None,
        "p.jitter": "leave it out to inherit it",
        "p.eligible_causes[0]": None,
        "p.eligible_causes[1]": "remove it",
        "p.max_retrys": "did you mean max_retries?",
    }


def test_unknown_fields_are_bounded_in_number_and_values_in_length() -> None:
    problems = problems_of({f"field{i}": i for i in range(1000)})
    assert len(problems) == 21
    assert problems[-1].message == "has 980 more unknown fields"
    (problem,) = problems_of({"backoff": "x" * 10_000})
    assert len(problem.message) < 120


@pytest.mark.parametrize("value", [None, [], "max_retries", 3])
def test_a_document_is_an_object(value: object) -> None:
    (problem,) = problems_of(value, "retry_policy")
    assert (problem.path, problem.allowed) == ("retry_policy", FIELDS)


def test_a_policy_without_documents_has_the_defaults() -> None:
    assert effective() == effective({}, {}) == SessionRetryPolicy()
    assert document(effective()) == DEFAULTS


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        pytest.param([], {}, id="RM-001"),
        pytest.param(
            [{}, {"max_retries": 1}, {}, {"max_retries": 3, "retry_delay": 10}],
            {"max_retries": 1, "retry_delay": 10.0},
            id="RM-003",
        ),
        pytest.param([{"max_retries": 0}, {"max_retries": 5}], {"max_retries": 0}, id="RM-005"),
        pytest.param([{"max_retry_delay": None}, {"max_retry_delay": 600}], {"max_retry_delay": None}, id="RM-006"),
        pytest.param(
            [{"eligible_causes": ["oom_killed"]}, {"eligible_causes": ["agent_transient"]}],
            {"eligible_causes": ["oom_killed"]},
            id="RM-007",
        ),
        pytest.param(
            [{"retry_delay": 1}, {"retry_delay": 2}, {"retry_delay": 3}, {"retry_delay": 4}],
            {"retry_delay": 1.0},
            id="session",
        ),
        pytest.param(
            [{}, {"retry_delay": 2}, {"retry_delay": 3}, {"retry_delay": 4}], {"retry_delay": 2.0}, id="project"
        ),
        pytest.param([{}, {}, {"retry_delay": 3}, {"retry_delay": 4}], {"retry_delay": 3.0}, id="domain"),
        pytest.param([{}, {}, {}, {"retry_delay": 4}], {"retry_delay": 4.0}, id="cluster"),
    ],
)
def test_the_most_specific_document_decides_each_field(layers: list[dict[str, Any]], expected: dict[str, Any]) -> None:
    assert document(effective(*layers)) == {**DEFAULTS, **expected}


def test_what_was_merged_is_validated_as_a_whole() -> None:
    with pytest.raises(InvalidPolicy) as caught:
        effective({"max_retries": 1}, {"retry_delay": 0}, {"colour": "green"})
    assert {problem.path for problem in caught.value.problems} == {"retry_policy.retry_delay", "retry_policy.colour"}


def test_a_policy_with_every_field_set_is_read_back_equal() -> None:
    policy = effective(EVERY_FIELD)
    assert document(policy) == {**EVERY_FIELD, "eligible_causes": ["agent_transient", "oom_killed"]}
    assert policy.eligible_causes == {RetryEligibleCause.OOM_KILLED, RetryEligibleCause.AGENT_TRANSIENT}
    assert policy.backoff is BackoffStrategy.EXPONENTIAL
    assert policy.jitter is JitterMode.RANDOM


@given(POLICIES)
def test_every_policy_is_read_back_equal_as_a_document_and_as_it_is_stored(policy: SessionRetryPolicy) -> None:
    assert effective(json.loads(json.dumps(document(policy)))) == policy
    assert load_as(SessionRetryPolicy, dump_spec(policy)) == policy


@given(LAYERS, LAYERS, LAYERS)
def test_documents_may_be_merged_in_any_grouping(
    first: dict[str, Any], second: dict[str, Any], third: dict[str, Any]
) -> None:
    assert merged(first, second, third) == merged(merged(first, second), third) == merged(first, merged(second, third))
    assert partial(merged(first, second, third)) == merged(first, second, third)
