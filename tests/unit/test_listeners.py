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


def test_where_there_is_room_for_one_anybody_has_it() -> None:
    async def follow() -> None:
        listeners = Listeners(lambda: 0, most=1)
        with listeners.admitted(ANN), pytest.raises(Unavailable), listeners.admitted(BEN):
            pass

    asyncio.run(follow())
