"""How long the retry of a session waits: the document's formula and its vectors, named by the ids of their cases."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import pairwise
from random import Random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.compiled.codec import dump_entry, load_entry
from holdfast.domain.failure import Cause, Failure
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.compiled import PolicySet
from holdfast.domain.policy.decide import decide
from holdfast.domain.policy.model import Action, Decision, RetryHistory, RetryPolicy, RetrySettings
from holdfast.domain.sessions.policy import compiled, effective
from tests.backendai import CASES

FAILURE = Failure(Cause.KERNEL_NONZERO_EXIT, frozenset({"AppError"}))
FIRST = "00000000-0000-0000-0000-000000000001"
NUMBERS = re.compile(r"\d+(?:\.\d+)?(?:,\d+(?:\.\d+)?)*")


def decided(document: dict[str, Any], session: str, retry_count: int, draw: float = 0.0) -> Decision:
    """Decide about the failure of a session; the policy allows any number of retries."""
    policies = PolicySet.compile([compiled(effective(document, {"max_retries": 1000}))])
    counters = (("session/eligible", retry_count),)
    history = RetryHistory(session, retry_count + 1, counters, retry_count)
    return decide(policies, FAILURE, history, RetrySettings(), draw=draw, explain=True)


def delay_s(document: dict[str, Any], session: str = FIRST, retry_count: int = 0, draw: float = 0.0) -> float:
    return decided(document, session, retry_count, draw).delay_s


def numbers_of(text: str, after: str = "") -> list[float]:
    """Return the numbers that a text of a case lists after some words."""
    listed = NUMBERS.search(text, text.index(after) + len(after))
    assert listed is not None
    return [float(number) for number in listed[0].split(",")]


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("RB-001", {"backoff": "fixed", "retry_delay": 60}),
        ("RB-004", {"backoff": "exponential", "retry_delay": 60, "backoff_multiplier": 2, "max_retry_delay": None}),
        ("RB-006", {"backoff": "fixed", "retry_delay": 7200, "max_retry_delay": 3600}),
        ("RB-007", {"backoff": "exponential", "retry_delay": 1, "backoff_multiplier": 1e6, "max_retry_delay": 3600}),
        ("RB-009", {"backoff": "exponential", "retry_delay": 100, "backoff_multiplier": 0.5}),
    ],
)
def test_a_delay_without_jitter_is_that_of_the_formula(name: str, document: dict[str, Any]) -> None:
    case = CASES[name]
    counts = [int(count) for count in numbers_of(case["when"], "retry_count=")]
    delays = [delay_s({**document, "jitter": "none"}, retry_count=count) for count in counts]
    assert delays == numbers_of(case["expect"])


@pytest.mark.parametrize("count", [0, 1, 5, 999])
def test_a_delay_without_jitter_stays_within_its_ceiling_and_ignores_what_it_does_not_use(count: int) -> None:
    none = {"jitter": "none", "retry_delay": 50.0}
    assert delay_s({**none, "backoff": "exponential", "backoff_multiplier": 1}, retry_count=count) == 50.0  # RB-008
    assert delay_s({**none, "retry_delay": 100_000, "max_retry_delay": None}, retry_count=count) == 86_400.0  # RB-012
    assert delay_s({**none, "retry_delay": 100_000, "max_retry_delay": 172_800}, retry_count=count) == 86_400.0
    assert delay_s({**none, "jitter_ratio": 0.9}, retry_count=count, draw=0.9) == 50.0  # RJ-001
    assert delay_s({**none, "jitter": "deterministic", "jitter_ratio": 0}, retry_count=count) == 50.0  # RJ-002


def test_a_chain_waits_longer_and_longer_until_its_retries_are_spent() -> None:
    case = CASES["RB-011"]
    document = {"max_retries": 3, "backoff": "exponential", "retry_delay": 60, "jitter": "none"}
    decisions = [decided(document, FIRST, count) for count in range(4)]
    expected = [float(text) for text in re.findall(r"\+(\d+)", case["expect"])]
    assert [decision.delay_s for decision in decisions[:3]] == expected
    assert [decision.action for decision in decisions] == [Action.RETRY] * 3 + [Action.FAIL]
    assert decisions[3].code is DecisionCode.POLICY_LIMIT


@pytest.mark.parametrize(
    ("name", "backoff"), [("RJ-020", "fixed"), ("RJ-021", "fixed"), ("RJ-023", "fixed"), ("RJ-025", "exponential")]
)
def test_deterministic_jitter_is_that_of_the_vectors(name: str, backoff: str) -> None:
    case = CASES[name]
    session = re.search(r"session_id=([0-9a-f-]{36})", case["given"])
    assert session is not None
    (count,) = numbers_of(case["given"], "retry_count=")
    document = {"backoff": backoff, "retry_delay": 60, "jitter_ratio": 0.25, "max_retry_delay": 3600}
    assert [delay_s(document, session[1], int(count))] == pytest.approx(numbers_of(case["expect"]), abs=1e-9)


@pytest.mark.parametrize(
    ("session", "count", "fixed", "exponential"),
    [
        (FIRST, 2, 68.520, 293.520),
        (FIRST, 3, 65.548, 485.548),
        ("11111111-2222-3333-4444-555555555555", 0, 61.215, 61.215),
        ("11111111-2222-3333-4444-555555555555", 3, 74.604, 509.604),
    ],
)
def test_the_seed_is_the_session_and_its_count_whatever_the_strategy(
    session: str, count: int, fixed: float, exponential: float
) -> None:
    assert delay_s({}, session, count) == pytest.approx(fixed, abs=1e-9)
    assert delay_s({"backoff": "exponential"}, session, count) == pytest.approx(exponential, abs=1e-9)


IN_ANOTHER_PROCESS = """
from tests.unit.test_session_delay import FIRST, delay_s
print([delay_s({"backoff": "exponential"}, FIRST, count) for count in range(100)])
"""


def test_deterministic_jitter_is_the_same_in_another_process() -> None:
    """RJ-004."""
    command, environment = [sys.executable, "-c", IN_ANOTHER_PROCESS], {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=60)
    expected = [delay_s({"backoff": "exponential"}, FIRST, count, draw=0.5) for count in range(100)]
    assert done.stdout.strip() == str(expected)


def sessions(count: int) -> list[str]:
    numbers = Random(7)  # noqa: S311 - not for secrets
    return [str(UUID(int=numbers.getrandbits(128))) for _ in range(count)]


def test_deterministic_jitter_spreads_sessions_and_never_shortens_a_delay() -> None:
    """RJ-005 and RD-012."""
    delays = [delay_s({"retry_delay": 60, "jitter_ratio": 0.25}, session) for session in sessions(1000)]
    assert all(60 <= delay < 75 for delay in delays)
    assert len(set(delays)) >= 500


def test_random_jitter_is_uniform() -> None:
    """RJ-006."""
    numbers, document = Random(7), {"retry_delay": 60, "jitter": "random", "jitter_ratio": 0.25}  # noqa: S311 - as above
    delays = [delay_s(document, draw=numbers.random()) for _ in range(10_000)]
    assert all(60 <= delay < 75 for delay in delays)
    assert sum(delays) / len(delays) == pytest.approx(67.5, abs=0.5)


@pytest.mark.parametrize("jitter", ["none", "deterministic", "random"])
def test_a_delay_that_has_reached_the_maximum_has_no_jitter(jitter: str) -> None:
    """RJ-007."""
    document = {"backoff": "exponential", "retry_delay": 3600, "max_retry_delay": 3600, "jitter": jitter}
    assert {delay_s(document, session, 0, draw=0.5) for session in sessions(50)} == {3600.0}


def test_jitter_is_cut_off_at_the_maximum() -> None:
    """RJ-008."""
    delays = [delay_s({"retry_delay": 3500, "max_retry_delay": 3600}, session) for session in sessions(1000)]
    assert all(3500 <= delay <= 3600 for delay in delays)
    assert 3600 in delays
    assert any(delay < 3600 for delay in delays)


POSITIVE = st.floats(1e-3, 1e6)
DOCUMENTS = st.fixed_dictionaries(
    {
        "retry_delay": POSITIVE,
        "backoff": st.sampled_from(["fixed", "exponential"]),
        "backoff_multiplier": POSITIVE,
        "max_retry_delay": st.none() | POSITIVE,
        "jitter": st.sampled_from(["none", "deterministic", "random"]),
        "jitter_ratio": st.floats(0, 1),
    }
)


@given(DOCUMENTS, st.uuids().map(str), st.integers(0, 999), st.floats(0, 1, exclude_max=True))
def test_every_delay_is_the_base_or_more_and_the_cap_or_less(
    document: dict[str, Any], session: str, count: int, draw: float
) -> None:
    cap = min(document["max_retry_delay"] or 86_400.0, 86_400.0)
    base = delay_s({**document, "jitter": "none"}, session, count)
    delay = delay_s(document, session, count, draw)
    assert base <= delay <= cap
    assert delay <= base * (1 + document["jitter_ratio"]) + 0.001
    assert delay == delay_s(document, session, count, draw)
    if document["backoff"] == "fixed":
        assert base == min(document["retry_delay"], cap)
    elif base < cap:
        assert base == pytest.approx(document["retry_delay"] * document["backoff_multiplier"] ** count)


@given(DOCUMENTS)
def test_delays_grow_with_a_multiplier_above_one_and_shrink_below(document: dict[str, Any]) -> None:
    delays = [delay_s({**document, "backoff": "exponential", "jitter": "none"}, retry_count=n) for n in range(8)]
    grows = document["backoff_multiplier"] >= 1
    assert all(before <= after if grows else before >= after for before, after in pairwise(delays))


@pytest.mark.parametrize(
    ("document", "count", "words"),
    [
        ({}, 0, "retry_delay 1m, plus deterministic jitter of up to 25%"),
        ({}, 9, "retry_delay 1m, plus deterministic jitter of up to 25%"),
        ({"jitter": "none"}, 0, "retry_delay 1m"),
        ({"retry_delay": 3000}, 0, "retry_delay 50m, plus deterministic jitter of up to 25%, at most 1h"),
        ({"retry_delay": 3000, "jitter": "none"}, 0, "retry_delay 50m"),
        ({"backoff": "exponential", "jitter": "none"}, 5, "1m x 2^5"),
        ({"backoff": "exponential", "jitter": "none"}, 6, "1m x 2^6, at most 1h"),
        ({"backoff": "exponential", "jitter": "random"}, 2, "1m x 2^2, plus random jitter of up to 25%"),
        ({"max_retry_delay": None, "retry_delay": 1e5, "jitter": "none"}, 0, "retry_delay 1d3h46m40s, at most 1d"),
    ],
)
def test_a_delay_is_explained_by_the_fields_it_is_made_of(document: dict[str, Any], count: int, words: str) -> None:
    assert decided(document, FIRST, count).delay_because == words


def test_the_formula_is_kept_where_a_policy_is_stored() -> None:
    policy = compiled(effective({"max_retries": 2}))
    assert load_entry(RetryPolicy, dump_entry(policy)) == policy
    (rule,) = policy.rules
    assert rule.backoff is not None
    assert rule.backoff.of_session
