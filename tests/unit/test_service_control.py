"""Cancel, hold and release: which states allow them, and what is asked of the controller."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.domain.job import Job, JobState
from holdfast.domain.workloads.kubejob.stored import KubeJobRecord
from holdfast.errors import Conflict, NotFound
from holdfast.ports.store import Changes, RequestKind, Submission
from holdfast.service.control import Control
from tools.memory_store import MemoryStore


class Noon:
    def now(self) -> float:
        return 1000.0


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    store.submit(Submission([Job("job000001", "train", "default", 0, 1.0, "{}")]))
    (taken_in,) = store.requests(limit=1)
    store.commit(Changes(handled=[taken_in.id]))
    return store


@pytest.fixture
def control(store: MemoryStore) -> Control:
    return Control(store, Noon(), actor="ann")


def _put(store: MemoryStore, state: JobState, *, cancel_requested: bool = False) -> None:
    job = replace(store.job("job000001"), state=state, cancel_requested=cancel_requested)
    store.commit(Changes(jobs={job.id: job}))


def _asked(store: MemoryStore) -> list[RequestKind]:
    return [request.kind for request in store.requests(limit=9)]


ENDED = [JobState.SUCCEEDED, JobState.FAILED]
WAITING = [JobState.QUEUED, JobState.BACKOFF]


@pytest.mark.parametrize("state", [*WAITING, JobState.RUNNING, JobState.HELD])
def test_a_job_that_has_not_ended_can_be_cancelled(store: MemoryStore, control: Control, state: JobState) -> None:
    _put(store, state)
    control.cancel("train", "typo")
    (request,) = store.requests(limit=9)
    assert (request.kind, request.targets, request.actor, request.reason, request.created_at) == (
        RequestKind.CANCEL,
        ("job000001",),
        "ann",
        "typo",
        1000.0,
    )


@pytest.mark.parametrize("state", ENDED)
def test_a_job_that_has_ended_cannot_be_cancelled(store: MemoryStore, control: Control, state: JobState) -> None:
    _put(store, state)
    with pytest.raises(Conflict, match=f"has already ended: {state}"):
        control.cancel("train")
    assert _asked(store) == []


@pytest.mark.parametrize(("state", "requested"), [(JobState.CANCELLED, False), (JobState.RUNNING, True)])
def test_cancelling_twice_asks_once(store: MemoryStore, control: Control, state: JobState, *, requested: bool) -> None:
    _put(store, state, cancel_requested=requested)
    assert control.cancel("train").id == "job000001"
    assert _asked(store) == []


@pytest.mark.parametrize("state", WAITING)
def test_a_waiting_job_can_be_held(store: MemoryStore, control: Control, state: JobState) -> None:
    _put(store, state)
    control.hold("train")
    assert _asked(store) == [RequestKind.HOLD]


def test_a_running_job_cannot_be_held_and_the_error_says_what_can_be_done(store: MemoryStore, control: Control) -> None:
    _put(store, JobState.RUNNING)
    with pytest.raises(Conflict) as caught:
        control.hold("train")
    assert caught.value.hint is not None
    assert "cancel it" in caught.value.hint


def test_a_running_job_made_of_pods_can_be_held(store: MemoryStore, control: Control) -> None:
    _put(store, JobState.RUNNING)
    store.commit(Changes(workloads={"job000001": KubeJobRecord(id="job000001")}))
    control.hold("train")
    assert _asked(store) == [RequestKind.HOLD]


def test_a_job_made_of_pods_can_be_released_while_they_stop(store: MemoryStore, control: Control) -> None:
    _put(store, JobState.RUNNING)
    store.commit(Changes(workloads={"job000001": KubeJobRecord(id="job000001", suspended=True)}))
    control.release("train")
    assert _asked(store) == [RequestKind.RELEASE]


def test_a_running_job_made_of_pods_that_was_not_held_cannot_be_released(store: MemoryStore, control: Control) -> None:
    _put(store, JobState.RUNNING)
    store.commit(Changes(workloads={"job000001": KubeJobRecord(id="job000001")}))
    with pytest.raises(Conflict, match="only a held job"):
        control.release("train")


def test_a_job_that_is_being_cancelled_cannot_be_held(store: MemoryStore, control: Control) -> None:
    _put(store, JobState.RUNNING, cancel_requested=True)
    store.commit(Changes(workloads={"job000001": KubeJobRecord(id="job000001")}))
    with pytest.raises(Conflict, match="being cancelled"):
        control.hold("train")


@pytest.mark.parametrize("state", [*ENDED, JobState.CANCELLED])
def test_a_job_that_has_ended_cannot_be_held(store: MemoryStore, control: Control, state: JobState) -> None:
    _put(store, state)
    with pytest.raises(Conflict):
        control.hold("train")


def test_holding_a_held_job_asks_nothing(store: MemoryStore, control: Control) -> None:
    _put(store, JobState.HELD)
    control.hold("train")
    assert _asked(store) == []


def test_a_held_job_can_be_released(store: MemoryStore, control: Control) -> None:
    _put(store, JobState.HELD)
    control.release("train")
    assert _asked(store) == [RequestKind.RELEASE]


@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.RUNNING, JobState.BACKOFF, *ENDED])
def test_only_a_held_job_can_be_released(store: MemoryStore, control: Control, state: JobState) -> None:
    _put(store, state)
    with pytest.raises(Conflict, match="only a held job"):
        control.release("train")


def test_a_hold_not_acted_on_yet_can_be_released(store: MemoryStore, control: Control) -> None:
    control.hold("train")
    control.release("train")
    assert _asked(store) == [RequestKind.HOLD, RequestKind.RELEASE]


def test_an_unknown_job_is_not_found(control: Control) -> None:
    with pytest.raises(NotFound):
        control.cancel("nope")
