"""Computes how long to wait before a retry and when it is due.

The curve is ``initial * multiplier^exponent``, capped, spread, and capped again.
"""

from __future__ import annotations

import math
from hashlib import sha1
from typing import TYPE_CHECKING

from holdfast.domain.policy.model import JitterMode
from holdfast.domain.units import format_duration

if TYPE_CHECKING:
    from holdfast.domain.policy.model import Backoff

LONGEST_DELAY_S = 100 * 365 * 86400.0
"""A hundred years: the cap of an uncapped back-off, so that a due time is always a date."""


def delay_s(backoff: Backoff, n: int, *, seed: str, draw: float = 0.0) -> float:
    """Compute the delay before the ``n``-th retry of a rule, the native and Armada's way.

    Args:
        backoff: The curve.
        n: Which retry of the rule this is, from 1.
        seed: What deterministic jitter is made of, together with ``n``; the job's id.
        draw: In [0, 1), for random jitter.

    Returns:
        Seconds, from 0 to the back-off's maximum.
    """
    cap = LONGEST_DELAY_S if backoff.max_s is None else min(backoff.max_s, LONGEST_DELAY_S)
    base = _base_s(backoff, n - 1, cap)
    if backoff.jitter is JitterMode.NONE or not base:
        return base
    # Leave room for the jitter below the maximum: delays that all reach it would be in step again.
    base = min(base, cap / (1 + backoff.jitter_ratio))
    return min(cap, _jittered(backoff, base, token=f"{seed}{n}", draw=draw))


def retry_at(failed_at: float, backoff_s: float, *, confirmed_stopped_at: float | None, grace_s: float) -> float:
    """Say when a retry is due: an early confirmation of the stop shortens the grace, never the back-off.

    Args:
        failed_at: When the attempt failed.
        backoff_s: The delay the policy asks for.
        confirmed_stopped_at: When all of its runs were known to have stopped; ``None`` if they are not.
        grace_s: How long a run may take to stop.

    Returns:
        The instant from which the next attempt may start.
    """
    graced = failed_at + grace_s
    stopped = graced if confirmed_stopped_at is None else min(confirmed_stopped_at, graced)
    return max(failed_at + backoff_s, stopped)


def delay_in_words(backoff: Backoff, n: int) -> str:
    """Explain the result of ``delay_s``: ``1s x 2^2, plus deterministic jitter of up to 10%``."""
    if backoff.initial_s <= 0 or n <= 1 or backoff.multiplier == 1:
        text = f"initialDelay {format_duration(backoff.initial_s)}"
    else:
        text = f"{format_duration(backoff.initial_s)} x {backoff.multiplier:g}^{n - 1}"
    if backoff.max_s is not None and _base_s(backoff, n - 1, math.inf) > backoff.max_s:
        text += f", at most {format_duration(backoff.max_s)}"
    if backoff.initial_s > 0 and backoff.jitter is not JitterMode.NONE:
        text += f", plus {backoff.jitter} jitter of up to {backoff.jitter_ratio:.0%}"
    return text


def _base_s(backoff: Backoff, exponent: int, cap: float) -> float:
    """Grow the initial delay, stopping at the cap; any exponent is safe."""
    if backoff.initial_s <= 0:
        return 0.0
    if exponent <= 0:
        return min(backoff.initial_s, cap)
    try:
        base = backoff.initial_s * math.pow(backoff.multiplier, exponent)
    except OverflowError:
        return cap
    return min(base, cap)


def _jittered(backoff: Backoff, base: float, *, token: str, draw: float) -> float:
    if backoff.jitter is JitterMode.DETERMINISTIC:
        span_ms = round(base * backoff.jitter_ratio * 1000)
        return base + (_number(token) % span_ms / 1000 if span_ms else 0.0)
    if backoff.jitter is JitterMode.RANDOM:
        return base * (1 + backoff.jitter_ratio * draw)
    return base


def _number(token: str) -> int:
    """Turn a text into a number, the same in every process: all 160 bits of its SHA-1, big-endian."""
    return int.from_bytes(sha1(token.encode(), usedforsecurity=False).digest(), "big")
