"""Picks facts out of the prose of a case."""

from __future__ import annotations

import re

_AGO = re.compile(
    r"(?:started|entered(?: \w+)?|began|since) (\d+(?:\.\d+)?) ?(s|sec|second|min|minute|h|hour|day)s? ago"
)
_UNIT_S = {"s": 1, "sec": 1, "second": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600, "day": 86400}
_NONE = {"null", "none", "unlimited"}


def seconds_ago(text: str) -> float | None:
    """Find how long ago something began: ``started 16 min ago``."""
    found = _AGO.search(text)
    return float(found[1]) * _UNIT_S[found[2]] if found else None


def limit(text: str, *names: str) -> tuple[bool, float | None]:
    """Find a limit such as ``timeout 900 s`` or ``max_retry_count=null``.

    Returns:
        Whether it is mentioned, and its value; ``None`` is without limit.
    """
    for name in names:
        found = re.search(rf"\b{name}(?:=|:| )+(\w+)", text)
        if found and (found[1].lower() in _NONE or found[1].isdigit()):
            return True, None if found[1].lower() in _NONE else float(found[1])
    return False, None


def number(text: str, *names: str) -> int | None:
    """Find a count such as ``attempts=5`` or ``attempts 1``."""
    mentioned, value = limit(text, *names)
    return int(value) if mentioned and value is not None else None


def before_upstream(text: str) -> str:
    """Cut off what upstream does at its head; the document's reading comes first."""
    return re.split(r"Upstream HEAD|Upstream:|\(upstream", text, maxsplit=1)[0]
