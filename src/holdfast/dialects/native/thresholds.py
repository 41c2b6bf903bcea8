"""Reads the thresholds of memory and disk for evictions, from one line of a setting."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.domain.placement.pressure import Threshold
from holdfast.domain.record import evolve
from holdfast.domain.shortage import Shortage
from holdfast.domain.units import parse_duration, parse_memory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_EVICTS_FOR = {shortage.value: shortage for shortage in (Shortage.MEMORY, Shortage.DISK, Shortage.INODES)}
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)%")
_WHOLE = 100.0


def read_thresholds(text: str) -> tuple[Threshold, ...]:
    """Read thresholds: ``memory=5%,disk=2Gi,memory=10%:2m``; one with a time is soft.

    Raises:
        ValueError: The text is invalid; the message says why.
    """
    thresholds: dict[tuple[Shortage, bool], Threshold] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        of, amount = _pair(part, "memory=5%,disk=2Gi,memory=10%:2m")
        least, colon, time = amount.partition(":")
        for_s = parse_duration(time) if colon else 0.0
        if colon and not for_s:
            msg = f"{part!r}: a time of 0 is none; leave it out"
            raise ValueError(msg)
        threshold = evolve(_amount(of, least.strip(), part), for_s=for_s)
        if (of, threshold.hard) in thresholds:
            msg = f"{of} is given twice {'without' if threshold.hard else 'with'} a time"
            raise ValueError(msg)
        thresholds[of, threshold.hard] = threshold
    return tuple(thresholds.values())


def read_reclaim(text: str) -> Mapping[Shortage, int]:
    """Read how much more must be available before a threshold counts as met again: ``memory=500Mi,disk=1Gi``.

    Raises:
        ValueError: The text is invalid; the message says why.
    """
    amounts: dict[Shortage, int] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        of, amount = _pair(part, "memory=500Mi,disk=1Gi")
        if of in amounts:
            msg = f"{of} is given twice"
            raise ValueError(msg)
        amounts[of] = parse_memory(amount)
    return amounts


def reclaiming(thresholds: Sequence[Threshold], reclaim: Mapping[Shortage, int]) -> tuple[Threshold, ...]:
    """Return thresholds that count as met again only once so much more is available."""
    return tuple(evolve(threshold, reclaim=reclaim.get(threshold.of, 0)) for threshold in thresholds)


def _pair(part: str, example: str) -> tuple[Shortage, str]:
    name, equals, amount = (piece.strip() for piece in part.partition("="))
    if not equals or not amount:
        msg = f"{part!r} is not NAME=AMOUNT; write for example {example}"
        raise ValueError(msg)
    if name not in _EVICTS_FOR:
        msg = f"{name!r} is none of {', '.join(_EVICTS_FOR)}"
        raise ValueError(msg)
    return _EVICTS_FOR[name], amount


def _amount(of: Shortage, text: str, part: str) -> Threshold:
    percent = _PERCENT.fullmatch(text)
    if percent is not None:
        share = float(percent[1]) / _WHOLE
        if not 0.0 < share < 1.0:
            msg = f"{part!r} is out of range: percentages are between 0% and 100%"
            raise ValueError(msg)
        return Threshold(of, share=share)
    least = parse_memory(text)
    if not least:
        msg = f"{part!r}: 0 is always available; leave it out"
        raise ValueError(msg)
    return Threshold(of, least=least)
