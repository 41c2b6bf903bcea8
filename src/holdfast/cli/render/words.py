"""How single facts read in tables and sentences: times, spans, endings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from holdfast.dialects.steering import CONTROLS, WRITTEN_OUT
from holdfast.domain.units import format_duration

Table = tuple[Sequence[str], Sequence[Sequence[str]]]
"""Columns and rows."""


_STEPS = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)(?=\s|$)")
_SHOWN = {**WRITTEN_OUT, **{code: f"\\x{code:02x}" for code in CONTROLS}}
"""Characters that control a terminal or the direction of writing, and their escapes."""


def printable(text: str) -> str:
    """Escape control characters: the output of programs must not control the terminal of its reader."""
    return text.translate(_SHOWN)


def cells(text: str) -> int:
    """Count the columns of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, width: int) -> str:
    """Shorten a text to the columns of a terminal, with an ellipsis for the rest."""
    if text.isascii():
        return text if len(text) <= width else text[: max(0, width - 1)] + "…"
    from rich.text import Text

    line = Text(text)
    line.truncate(width, overflow="ellipsis")
    return line.plain


def bar(text: str, width: int) -> str:
    """Draw a bar such as ``[###---]`` for a text that begins with ``step/total``; empty for any other."""
    match = _STEPS.match(text)
    total = float(match[2]) if match else 0.0
    if match is None or not total:
        return ""
    done = round(width * min(1.0, float(match[1]) / total))
    return f"[{'#' * done}{'-' * (width - done)}]"


def when(timestamp: str | None) -> str:
    """Write a time to the second, in UTC; empty when it is not known."""
    return f"{timestamp[:19]}Z" if timestamp else ""


def clock_time(timestamp: str, now_s: float) -> str:
    """Write a time in the local time zone: the time of day if it is today, else the date.

    Args:
        timestamp: The time, in ISO 8601.
        now_s: Seconds since the epoch, UTC.
    """
    at, now = datetime.fromisoformat(timestamp).astimezone(), datetime.fromtimestamp(now_s).astimezone()
    return at.strftime("%H:%M:%S" if at.date() == now.date() else "%b %d")


def span(start: str | None, end: str | None, now_s: float | None = None) -> str:
    """Write a duration, up to ``now_s`` if it has no end yet; empty if it is not known."""
    if not start or (not end and now_s is None):
        return ""
    began = datetime.fromisoformat(start).timestamp()
    if end:
        return format_duration(max(0.0, datetime.fromisoformat(end).timestamp() - began))
    return format_duration(max(0, int((now_s or 0.0) - began)))


def until(due: str, now_s: float) -> str:
    """Write the time until ``due`` as ``age`` does; zero if it has passed."""
    return _short(max(0, round(datetime.fromisoformat(due).timestamp() - now_s)))


def age(start: str, now_s: float) -> str:
    """Write how long ago something was as ``kubectl`` does: ``90s``, ``5m20s``, ``2h5m``, ``3d``.

    Args:
        start: The time, in ISO 8601.
        now_s: Seconds since the epoch, UTC.
    """
    return _short(max(0, int(now_s - datetime.fromisoformat(start).timestamp())))


def _short(seconds: int) -> str:
    size, rest_size = next((size, rest) for below, size, rest in _AGES if seconds < below)
    count, rest = divmod(seconds, size)
    also = rest // rest_size if rest_size else 0
    return f"{count}{_UNITS[size]}" + (f"{also}{_UNITS[rest_size]}" if also else "")


_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400
_UNITS = {1: "s", _MINUTE: "m", _HOUR: "h", _DAY: "d", _YEAR: "y"}
_AGES: tuple[tuple[float, int, int], ...] = (
    (2 * _MINUTE, 1, 0),
    (10 * _MINUTE, _MINUTE, 1),
    (3 * _HOUR, _MINUTE, 0),
    (8 * _HOUR, _HOUR, _MINUTE),
    (2 * _DAY, _HOUR, 0),
    (8 * _DAY, _DAY, _HOUR),
    (2 * _YEAR, _DAY, 0),
    (8 * _YEAR, _YEAR, _DAY),
    (float("inf"), _YEAR, 0),
)
"""Below how many seconds, in which unit, and which smaller one says the rest (0: none), as ``HumanDuration`` has it."""


def ending(exit_code: int | None, signal: int | None, conditions: list[str]) -> str:
    """Write how a program ended: ``exit code 3``, ``signal 9 (OOMKilled)``, ``LaunchFailed``."""
    named = [condition for condition in conditions if condition != "AppError"]
    how = f"signal {signal}" if signal else f"exit code {exit_code}" if exit_code is not None else ""
    if how and named:
        return f"{how} ({', '.join(named)})"
    return how or ", ".join(named)


def pairs(values: dict[str, str]) -> str:
    """Write labels: ``team=nlp,tier=gold``."""
    return ",".join(f"{key}={value}" for key, value in sorted(values.items()))
