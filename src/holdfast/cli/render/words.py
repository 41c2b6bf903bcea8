"""How single facts read in tables and sentences: times, spans, endings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from holdfast.domain.units import format_duration

Table = tuple[Sequence[str], Sequence[Sequence[str]]]
"""Columns and rows."""


_SHOWN = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}
"""Control characters, and how they are written out."""


def printable(text: str) -> str:
    """Write out control characters: what a program said must not steer the terminal of whoever reads about it."""
    return text.translate(_SHOWN)


def when(timestamp: str | None) -> str:
    """Write a time to the second, in UTC; empty when it is not known."""
    return f"{timestamp[:19]}Z" if timestamp else ""


def span(start: str | None, end: str | None) -> str:
    """Write how long something took; empty while it goes on."""
    if not start or not end:
        return ""
    seconds = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    return format_duration(max(0.0, seconds))


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
