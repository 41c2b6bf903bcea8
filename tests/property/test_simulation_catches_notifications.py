"""The world is worth something for what people are told, too: the code, broken in named ways, is caught soon."""

# ruff: noqa: ANN401, SLF001 - what breaks private parts must reach them, and takes whatever they take

from __future__ import annotations

from typing import Any

import pytest

from holdfast.controller.workloads.jobsets import JobSets
from holdfast.domain import event_mapping
from holdfast.domain.job import JobState
from holdfast.domain.notifications import notification
from holdfast.domain.record import evolve
from holdfast.notify.courier import Courier
from holdfast.storage.sql.controller import SqlControllerStore
from tests.property.breaks import Break, assert_noticed
from tools.simulate.told_world import TOLD_EVERY


def every_failed_attempt_is_told(patch: pytest.MonkeyPatch) -> None:
    of_job = notification.of_job

    def eager(before: Any, after: Any, ended: Any, wanted: Any) -> Any:
        failed = ended is not None and ended.failure is not None and not after.terminal
        return of_job(before, evolve(after, state=JobState.FAILED) if failed else after, ended, wanted)

    patch.setattr(event_mapping, "of_job", eager)


def whoever_asks_for_two_events_is_told_twice(patch: pytest.MonkeyPatch) -> None:
    told = notification._notifications

    def each(report: Any, occasions: Any, wanted: Any, which: str, now: float) -> Any:
        return [one for occasion in occasions for one in told(report, {occasion}, wanted, f"{which}/{occasion}", now)]

    patch.setattr(notification, "_notifications", each)


def a_hold_is_not_told(patch: pytest.MonkeyPatch) -> None:
    of_job = notification.of_job
    patch.setattr(event_mapping, "of_job", lambda b, a, e, w: [] if a.state.value == "Held" else of_job(b, a, e, w))


def the_end_of_a_job_set_is_not_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(JobSets, "told_of", lambda _self, _row, _now: ())


def ids_are_made_anew_for_each_try(patch: pytest.MonkeyPatch) -> None:
    attempt = Courier._try
    patch.setattr(Courier, "_try", lambda self, one, to: attempt(self, evolve(one, id=f"{one.id}-{one.tries}"), to))


def what_is_begun_is_taken_for_delivered(patch: pytest.MonkeyPatch) -> None:
    def careless(self: Courier, one: Any, notifier: Any) -> None:
        self._store.settle_notifications([one.delivered(self._clock.now())])
        self._sender.send(notifier, one, self._clock.now())

    patch.setattr(Courier, "_try", careless)


def what_is_to_be_told_is_not_committed(patch: pytest.MonkeyPatch) -> None:
    commit = SqlControllerStore.commit
    patch.setattr(SqlControllerStore, "commit", lambda self, changes: commit(self, evolve(changes, notifications=[])))


BREAKS: dict[str, Break] = {
    "every failed attempt is told": (every_failed_attempt_is_told, {"told-once"}, 9),
    "whoever asks for two events is told twice": (whoever_asks_for_two_events_is_told_twice, {"told-once"}, 4),
    "a hold is not told": (a_hold_is_not_told, {"told-once"}, 4),
    "the end of a job set is not told": (the_end_of_a_job_set_is_not_told, {"told-once"}, 19),
    "ids are made anew for each try": (ids_are_made_anew_for_each_try, {"told-at-last"}, 4),
    "what is begun is taken for delivered": (what_is_begun_is_taken_for_delivered, {"told-at-last"}, 19),
    "what is to be told is not committed": (what_is_to_be_told_is_not_committed, {"told-at-last"}, 19),
}


@pytest.mark.parametrize("name", BREAKS)
def test_the_world_catches_it_when(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_noticed(BREAKS[name], monkeypatch, every=TOLD_EVERY)
