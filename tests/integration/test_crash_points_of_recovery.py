"""A shim that takes over from dead ones is killed at each of its system calls: nothing is lost, nothing runs twice."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from holdfast.engines.process.shim import processes
from holdfast.ports.engine import RunPhase
from tests.integration import crashes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.crashes import Round
    from tests.strace import Tell

HELD, ORPHANED, RECORDED, KEPT, JOURNALED, UNSEEN, UNNOTED = NAMES = (
    *("held", "orphaned", "recorded", "kept", "journaled", "unseen", "unnoted"),
)
"""Programs that a shim finds: running, with and without a supervisor; ended, and written down by a dead or a living
supervisor, or in the journal; ended when nobody looked; ended before anybody could write down that they ran."""


@pytest.fixture(autouse=True)
def followed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    crashes.use_stand_in(monkeypatch, tmp_path)


def leave_everything(this: Round) -> bool:
    """Leave behind one of each and no shim; returns whether the kernel will tell how an orphan ends."""
    this.open()
    for name in NAMES:
        this.start(name, waits=True)
    for order in this.orders.values():
        this.machine.until(order, lambda seen: seen.phase is RunPhase.RUNNING)
    this.until_begun(*NAMES)
    this.let_go(JOURNALED)
    this.finish(JOURNALED)
    programs = {process.environ()["HOLDFAST_ATTEMPT_UID"]: process for process in this.machine.survivors()}
    records = {name: record_of(this, name) for name in NAMES if name != JOURNALED}
    supervisors = {name: programs[this.orders[name].uid].ppid() for name in records}
    this.machine.engine.close()
    this.kill_the_shim()
    this.let_go(RECORDED, KEPT)
    this.until(lambda: all(b'"outcome"' in records[name].read_bytes() for name in (RECORDED, KEPT)))
    for name in (ORPHANED, RECORDED, UNSEEN, UNNOTED):
        os.kill(supervisors[name], signal.SIGKILL)
    this.let_go(UNSEEN, UNNOTED)
    this.until(lambda: all(processes.has_ended(programs[this.orders[name].uid].pid) for name in (UNSEEN, UNNOTED)))
    text = records[UNNOTED].read_bytes()
    records[UNNOTED].write_bytes(text[: text.index(b"\n") + 1] + b"\0")
    return processes.can_be_waited_for(programs[this.orders[ORPHANED].uid].pid)


def record_of(this: Round, name: str) -> Path:
    uid = f'"uid":"{this.orders[name].uid}"'.encode()
    [path] = [path for path in (this.directory / "supervisors").glob("*.record") if uid in path.read_bytes()]
    return path


def recovery(this: Round) -> None:
    """Only the shim is killed."""
    can_be_waited_for = recover(this)
    this.known = {HELD, RECORDED, KEPT, JOURNALED, *([ORPHANED] if can_be_waited_for else [])}


def recovery_of_all(this: Round) -> None:
    """All supervisors are killed with it, those of what runs too: what was written down is known all the same."""
    recover(this, this.kill_everything)
    this.known = {RECORDED, KEPT, JOURNALED}


def recover(this: Round, died: Callable[[], object] = lambda: None) -> bool:
    can_be_waited_for = leave_everything(this)
    this.follow("1", died)
    this.open()
    this.let_go(HELD, ORPHANED)
    this.finish(*NAMES)
    return can_be_waited_for


STORIES = (recovery, recovery_of_all)


def test_one_that_is_cut_short_at_its_begin_middle_or_end_is_made_good(tmp_path: Path) -> None:
    crashes.live_through_some(tmp_path, recovery_of_all)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("story", STORIES, ids=[story.__name__ for story in STORIES])
def test_one_that_is_cut_short_anywhere_is_made_good(
    tmp_path: Path, story: Callable[[Round], None], record_property: Tell
) -> None:
    crashes.live_through_all(tmp_path, story, record_property)
