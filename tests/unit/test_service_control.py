"""Cancel, hold, release and retry: which states allow them, and what is asked of the controller."""

from __future__ import annotations

import pytest

from holdfast.compiled.codec import dump_spec, load_spec
from holdfast.dialects.native.patch import patched
from holdfast.domain.job import ChildOf, Job, JobState, Resources
from holdfast.domain.record import evolve
from holdfast.domain.workloads.kubejob.stored import KubeJobRecord
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import Conflict, HoldfastError, InvalidManifest, NotFound
from holdfast.ports.requests import RequestKind
from holdfast.ports.store import Changes, Submission
from holdfast.service.control import Control
from tools.memory_store import MemoryStore


class Noon:
    def now(self) -> float:
        return 1000.0


SPEC = JobSpec("train", ("true",), env={"A": "1"}, resources=Resources(500), total_deadline_s=10_000.0)


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    store.submit(Submission([Job("job000001", "train", "default", 0, 1.0, dump_spec(SPEC))]))
    (taken_in,) = store.requests(limit=1)
    store.commit(Changes(handled=[taken_in.id]))
    return store


@pytest.fixture
def control(store: MemoryStore) -> Control:
    return Control(store, Noon(), actor="ann")


def _put(store: MemoryStore, state: JobState, *, cancel_requested: bool = False) -> None:
    job = evolve(store.job("job000001"), state=state, cancel_requested=cancel_requested)
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


def test_a_running_job_can_be_held(store: MemoryStore, control: Control) -> None:
    _put(store, JobState.RUNNING)
    control.hold("train")
    assert _asked(store) == [RequestKind.HOLD]


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


@pytest.mark.parametrize("state", [*ENDED, JobState.CANCELLED, *WAITING, JobState.HELD])
def test_a_job_that_does_not_run_can_be_retried(store: MemoryStore, control: Control, state: JobState) -> None:
    _put(store, state, cancel_requested=state is JobState.CANCELLED)
    control.retry("train", "fixed the data")
    (request,) = store.requests(limit=9)
    assert (request.kind, request.payload, request.reason) == (RequestKind.RETRY, "", "fixed the data")


def test_a_retry_changes_what_is_asked_of_it_and_keeps_the_memory_that_grew(
    store: MemoryStore, control: Control
) -> None:
    job = evolve(store.job("job000001"), state=JobState.FAILED, request=Resources(500, 1 << 30))
    store.commit(Changes(jobs={job.id: job}))
    control.retry("train", change=lambda spec: patched(spec, {"env": {"B": "2"}, "resources": {"cpu": 2}}))
    (request,) = store.requests(limit=9)
    wanted = evolve(SPEC, env={"A": "1", "B": "2"}, resources=Resources(2000, 1 << 30))
    assert load_spec(request.payload) == wanted


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"state": JobState.RUNNING}, "is running"),
        ({"state": JobState.WAITING}, "waits for others"),
        ({"state": JobState.QUEUED, "cancel_requested": True}, "is being cancelled"),
        ({"state": JobState.FAILED, "child": ChildOf("s", "workers", 0)}, "belongs to a job set"),
        ({"state": JobState.FAILED, "child": ChildOf("a", "", 3)}, "is a task of an array"),
        ({"state": JobState.FAILED, "submitted_at": -9001.0}, "total deadline of job 'train'"),
    ],
)
def test_what_cannot_be_retried_is_said_with_its_reason(
    store: MemoryStore, control: Control, change: dict[str, object], message: str
) -> None:
    job = evolve(store.job("job000001"), **change)  # type: ignore[arg-type]  # fields by name
    store.commit(Changes(jobs={job.id: job}))
    with pytest.raises(Conflict, match=message) as refused:
        control.retry("train")
    assert refused.value.hint
    assert not _asked(store)


@pytest.mark.parametrize(
    ("patch", "paths"),
    [
        ({"queue": "other", "name": "x"}, ["queue", "name"]),
        ({"resources": {"memory": "lots"}, "deadline": "soon"}, ["resources.memory", "deadline"]),
        ({"retryPolicies": ["nobody"]}, ["spec.retryPolicies[0]"]),
        ({"command": ["a"], "shell": "b"}, ["shell"]),
    ],
)
def test_all_that_is_wrong_with_a_change_is_said_and_nothing_is_asked(
    store: MemoryStore, control: Control, patch: dict[str, object], paths: list[str]
) -> None:
    _put(store, JobState.FAILED)
    with pytest.raises(HoldfastError) as refused:
        control.retry("train", change=lambda spec: patched(spec, patch))
    assert isinstance(refused.value, InvalidManifest)
    assert [problem.path for problem in refused.value.problems] == paths
    assert not _asked(store)


@pytest.mark.parametrize(
    ("patch", "changed"),
    [
        ({"env": {"A": None}}, {"env": {}}),
        ({"deadline": "2h", "grace": 0}, {"deadline_s": 7200.0, "grace_s": 0.0}),
        ({"totalDeadline": None}, {"total_deadline_s": None}),
        ({"shell": "exit 0"}, {"command": ("/bin/sh", "-c", "exit 0")}),
        ({"nodeSelector": {"zone": "a"}}, {"node_selector": {"zone": "a"}}),
    ],
)
def test_a_patch_changes_what_it_names_alone(patch: dict[str, object], changed: dict[str, object]) -> None:
    assert patched(SPEC, patch) == evolve(SPEC, **changed)  # type: ignore[arg-type]  # fields by name
