"""Combines the errors of many items into one."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from holdfast.errors import Forbidden, InvalidManifest, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.errors import HoldfastError


def all_of(errors: Mapping[int, HoldfastError], count: int) -> HoldfastError:
    """Combine the errors of items into one, with the index in each path; a right that all lack is named alone."""
    if count == 1:
        return errors[0]
    first, lacked = next(iter(errors.values())), {*map(_lacked, errors.values())}
    if len(lacked) == 1 and lacked != {None}:
        return Forbidden(first.message, hint=first.hint)
    message = f"{len(errors)} of {count} manifests are not valid; nothing was submitted"
    return InvalidManifest(message, problems=problems_of(errors))


def problems_of(errors: Mapping[int, HoldfastError]) -> list[Problem]:
    """List the problems of many items, with the index in each path; a right that several lack is listed once."""
    lacking: dict[tuple[str, str | None], list[int]] = {}
    for index, error in errors.items():
        if (lacked := _lacked(error)) is not None:
            lacking.setdefault(lacked, []).append(index)
    problems = []
    for index, error in errors.items():
        lacked = _lacked(error)
        places = [index] if lacked is None else lacking[lacked]
        if places == [index]:
            problems += [_within(index, problem) for problem in _problems_of(error)]
        elif index == places[0]:
            problems.append(Problem("items", f"{error.message} (items {_ranges(places)})", hint=error.hint))
    return problems


def _lacked(error: HoldfastError) -> tuple[str, str | None] | None:
    """Return the message and the hint about a missing right, if that is the item's only problem."""
    return (error.message, error.hint) if isinstance(error, Forbidden) and not error.problems else None


def _ranges(places: Sequence[int]) -> str:
    """Write increasing indexes, consecutive ones as a range."""
    ends = [place for place, after in pairwise(places) if after != place + 1] + [places[-1]]
    starts = [places[0]] + [after for place, after in pairwise(places) if after != place + 1]
    return ", ".join(
        str(first) if first == last else f"{first}-{last}" for first, last in zip(starts, ends, strict=True)
    )


def _problems_of(error: HoldfastError) -> Sequence[Problem]:
    return error.problems or (Problem("", error.message, hint=error.hint),)


def _within(index: int, problem: Problem) -> Problem:
    path = f"items[{index}].{problem.path}" if problem.path else f"items[{index}]"
    return Problem(path, problem.message, allowed=problem.allowed, hint=problem.hint, line=problem.line)
