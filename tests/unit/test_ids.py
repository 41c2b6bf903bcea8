"""The ids of what is submitted and started."""

from __future__ import annotations

import time

from holdfast.app.time import SortableIds

_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"


def _number(made: str) -> int:
    number = 0
    for character in made:
        number = number << 5 | _CROCKFORD.index(character)
    return number


def test_ids_grow_and_hold_the_millisecond_they_were_made_in() -> None:
    ids, before = SortableIds(), int(time.time() * 1000)

    made = [ids.new() for _ in range(2000)]

    after = int(time.time() * 1000)
    assert made == sorted(set(made))
    assert {len(each) for each in made} == {26}
    assert [_number(each) for each in made] == sorted(_number(each) for each in made)
    assert all(before <= _number(each) >> 80 <= after for each in made)
