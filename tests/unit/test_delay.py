"""How long a retry waits and when it is due, against vectors worked out by hand."""

from __future__ import annotations

import pytest

from holdfast.domain.policy.decide import LONGEST_DELAY_S, delay_in_words, delay_s, retry_at
from holdfast.domain.policy.model import Backoff, JitterMode

FIRST = "00000000-0000-0000-0000-000000000001"
SECOND = "11111111-2222-3333-4444-555555555555"


@pytest.mark.parametrize(
    ("backoff", "expected"),
    [
        (Backoff(30.0, 600.0, 3.0), [30, 90, 270, 600, 600]),
        (Backoff(1.0, 60.0, 2.0), [1, 2, 4, 8, 16]),
        (Backoff(0.0, 600.0, 2.0), [0, 0, 0, 0, 0]),
        (Backoff(5.0, 600.0, 1.0), [5, 5, 5, 5, 5]),
        (Backoff(1.0, None, 10.0), [1, 10, 100, 1000, 10000]),
        (Backoff(9.0, 4.0, 2.0), [4, 4, 4, 4, 4]),
    ],
)
def test_delays_grow_up_to_the_maximum(backoff: Backoff, expected: list[float]) -> None:
    assert [delay_s(backoff, n, seed="job") for n in range(1, 6)] == expected


@pytest.mark.parametrize("n", [2_000, 10**9, 10**30])
def test_no_number_of_retries_overflows(n: int) -> None:
    assert delay_s(Backoff(1.0, 600.0, 2.0), n, seed="job") == 600.0
    assert delay_s(Backoff(1.0, None, 2.0), n, seed="job") == LONGEST_DELAY_S


def test_deterministic_jitter_is_made_of_the_seed_and_the_retrys_number() -> None:
    backoff = Backoff(60.0, 3600.0, 2.0, JitterMode.DETERMINISTIC, 0.25)
    assert delay_s(backoff, 1, seed=FIRST) == pytest.approx(69.774)
    assert delay_s(backoff, 1, seed=FIRST, draw=0.9) == delay_s(backoff, 1, seed=FIRST)
    assert len({delay_s(backoff, 1, seed=f"job-{i}") for i in range(1000)}) >= 500


@pytest.mark.parametrize(("draw", "expected"), [(0.0, 60.0), (0.5, 67.5), (0.999, 74.985)])
def test_random_jitter_adds_up_to_its_ratio(draw: float, expected: float) -> None:
    backoff = Backoff(60.0, 3600.0, 2.0, JitterMode.RANDOM, 0.25)
    assert delay_s(backoff, 1, seed="job", draw=draw) == pytest.approx(expected)


@pytest.mark.parametrize("jitter", list(JitterMode))
def test_jitter_never_exceeds_the_maximum_and_needs_a_delay_to_spread(jitter: JitterMode) -> None:
    assert delay_s(Backoff(60.0, 61.0, 2.0, jitter, 1.0), 5, seed="job", draw=0.9) <= 61.0
    assert delay_s(Backoff(0.0, 61.0, 2.0, jitter, 1.0), 5, seed="job", draw=0.9) == 0.0
    assert delay_s(Backoff(60.0, 90.0, 1.0, jitter, 0.0), 1, seed="job", draw=0.9) == 60.0


@pytest.mark.parametrize("jitter", [JitterMode.DETERMINISTIC, JitterMode.RANDOM])
def test_delays_that_have_reached_their_maximum_are_still_spread(jitter: JitterMode) -> None:
    backoff = Backoff(1.0, 60.0, 2.0, jitter, 0.25)
    delays = [delay_s(backoff, 40, seed=f"job-{i}", draw=i / 1000) for i in range(1000)]
    assert len(set(delays)) > 900
    assert 48.0 <= min(delays) < 49.0
    assert 59.0 < max(delays) <= 60.0


@pytest.mark.parametrize(
    ("backoff_s", "confirmed", "grace_s", "due"),
    [
        (10.0, None, 30.0, 130.0),
        (0.0, 104.0, 30.0, 104.0),
        (10.0, 104.0, 30.0, 110.0),
        (60.0, 104.0, 30.0, 160.0),
        (0.0, 500.0, 30.0, 130.0),
        (0.0, 100.0, 30.0, 100.0),
    ],
)
def test_an_early_confirmation_shortens_the_grace_and_never_the_backoff(
    backoff_s: float, confirmed: float | None, grace_s: float, due: float
) -> None:
    assert retry_at(100.0, backoff_s, confirmed_stopped_at=confirmed, grace_s=grace_s) == due


@pytest.mark.parametrize(
    ("backoff", "n", "words"),
    [
        (Backoff(0.0), 3, "initialDelay 0s"),
        (Backoff(1.0), 1, "initialDelay 1s"),
        (Backoff(1.0, None), 3, "1s x 2^2"),
        (Backoff(1.0, 3.0), 3, "1s x 2^2, at most 3s"),
        (Backoff(1.0, 3.0), 10**9, "1s x 2^999999999, at most 3s"),
        (Backoff(5.0, 60.0, 1.0), 3, "initialDelay 5s"),
        (Backoff(4.0, 60.0, 2.0, JitterMode.RANDOM), 1, "initialDelay 4s, plus random jitter of up to 25%"),
    ],
)
def test_a_delay_is_explained(backoff: Backoff, n: int, words: str) -> None:
    assert delay_in_words(backoff, n) == words
