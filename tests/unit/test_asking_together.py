"""What is asked of many jobs that nobody named is one request, and whatever that cannot do is asked alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.cli.commands.steering.steer import ask_together
from holdfast.cli.nouns import Noun
from holdfast.cli.selection import Selected
from holdfast.errors import Forbidden

if TYPE_CHECKING:
    from collections.abc import Sequence


JOBS = [Selected(f"j{number}", f"n{number}", is_chosen=True) for number in range(12_000)]


def test_twelve_thousand_jobs_are_three_requests() -> None:
    asked: list[Sequence[str]] = []

    def ask(ids: Sequence[str]) -> Sequence[str]:
        asked.append(ids)
        return ids

    assert ask_together(JOBS, ask) == ([], JOBS)
    assert [len(ids) for ids in asked] == [5000, 5000, 2000]


def test_arrays_jobs_of_sets_named_ones_and_those_that_had_ended_are_asked_alone() -> None:
    array, of_set = Selected("a", "a", Noun.ARRAY), Selected("s", "s", of_set=True, is_chosen=True)
    named = Selected("n", "n")
    found = [*JOBS[:3], array, of_set, named]
    assert ask_together(found, lambda ids: ids[:2]) == ([JOBS[2], array, of_set, named], JOBS[:2])


def test_what_is_refused_for_all_is_asked_for_each() -> None:
    def ask(_: Sequence[str]) -> Sequence[str]:
        message = "not all of them"
        raise Forbidden(message)

    assert ask_together(JOBS[:3], ask) == (JOBS[:3], [])


def test_one_job_is_asked_alone() -> None:
    assert ask_together(JOBS[:1], lambda _: pytest.fail("a request for one")) == (JOBS[:1], [])
