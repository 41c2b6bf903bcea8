"""A supervisor is killed at each of its system calls, alone or with the shim: an end that nobody knows is said so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.ports.engine import RunPhase
from tests.integration import crashes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.crashes import Round
    from tests.strace import Tell

QUICK, WAITING = "quick", "waiting"


@pytest.fixture(autouse=True)
def followed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    crashes.use_stand_in(monkeypatch, tmp_path)


def life(this: Round) -> None:
    """Have it start a program that waits and one that ends at once, and leave."""
    if lives(this):
        this.known = {WAITING}  # the shim had heard of its program


def life_beside_a_shim(this: Round) -> None:
    """The same; whoever kills it kills the shim as well."""
    lives(this, this.kill_the_shim)


def lives(this: Round, died: Callable[[], object] = lambda: None) -> bool:
    this.follow("1.1.1", died)
    this.open()
    this.start(WAITING, waits=True)
    seen = this.machine.until(this.orders[WAITING], lambda seen: seen.phase is not RunPhase.STARTING)
    this.let_go(WAITING)
    this.finish(WAITING)
    this.forget(WAITING)
    this.start(QUICK)
    this.finish(QUICK)
    this.forget(QUICK)
    return seen.phase is RunPhase.RUNNING


def taking_over(this: Round) -> None:
    """Have it take over from one that was killed."""
    this.known = {WAITING}
    take_over(this)


def taking_over_beside_a_shim(this: Round) -> None:
    take_over(this, this.kill_the_shim)


def take_over(this: Round, died: Callable[[], object] = lambda: None) -> None:
    this.follow("1.1.2", died)
    this.open()
    this.start(WAITING, waits=True)
    this.until_begun(WAITING)
    this.machine.until(this.orders[WAITING], lambda seen: seen.phase is RunPhase.RUNNING)
    [first] = this.machine.supervisors()
    first.kill()
    this.until(lambda: this.died.is_set() or any(each.pid != first.pid for each in this.machine.supervisors()))
    this.let_go(WAITING)
    this.finish(WAITING)
    this.forget(WAITING)


STORIES = (life, life_beside_a_shim, taking_over, taking_over_beside_a_shim)


def test_one_that_dies_at_its_begin_middle_or_end_is_replaced(tmp_path: Path) -> None:
    crashes.live_through_some(tmp_path, life_beside_a_shim)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("story", STORIES, ids=[story.__name__ for story in STORIES])
def test_one_that_dies_anywhere_is_replaced(
    tmp_path: Path, story: Callable[[Round], None], record_property: Tell
) -> None:
    crashes.live_through_all(tmp_path, story, record_property)
