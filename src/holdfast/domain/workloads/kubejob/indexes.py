"""Reads and writes sets of completion indexes as Kubernetes prints them: ``1,3-5,7``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_LONG_ENOUGH = 2
"""Two neighbours print as ``0,1``, three as ``0-2``."""


def format_indexes(indexes: Iterable[int]) -> str:
    """Write a set of indexes, runs of three or more with a dash."""
    parts: list[str] = []
    run: list[int] = []
    for index in sorted(indexes):
        if run and index != run[-1] + 1:
            parts.extend(_run(run))
            run = []
        run.append(index)
    return ",".join([*parts, *_run(run)])


def _run(run: list[int]) -> list[str]:
    return [f"{run[0]}-{run[-1]}"] if len(run) > _LONG_ENOUGH else [str(index) for index in run]


def parse_indexes(text: str, completions: int) -> frozenset[int]:
    """Read a set of indexes.

    Raises:
        ValueError: Not increasing, not numbers, or not below ``completions``; worded as the Job API words it.
    """
    indexes: list[int] = []
    for part in text.split(",") if text else ():
        low, high = _interval(part, completions)
        if indexes and indexes[-1] >= low:
            _refuse(f"non-increasing order, previous: {indexes[-1]}, current: {low}")
        indexes.extend(range(low, high + 1))
    return frozenset(indexes)


def _interval(part: str, completions: int) -> tuple[int, int]:
    limits = part.split("-")
    if len(limits) > _LONG_ENOUGH:
        _refuse(
            f'the fragment "{part}" violates the requirement that an index interval can have at most two parts '
            "separated by '-'"
        )
    numbers = [_number(limit, completions) for limit in limits]
    if len(numbers) > 1 and numbers[0] >= numbers[1]:
        _refuse(f"non-increasing order, previous: {numbers[0]}, current: {numbers[1]}")
    return numbers[0], numbers[-1]


def _number(text: str, completions: int) -> int:
    if not (text.isascii() and text.isdecimal()):
        _refuse(f'cannot convert string to integer for index: "{text}"')
    if int(text) >= completions:
        _refuse(f'too large index: "{text}"')
    return int(text)


def _refuse(message: str) -> None:
    raise ValueError(message)
