"""A shim is killed at each system call of its life, from its start to its leaving: the next one continues it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration import crashes

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.crashes import Round
    from tests.strace import Tell

QUICK, WAITING, STOPPED, LATER, NONE = "quick", "waiting", "stopped", "later", "none"


@pytest.fixture(autouse=True)
def followed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    crashes.use_stand_in(monkeypatch, tmp_path)


def life(this: Round) -> None:
    """Run programs that end, wait, are stopped and cannot be started; forget them, run another one, and leave."""
    this.known = {QUICK, WAITING, LATER}
    this.follow("1")
    this.open()
    this.start(QUICK)
    this.start(WAITING, waits=True)
    this.start(STOPPED, waits=True)
    this.start_none(NONE)
    this.until_begun(WAITING, STOPPED)
    this.stop(STOPPED)
    this.finish(QUICK, STOPPED, NONE)
    this.let_go(WAITING)
    this.finish(WAITING)
    this.forget(QUICK, WAITING, STOPPED, NONE)
    this.start(LATER)
    this.finish(LATER)
    this.forget(LATER)


def test_a_life_that_is_cut_short_at_its_begin_middle_or_end_is_gone_on_with(tmp_path: Path) -> None:
    crashes.live_through_some(tmp_path, life)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_life_that_is_cut_short_anywhere_is_gone_on_with(tmp_path: Path, record_property: Tell) -> None:
    crashes.live_through_all(tmp_path, life, record_property)
