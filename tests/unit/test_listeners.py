"""How many clients follow events: so many in all, and no more than half of them of one person."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import pytest

from holdfast.domain.access import Principal, Role
from holdfast.errors import Unavailable
from holdfast.service.listeners import Listeners

ANN, BEN = (Principal(name, roles=(Role.USER,)) for name in ("ann", "ben"))
LAB = Principal("lab", roles=(Role.ADMIN,))


def test_one_person_leaves_room_for_others_to_follow_and_an_admin_may_take_all() -> None:
    async def follow() -> None:
        listeners = Listeners(lambda: 0, most=5)
        with ExitStack() as taken:
            for _ in range(2):
                taken.enter_context(listeners.admitted(ANN))
            with pytest.raises(Unavailable, match="2 clients of ann follow events already"):
                taken.enter_context(listeners.admitted(ANN))
            taken.enter_context(listeners.admitted(BEN))
            for _ in range(2):
                taken.enter_context(listeners.admitted(LAB))
            with pytest.raises(Unavailable, match="5 clients follow events already"):
                taken.enter_context(listeners.admitted(LAB))
        assert listeners.count == 0
        with listeners.admitted(ANN), listeners.admitted(ANN):
            assert listeners.count == 2, "what was given back can be had again"

    asyncio.run(follow())


def test_there_is_room_for_whoever_has_none_however_many_others_want_all_they_can_have() -> None:
    people = [Principal(f"user{n}", roles=(Role.USER,)) for n in range(7)]

    async def follow() -> list[int]:
        listeners, had = Listeners(lambda: 0, most=100), []
        with ExitStack() as taken:
            for one in people:
                had.append(0)
                try:
                    while True:
                        taken.enter_context(listeners.admitted(one))
                        had[-1] += 1
                except Unavailable:
                    pass
        return had

    assert asyncio.run(follow()) == [50, 25, 12, 6, 3, 2, 1]


def test_a_number_for_each_counts_for_admins_too() -> None:
    async def follow() -> None:
        listeners = Listeners(lambda: 0, most=9, per_person=2)
        for one in (LAB, ANN):
            with ExitStack() as taken:
                for _ in range(2):
                    taken.enter_context(listeners.admitted(one))
                with pytest.raises(Unavailable, match=f"2 clients of {one.name} follow"):
                    taken.enter_context(listeners.admitted(one))

    asyncio.run(follow())


def test_where_there_is_room_for_one_anybody_has_it() -> None:
    async def follow() -> None:
        listeners = Listeners(lambda: 0, most=1)
        with listeners.admitted(ANN), pytest.raises(Unavailable), listeners.admitted(BEN):
            pass

    asyncio.run(follow())
