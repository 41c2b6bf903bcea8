"""The world is worth something for watched runs, too: the code, broken in named ways, is caught within few seeds."""

# ruff: noqa: ANN401, SLF001 - what breaks private parts must reach them, and takes whatever they take

from __future__ import annotations

from typing import Any

import pytest

from holdfast.controller import publisher
from holdfast.domain.record import evolve
from holdfast.engines.simulated.life import Life
from tests.property.breaks import Break, assert_noticed
from tools.simulate.watched import WATCHED_EVERY


def orders_lack(patch: pytest.MonkeyPatch, **fields: Any) -> None:
    order = publisher._order
    patch.setattr(publisher, "_order", lambda *known: evolve(order(*known), **fields))


def an_executor_is_not_told_of_the_limit(patch: pytest.MonkeyPatch) -> None:
    orders_lack(patch, stall=None)


def an_executor_is_not_told_of_the_warning(patch: pytest.MonkeyPatch) -> None:
    orders_lack(patch, warning=None)


def silence_counts_from_the_start(patch: pytest.MonkeyPatch) -> None:
    plan = Life._plan_forced_end

    def early(self: Any) -> None:
        if self.order.stall is not None:
            self.plan = evolve(self.plan, silent_after_s=0.0)
        plan(self)

    patch.setattr(Life, "_plan_forced_end", early)


BREAKS: dict[str, Break] = {
    "an executor is not told of the limit": (an_executor_is_not_told_of_the_limit, {"silence-ends", "all-ends"}, 14),
    "an executor is not told of the warning": (an_executor_is_not_told_of_the_warning, {"warned-first"}, 3),
    "silence counts from the start": (silence_counts_from_the_start, {"silence-ends"}, 3),
}


@pytest.mark.parametrize("name", BREAKS)
def test_the_world_catches_it_when(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_noticed(BREAKS[name], monkeypatch, every=WATCHED_EVERY)
