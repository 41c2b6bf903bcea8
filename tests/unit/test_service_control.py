"""Cancel, hold, release and retry: which states allow them, and what is asked of the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.compiled.codec import dump_spec, load_spec
from holdfast.dialects.native.patch import patched
from holdfast.domain.audit import Act
from holdfast.domain.job import ChildOf, Job, JobState, Resources
from holdfast.domain.record import evolve
from holdfast.domain.workloads.array.model import Array, ArraySpec, Indexes
from holdfast.domain.workloads.kubejob.records import KubeJobRecord
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import Conflict, HoldfastError, InvalidManifest, NotFound, Unavailable
from holdfast.ports.requests import RequestKind
from holdfast.ports.store import Changes, Submission
from holdfast.service.steering.arrays import ARRAYS
from holdfast.service.steering.control import Control
from holdfast.service.steering.jobs import JOBS
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from holdfast.domain.audit import Caller
    from holdfast.ports.requests import Request
    from holdfast.service.steering.control import Steering


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
def control(store: MemoryStore) -> Control[Job]:
    return Control(JOBS, store, Noon(), actor="ann")


def _put(store: MemoryStore, state: JobState, *, cancel_requested: bool = False) -> None:
    job = evolve(store.job("job000001"), state=state, cancel_requested=cancel_requested)
    store.commit(Changes(jobs={job.id: job}))


def _asked(store: MemoryStore) -> list[RequestKind]:
    return [request.kind for request in store.requests(limit=9)]


ENDED = [JobState.SUCCEEDED, JobState.FAILED]
WAITING = [JobState.QUEUED, JobState.BACKOFF]


@pytest.mark.parametrize("state", [*WAITING, JobState.RUNNING, JobState.HELD])
def test_a_job_that_has_not_ended_can_be_cancelled(store: MemoryStore, control: Control[Job], state: JobState) -> None:
    _put(store, state)
    control.ask(Act.CANCEL, "train", "typo")
    (request,) = store.requests(limit=9)
    assert (request.kind, request.targets, request.actor, request.reason, request.created_at) == (
        RequestKind.CANCEL,
        ("job000001",),
        "ann",
        "typo",
        1000.0,
    )


@pytest.mark.parametrize("state", [*WAITING, JobState.RUNNING, JobState.HELD])
def test_the_controller_is_asked_to_cancel_unless_a_job_has_started_if_it_had_not_yet(
    store: MemoryStore, control: Control[Job], state: JobState
) -> None:
    control.ask(Act.CANCEL, "train", what={"unless_started": True})
    assert _asked(store) == [RequestKind.CANCEL_UNLESS_STARTED]
    started = evolve(store.job("job000001"), state=state, started_at=2.0)
    store.commit(Changes(jobs={started.id: started}))
    with pytest.raises(Conflict, match="has started, so it was not cancelled"):
        control.ask(Act.CANCEL, "train", what={"unless_started": True})


@pytest.mark.parametrize("state", ENDED)
def test_a_job_that_has_ended_cannot_be_cancelled(store: MemoryStore, control: Control[Job], state: JobState) -> None:
    _put(store, state)
    with pytest.raises(Conflict, match=f"has already ended: {state}"):
        control.ask(Act.CANCEL, "train")
    assert _asked(store) == []


@pytest.mark.parametrize(("state", "requested"), [(JobState.CANCELLED, False), (JobState.RUNNING, True)])
def test_cancelling_twice_asks_once(
    store: MemoryStore, control: Control[Job], state: JobState, *, requested: bool
) -> None:
    _put(store, state, cancel_requested=requested)
    assert control.ask(Act.CANCEL, "train").id == "job000001"
    assert _asked(store) == []


@pytest.mark.parametrize("state", WAITING)
def test_a_waiting_job_can_be_held(store: MemoryStore, control: Control[Job], state: JobState) -> None:
    _put(store, state)
    control.ask(Act.HOLD, "train")
    assert _asked(store) == [RequestKind.HOLD]


def test_a_running_job_can_be_held(store: MemoryStore, control: Control[Job]) -> None:
    _put(store, JobState.RUNNING)
    control.ask(Act.HOLD, "train")
    assert _asked(store) == [RequestKind.HOLD]


def test_a_running_job_made_of_pods_can_be_held(store: MemoryStore, control: Control[Job]) -> None:
    _put(store, JobState.RUNNING)
    store.commit(Changes(workloads={"job000001": KubeJobRecord(id="job000001")}))
    control.ask(Act.HOLD, "train")
    assert _asked(store) == [RequestKind.HOLD]


def test_a_job_made_of_pods_can_be_released_while_they_stop(store: MemoryStore, control: Control[Job]) -> None:
    _put(store, JobState.RUNNING)
    store.commit(Changes(workloads={"job000001": KubeJobRecord(id="job000001", suspended=True)}))
    control.ask(Act.RELEASE, "train")
    assert _asked(store) == [RequestKind.RELEASE]


def test_a_running_job_made_of_pods_that_was_not_held_cannot_be_released(
    store: MemoryStore, control: Control[Job]
) -> None:
    _put(store, JobState.RUNNING)
    store.commit(Changes(workloads={"job000001": KubeJobRecord(id="job000001")}))
    with pytest.raises(Conflict, match="only a held job"):
        control.ask(Act.RELEASE, "train")


def test_a_job_that_is_being_cancelled_cannot_be_held(store: MemoryStore, control: Control[Job]) -> None:
    _put(store, JobState.RUNNING, cancel_requested=True)
    store.commit(Changes(workloads={"job000001": KubeJobRecord(id="job000001")}))
    with pytest.raises(Conflict, match="being cancelled"):
        control.ask(Act.HOLD, "train")


@pytest.mark.parametrize("state", [*ENDED, JobState.CANCELLED])
def test_a_job_that_has_ended_cannot_be_held(store: MemoryStore, control: Control[Job], state: JobState) -> None:
    _put(store, state)
    with pytest.raises(Conflict):
        control.ask(Act.HOLD, "train")


def test_holding_a_held_job_asks_nothing(store: MemoryStore, control: Control[Job]) -> None:
    _put(store, JobState.HELD)
    control.ask(Act.HOLD, "train")
    assert _asked(store) == []


def test_a_held_job_can_be_released(store: MemoryStore, control: Control[Job]) -> None:
    _put(store, JobState.HELD)
    control.ask(Act.RELEASE, "train")
    assert _asked(store) == [RequestKind.RELEASE]


@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.RUNNING, JobState.BACKOFF, *ENDED])
def test_only_a_held_job_can_be_released(store: MemoryStore, control: Control[Job], state: JobState) -> None:
    _put(store, state)
    with pytest.raises(Conflict, match="only a held job"):
        control.ask(Act.RELEASE, "train")


def test_a_hold_not_acted_on_yet_can_be_released(store: MemoryStore, control: Control[Job]) -> None:
    control.ask(Act.HOLD, "train")
    control.ask(Act.RELEASE, "train")
    assert _asked(store) == [RequestKind.HOLD, RequestKind.RELEASE]


def test_an_unknown_job_is_not_found(control: Control[Job]) -> None:
    with pytest.raises(NotFound):
        control.ask(Act.CANCEL, "nope")


@pytest.mark.parametrize("state", [*ENDED, JobState.CANCELLED, *WAITING, JobState.HELD])
def test_a_job_that_does_not_run_can_be_retried(store: MemoryStore, control: Control[Job], state: JobState) -> None:
    _put(store, state, cancel_requested=state is JobState.CANCELLED)
    control.ask(Act.RETRY, "train", "fixed the data")
    (request,) = store.requests(limit=9)
    assert (request.kind, request.payload, request.reason) == (RequestKind.RETRY, "", "fixed the data")


def test_a_retry_changes_what_is_asked_of_it_and_keeps_the_memory_that_grew(
    store: MemoryStore, control: Control[Job]
) -> None:
    job = evolve(store.job("job000001"), state=JobState.FAILED, request=Resources(500, 1 << 30))
    store.commit(Changes(jobs={job.id: job}))
    control.ask(
        Act.RETRY, "train", what={"change": lambda spec: patched(spec, {"env": {"B": "2"}, "resources": {"cpu": 2}})}
    )
    (request,) = store.requests(limit=9)
    wanted = evolve(SPEC, env={"A": "1", "B": "2"}, resources=Resources(2000, 1 << 30))
    assert load_spec(request.payload) == wanted


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"state": JobState.RUNNING}, "is running"),
        ({"state": JobState.WAITING}, "waits for other work"),
        ({"state": JobState.QUEUED, "cancel_requested": True}, "is being cancelled"),
        ({"state": JobState.FAILED, "child": ChildOf("s", "workers", 0)}, "belongs to a job set"),
        ({"state": JobState.FAILED, "child": ChildOf("a", "", 3)}, "is a task whose end"),
        ({"state": JobState.FAILED, "submitted_at": -9001.0}, "total deadline of job 'train'"),
    ],
)
def test_what_cannot_be_retried_is_said_with_its_reason(
    store: MemoryStore, control: Control[Job], change: dict[str, object], message: str
) -> None:
    job = evolve(store.job("job000001"), id="job000002", **change)  # type: ignore[arg-type]  # fields by name
    store.submit(Submission([job]))
    store.commit(Changes(jobs={job.id: job}, handled=[one.id for one in store.requests(limit=9)]))
    with pytest.raises(Conflict, match=message) as refused:
        control.ask(Act.RETRY, job.id)
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
    store: MemoryStore, control: Control[Job], patch: dict[str, object], paths: list[str]
) -> None:
    _put(store, JobState.FAILED)
    with pytest.raises(HoldfastError) as refused:
        control.ask(Act.RETRY, "train", what={"change": lambda spec: patched(spec, patch)})
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


class Full(MemoryStore):
    """A store whose disk is full until somebody makes room."""

    room = True

    def append(self, request: Request, *, caller: Caller | None = None, version: int | None = None) -> None:
        if not self.room:
            raise Unavailable
        super().append(request, caller=caller, version=version)

    def make_room(self) -> bool:
        self.room = True
        return True


@pytest.mark.parametrize("rules", [JOBS, ARRAYS], ids=["job", "array"])
def test_what_fills_the_disk_can_be_cancelled_but_not_held(rules: Steering[Any]) -> None:
    store = Full()
    spec = dump_spec(ArraySpec(JobSpec("train", ("true",)), (Indexes(0, 1),)))
    store.submit(Submission([], owner=Array(id="a1", name="train", spec=spec)))
    store.submit(Submission([Job("job000001", "train", "default", 0, 1.0, dump_spec(SPEC))]))
    store.room = False
    control = Control(rules, store, Noon(), make_room=store.make_room)
    with pytest.raises(Unavailable):
        control.ask(Act.HOLD, "train")
    control.ask(Act.CANCEL, "train")
    assert _asked(store)[-1] is RequestKind.CANCEL
