"""Tasks whose rows are damaged: their array neither ends without them nor runs others in their place, and says so."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.job import JobState
from holdfast.ports.requests import RequestKind
from tests.unit.conftest import exits
from tests.unit.test_arrays import ArrayLab, sweep

if TYPE_CHECKING:
    from pathlib import Path

LOSE = "UPDATE jobs SET set_id = NULL, replicated_job = NULL, job_index = NULL WHERE name = ?"
FIND = "UPDATE jobs SET set_id = 'sweep', replicated_job = '', job_index = 0 WHERE name = ?"
DAMAGE = "UPDATE attempts SET status = '{' WHERE job_id = (SELECT id FROM jobs WHERE name = ?)"


class Lossy(ArrayLab):
    """A lab whose rows can be damaged; a controller begins after it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path

    def damage(self, statement: str, *names: str) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            for name in names:
                assert connection.execute(statement, (name,)).rowcount == 1
        self.restart_controller()

    def said(self) -> str:
        self.tick()
        found = self.store.quarantined().get("sweep")
        return "" if found is None else found.message.splitlines()[0]


@pytest.fixture
def lab(tmp_path: Path) -> Lossy:
    return Lossy(tmp_path / "holdfast.db")


LOST = "reconciling it: Internal: of its {} tasks {} cannot be found or read"


def test_an_array_whose_running_tasks_are_its_own_no_more_has_not_ended(lab: Lossy) -> None:
    lab.plan = lambda _: exits(0, after_s=10.0)
    lab.submit_array(sweep(2))
    lab.pass_s(3)
    lab.damage(LOSE, "sweep-0", "sweep-1")
    lab.pass_s(3)
    assert (lab.array().ended, lab.said()) == ("", LOST.format(2, 2))
    lab.pass_s(10)
    lab.damage(FIND, "sweep-0", "sweep-1")
    lab.pass_s(3)
    assert (lab.array().ended, lab.counts(), lab.said()) == ("Succeeded", (2, 0, 0), "")
    assert lab.started() == {"sweep-0": 1, "sweep-1": 1}


def test_what_is_lost_of_an_array_may_run_and_has_its_place_among_those_that_may(lab: Lossy) -> None:
    lab.plan = lambda order: exits(0, after_s=1000.0 if order.job_name == "sweep-0" else 2.0)
    lab.submit_array(sweep(6, max_running=2))
    lab.pass_s(1)
    lab.damage(LOSE, "sweep-0")
    for _ in range(20):
        lab.pass_s(1)
        assert len(lab.engine.observe()) <= 2
    assert (lab.array().ended, lab.said()) == ("", LOST.format(6, 1))
    assert lab.started() == {f"sweep-{index}": 1 for index in range(6)}


def test_a_task_that_cannot_be_read_keeps_its_array_from_ending_until_somebody_cancels_it(lab: Lossy) -> None:
    lab.plan = lambda order: exits(0, after_s=1000.0 if order.job_name == "sweep-0" else 2.0)
    lab.submit_array(sweep(4, max_running=2))
    lab.pass_s(1)
    lab.damage(DAMAGE, "sweep-0")
    lab.pass_s(20)
    assert (lab.array().ended, lab.said()) == ("", LOST.format(4, 1))
    lab.ask(RequestKind.CANCEL, lab.store.job("sweep-0").id)
    lab.pass_s(1)
    assert (lab.array().ended, lab.counts(), lab.store.quarantined()) == ("Cancelled", (3, 0, 1), {})


def test_a_task_that_was_cancelled_before_anybody_missed_it_counts(lab: Lossy) -> None:
    lab.plan = lambda order: exits(0, after_s=1000.0 if order.job_name == "sweep-0" else 10.0)
    lab.submit_array(sweep(4, max_running=2))
    lab.pass_s(1)
    lab.damage(DAMAGE, "sweep-0")
    lab.pass_s(1)
    lab.ask(RequestKind.CANCEL, lab.store.job("sweep-0").id)
    lab.pass_s(40)
    assert (lab.array().ended, lab.counts(), lab.store.quarantined()) == ("Cancelled", (3, 0, 1), {})


def test_an_array_that_has_lost_tasks_ends_when_somebody_cancels_it(lab: Lossy) -> None:
    lab.plan = lambda _: exits(0, after_s=10.0)
    lab.submit_array(sweep(2))
    lab.pass_s(3)
    lab.damage(LOSE, "sweep-0", "sweep-1")
    lab.pass_s(3)
    lab.ask(RequestKind.CANCEL, "sweep")
    lab.pass_s(3)
    assert (lab.array().ended, lab.store.quarantined()) == ("Cancelled", {})
    lab.pass_s(10)
    assert {lab.store.job(name).state for name in ("sweep-0", "sweep-1")} == {JobState.SUCCEEDED}


def test_an_array_ends_without_those_it_has_lost_if_enough_have_succeeded(lab: Lossy) -> None:
    lab.plan = lambda order: exits(0, after_s=1000.0 if order.job_name == "sweep-0" else 5.0)
    lab.submit_array(sweep(3, at_least=2))
    lab.pass_s(1)
    lab.damage(LOSE, "sweep-0")
    lab.pass_s(10)
    assert (lab.array().ended, lab.counts()) == ("Succeeded", (2, 0, 0))


def test_a_damaged_array_that_is_deleted_takes_its_tasks_along(lab: Lossy) -> None:
    lab.plan = lambda _: exits(0, after_s=1000.0)
    lab.submit_array(sweep(2))
    lab.pass_s(3)
    lab.damage("UPDATE workloads SET state = '{' WHERE name = ?", "sweep")
    lab.pass_s(1)
    assert "sweep" in lab.store.quarantined()
    lab.ask(RequestKind.DELETE, "sweep")
    lab.pass_s(10)
    assert {lab.store.job(name).state for name in ("sweep-0", "sweep-1")} == {JobState.CANCELLED}
    assert (lab.engine.observe(), lab.store.quarantined()) == ({}, {})
