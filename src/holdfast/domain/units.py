"""Reads and writes durations, memory sizes and CPU shares.

Inside Holdfast durations are seconds (float), memory is bytes (int) and CPU is millicores (int).
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_DURATION_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604_800.0}
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]i?|k)?B?")
_MEMORY_FACTOR = {
    "": 1,
    **{unit: 1000**power for power, unit in enumerate("KMGTP", 1)},
    **{f"{unit}i": 1024**power for power, unit in enumerate("KMGTP", 1)},
    "k": 1000,
}
_LARGEST_DURATION_S = 100 * 365 * 86400.0
_LARGEST_BYTES = 1 << 60
_LARGEST_MILLICORES = 1_000_000_000


def parse_duration(value: object) -> float:
    """Read a duration: ``90``, ``1.5`` (seconds), ``"90s"``, ``"1h30m"``, ``"250ms"``, ``"1d"``, ``"2w"``.

    Returns:
        Seconds, never negative.

    Raises:
        ValueError: Not a duration, negative, or longer than 100 years.
    """
    seconds = _duration_s(value)
    if not 0 <= seconds <= _LARGEST_DURATION_S:
        msg = f"{value!r} is out of range: durations run from 0 to 100 years"
        raise ValueError(msg)
    return seconds


def _duration_s(value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    if isinstance(value, str):
        text = value.strip()
        if re.fullmatch(r"\d+(\.\d+)?", text):
            return float(text)
        parts = _DURATION_PART.findall(text)
        if parts and "".join(number + unit for number, unit in parts) == text:
            return sum(float(number) * _DURATION_UNIT_S[unit] for number, unit in parts)
    msg = f"{value!r} is not a duration; write for example 30s, 5m, 1h30m or a number of seconds"
    raise ValueError(msg)


def format_duration(seconds: float) -> str:
    """Write a duration for people: ``0s``, ``250ms``, ``1.5s``, ``1h30m``."""
    if seconds < 1:
        return f"{round(seconds * 1000)}ms" if seconds else "0s"
    if seconds < _DURATION_UNIT_S["m"] and seconds != int(seconds):
        return f"{seconds:.1f}s"
    left, text = round(seconds), ""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            text += f"{count}{unit}"
    return text


def format_instant(at: float) -> str:
    """Write a time to the second: ``2026-01-02T03:04:05Z``."""
    return datetime.fromtimestamp(int(at), UTC).isoformat().replace("+00:00", "Z")


def parse_memory(value: object) -> int:
    """Read a memory size in bytes: ``512``, ``"512Mi"``, ``"2Gi"`` or ``"1.5G"``, but not ``"1e9"``.

    Raises:
        ValueError: Not a size, or larger than an exbibyte.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf:
        size = int(value)
    else:
        match = _MEMORY.fullmatch(value.strip()) if isinstance(value, str) else None
        if match is None:
            msg = f"{value!r} is not a memory size; write for example 512Mi, 2Gi or a number of bytes"
            raise ValueError(msg)
        size = int(Decimal(match[1]) * _MEMORY_FACTOR[match[2] or ""])
    if not 0 <= size <= _LARGEST_BYTES:
        msg = f"{value!r} is out of range: memory runs from 0 to 1Ei"
        raise ValueError(msg)
    return size


def format_memory(size: int) -> str:
    """Write bytes with the largest binary unit that keeps the number exact, else one decimal."""
    for power, unit in ((5, "Pi"), (4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki")):
        step = 1024**power
        if size >= step:
            return f"{size // step}{unit}" if size % step == 0 else _inexact_memory(size, power, unit)
    return str(size)


def _inexact_memory(size: int, power: int, unit: str) -> str:
    smaller = {"Ki": "", "Mi": "Ki", "Gi": "Mi", "Ti": "Gi", "Pi": "Ti"}[unit]
    step = 1024 ** (power - 1)
    return f"{size // step}{smaller}" if size % step == 0 else f"{size / 1024**power:.1f}{unit}"


def parse_cpu(value: object) -> int:
    """Read cpu in millicores: ``1``, ``0.5``, ``"500m"``, ``"2"``.

    Raises:
        ValueError: Not a cpu amount, negative, or finer than a millicore.
    """
    try:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise InvalidOperation  # noqa: TRY301 - one message for every way of being wrong
        text = str(value).strip()
        # Compared before it is multiplied or made an int: 1e900000 is short to write but huge as an int.
        number, in_one = (Decimal(text[:-1]), 1) if text.endswith("m") else (Decimal(text), 1000)
        inside = 0 <= number <= _LARGEST_MILLICORES
        millis = number * in_one if inside else Decimal(-1)
        exact = int(millis)
    except (InvalidOperation, ValueError, OverflowError):
        msg = f"{value!r} is not a cpu amount; write for example 2, 0.5 or 500m"
        raise ValueError(msg) from None
    if exact != millis or not 0 <= exact <= _LARGEST_MILLICORES:
        msg = f"{value!r} is out of range: cpu runs from 0 to 1000000 in steps of 0.001"
        raise ValueError(msg)
    return exact


def format_cpu(millis: int) -> str:
    """Write millicores as cores: ``2``, ``0.5``."""
    return f"{millis / 1000:g}"


_LARGEST_AMOUNT = 1 << 60
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]i?|k)?")


def parse_amount(value: object) -> int:
    """Read an amount of anything countable in thousandths: ``1``, ``0.5``, ``"20Gi"``, ``"1.5k"``.

    Raises:
        ValueError: Not an amount, finer than a thousandth, or too large.
    """
    text = str(value).strip() if isinstance(value, (int, float, str)) and not isinstance(value, bool) else ""
    match = _AMOUNT.fullmatch(text)
    if match is None:
        msg = f"{value!r} is not an amount; write for example 1, 0.5 or 20Gi"
        raise ValueError(msg)
    number = Decimal(match[1])
    if number > _LARGEST_AMOUNT or number * _MEMORY_FACTOR[match[2] or ""] > _LARGEST_AMOUNT:
        msg = f"{value!r} is out of range: amounts run from 0 to 1Ei"
        raise ValueError(msg)
    millis = number * _MEMORY_FACTOR[match[2] or ""] * 1000
    if millis != int(millis):
        msg = f"{value!r} is too fine: amounts are counted in steps of 0.001"
        raise ValueError(msg)
    return int(millis)


def format_amount(millis: int) -> str:
    """Write thousandths for people: ``1``, ``0.25``, ``20Gi``."""
    whole, rest = divmod(millis, 1000)
    if rest:
        return f"{Decimal(millis) / 1000:f}"
    return format_memory(whole) if whole >= _MEMORY_FACTOR["Mi"] and whole % _MEMORY_FACTOR["Ki"] == 0 else str(whole)
