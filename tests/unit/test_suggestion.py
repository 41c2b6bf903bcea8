"""What was meant by a word nobody knows."""

from __future__ import annotations

import pytest

from holdfast.domain.suggestion import closest


@pytest.mark.parametrize(
    ("word", "known", "hint"),
    [
        ("retryLimt", ("retryLimit", "retry"), "did you mean retryLimit?"),
        ("retrylimit", ("retryLimit",), "did you mean retryLimit?"),
        ("OOMKILLED", ("Evicted", "OOMKilled"), "did you mean OOMKilled?"),
        ("zebra", ("retryLimit",), None),
        ("anything", (), None),
        (12, ("1", "123"), "did you mean 123?"),
        (None, ("name",), None),
    ],
)
def test_the_nearest_known_word_is_suggested_whatever_its_case(
    word: object, known: tuple[str, ...], hint: str | None
) -> None:
    assert closest(word, known) == hint
