"""The world is worth something for clocks, leases, deadlines and answers, too: each way of breaking them is caught."""

from __future__ import annotations

import pytest

from holdfast.controller import controller
from holdfast.controller.observations import Observations
from holdfast.controller.work_queue import WorkQueue
from holdfast.domain.lifecycle import RUN_TERMINAL, Outcome, RunStatus
from holdfast.domain.lifecycle.engine import Report
from holdfast.domain.record import evolve
from holdfast.domain.workloads.gang import conclude
from holdfast.domain.workloads.gang.flight import Flight
from holdfast.executor.executor import Executor
from holdfast.storage.sql.controller import SqlControllerStore
from tests.property.breaks import Break, assert_noticed
from tools.simulate import controllers
from tools.simulate.clocks import ProcessClock
from tools.simulate.connections import Connection
from tools.simulate.world import HARSH_EVERY

TWICE = {
    *("never-twice", "started-once", "no-node-overloaded", "generations-apart", "domains-exclusive"),
    "nothing-outlives",
}
"""What can come of it when the controller does not know what still runs."""


def an_overtaken_answer_is_acted_on(patch: pytest.MonkeyPatch) -> None:
    exchange = Connection.exchange
    patch.setattr(
        Connection, "exchange", lambda self, request: evolve(exchange(self, request), sequence=request.sequence)
    )


def a_retry_is_granted_past_the_total_deadline(patch: pytest.MonkeyPatch) -> None:
    fail = conclude.fail
    patch.setattr(conclude, "fail", lambda spec, *about: fail(evolve(spec, total_deadline_s=None), *about))


def ranks_are_stopped_one_by_one(patch: pytest.MonkeyPatch) -> None:
    def terminate(self: Flight, now: float) -> Report:
        left = [run for run in self.runs.values() if run.status not in RUN_TERMINAL]
        if not any(run.status is RunStatus.TERMINATING for run in left):
            self._put(left[0].entered(RunStatus.TERMINATING, now))
        return Report(Outcome.SKIPPED, message="stopping")

    patch.setattr(Flight, "_terminate", terminate)


def two_processes_are_one_owner(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(controllers, "owner", lambda *_: "the holdfast on this data directory")


def a_commit_does_not_ask_who_leads(patch: pytest.MonkeyPatch) -> None:
    commit = SqlControllerStore.commit
    patch.setattr(SqlControllerStore, "commit", lambda self, changes: commit(self, evolve(changes, epoch=None)))


def leases_are_counted_by_the_wall_clock(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProcessClock, "steady", ProcessClock.now)


def who_was_overtaken_is_answered(patch: pytest.MonkeyPatch) -> None:
    take = Observations.take
    patch.setattr(Observations, "take", lambda self, request, now: take(self, request, now) or True)


def an_executor_ignores_its_lease(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Executor, "_fence", lambda *_: None)


def nobody_looks_again_when_a_retry_is_due(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(WorkQueue, "wake_at", lambda *_: None)


def an_unanswered_commit_is_made_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(controller, "Uncertain", ZeroDivisionError)


BREAKS: dict[str, Break] = {
    "an executor acts on an overtaken answer": (an_overtaken_answer_is_acted_on, {*TWICE, "stored-last"}, 8),
    "a retry is granted past the total deadline": (a_retry_is_granted_past_the_total_deadline, {"in-total-time"}, 4),
    "ranks of a gang are stopped one by one": (ranks_are_stopped_one_by_one, {"stops-together"}, 2),
    "two processes are one owner": (two_processes_are_one_owner, {"one-writer"}, 2),
    "a commit does not ask who leads": (a_commit_does_not_ask_who_leads, {"one-writer"}, 26),
    "leases are counted by the wall clock": (
        leases_are_counted_by_the_wall_clock,
        TWICE,
        500_284,  # clocks are set at the right moment, and by much
    ),
    "an executor that was overtaken is answered": (who_was_overtaken_is_answered, {*TWICE, "terminal-absorbs"}, 236),
    "nobody looks again when a retry is due": (nobody_looks_again_when_a_retry_is_due, {"all-ends"}, 18),
    "an unanswered commit is made again": (an_unanswered_commit_is_made_again, {"written-once"}, 6),
}


@pytest.mark.parametrize("name", BREAKS)
def test_the_world_catches_it_when(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_noticed(BREAKS[name], monkeypatch, every=HARSH_EVERY)
