"""The client's calls that rerun tasks of arrays, hold, release and change them, through the whole API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.api.http.serving.app import create_app
from holdfast.api.http.serving.gates import Entrance
from holdfast.app.inprocess import in_process
from holdfast.compiled.codec import load_array, load_change
from holdfast.domain.access import Principal
from holdfast.domain.job import ChildOf, JobState
from holdfast.domain.record import evolve
from holdfast.domain.workloads.array.model import Array, ArrayState
from holdfast.errors import Conflict, InvalidManifest, InvalidRequest, NotFound
from holdfast.ports.store import Changes
from holdfast.wire.arrays import ArrayRerun
from tests.contract.test_client_api import JOB, Counting, Noon, OneLog
from tests.contract.test_store_overview import job
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.client import Client


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def client(store: MemoryStore) -> Iterator[Client]:
    app = create_app(store=store, clock=Noon(), ids=Counting(), logs=OneLog(), entrance=Entrance(Principal("tester")))
    with in_process(app.state.backend, Principal("tester")) as client:
        yield client


def cancelled(client: Client, store: MemoryStore, name: str) -> None:
    """Submit an array, and end it before any of its tasks began."""
    row = store.workload(Array, client.submit_array({**JOB, "name": name, "array": {"indices": "0-1"}}).id)
    store.commit(Changes(workloads={row.id: evolve(row, state=ArrayState(made=0, status="Cancelled"))}))


def test_an_array_of_any_name_is_rerun(client: Client, store: MemoryStore) -> None:
    cancelled(client, store, "Sweep_LR.v2")
    assert client.rerun_array("Sweep_LR.v2", ArrayRerun(cancelled=True)).name == "Sweep_LR.v2-rerun-1"


@pytest.mark.parametrize("name", [None, "-", "a b"])
def test_a_rerun_that_cannot_have_its_name_asks_for_another(
    client: Client, store: MemoryStore, name: str | None
) -> None:
    cancelled(client, store, "s" * 60)
    with pytest.raises(InvalidRequest, match=r"- name: ") as refused:
        client.rerun_array("s" * 60, ArrayRerun(cancelled=True, name=name))
    [problem] = refused.value.problems
    assert "--name" in str(problem.hint) or "letters, digits" in str(problem.hint)
    assert client.rerun_array("s" * 60, ArrayRerun(cancelled=True, name="B_1")).name == "B_1"


def test_tasks_of_an_array_are_rerun_with_changes_once_and_every_refusal_says_what_to_do(
    client: Client, store: MemoryStore
) -> None:
    first = client.submit_array({**JOB, "array": {"indices": "0-4"}})
    with pytest.raises(Conflict, match="tasks 1,3 of array 'train' have not ended yet"):
        client.rerun_array("train", ArrayRerun(indices="1,3"))
    row = store.workload(Array, first.id)
    store.commit(Changes(workloads={row.id: evolve(row, state=ArrayState(made=1, status="Cancelled"))}))
    wanted = ArrayRerun(cancelled=True, indices="1,3", set={"resources": {"memory": "4Gi"}, "env": {"A": "1"}})
    assert client.rerun_array("train", wanted, dry_run=True).indices == "1,3"
    assert [one.name for one in client.arrays()] == ["train"]
    made = client.rerun_array("train", wanted)
    assert (made.name, made.total, made.indices, made.waiting) == ("train-rerun-1", 2, "1,3", 2)
    assert made.rerun_of is not None
    assert (made.rerun_of.id, client.array("train-rerun-1").rerun_of) == (first.id, made.rerun_of)
    assert [one.name for one in client.array_why("train").reruns] == ["train-rerun-1"]
    job = load_array(store.workload(Array, made.id).spec).job
    assert (job.resources.memory, job.env, job.command) == (4 << 30, {"A": "1"}, ("true",))
    [warning] = client.rerun_array("train", ArrayRerun(cancelled=True, indices="2-3", name="other")).warnings
    assert warning.message == "task 3 was left out: rerun already in train-rerun-1"
    for bad, error, message in (
        (ArrayRerun(cancelled=True, indices="1-3"), Conflict, r"already: other \(job0*3\), train-rerun-1 \(job0*2\)"),
        (ArrayRerun(indices="0", name="not a name"), InvalidManifest, "name 'not a name' is invalid"),
        (ArrayRerun(indices="0", set={"queue": "x"}), InvalidManifest, "queue: cannot be changed"),
        (ArrayRerun(indices="0", set={"deadlin": "1h"}), InvalidManifest, "hint: did you mean deadline\\?"),
        (ArrayRerun(indices="x"), InvalidManifest, "'x' is not a range of indexes"),
        (ArrayRerun(indices="0", set={"retryPolicies": ["none"]}), InvalidManifest, "does not exist"),
        (ArrayRerun(), InvalidRequest, "say which tasks to run again"),
    ):
        with pytest.raises(error, match=message):
            client.rerun_array("train", bad)


def test_an_array_is_seen_at_a_glance_while_tasks_of_it_are(client: Client, store: MemoryStore) -> None:
    row = store.workload(Array, client.submit_array({**JOB, "array": {"indices": "0-4"}}).id)
    tasks = [evolve(job(f"t{index}"), state=JobState.RUNNING, child=ChildOf(row.id, "", index)) for index in range(2)]
    started = evolve(row, state=ArrayState(made=2))
    store.commit(Changes(workloads={row.id: started}, new_jobs={task.id: task for task in tasks}))
    [seen] = client.overview().arrays
    assert (seen.name, seen.total, seen.running, seen.waiting) == ("train", 5, 2, 3)
    over = evolve(row, state=ArrayState(made=2, status="Cancelled"))
    store.commit(Changes(workloads={row.id: evolve(over, version=started.version)}))
    assert client.overview().arrays == []


def test_an_array_is_held_once_and_released_once_also_before_anybody_acts_on_it(
    client: Client, store: MemoryStore
) -> None:
    row = store.workload(Array, client.submit_array({**JOB, "array": {"indices": "0-4"}}).id)
    with pytest.raises(Conflict, match="array 'train' is Queued: only a held array can be released"):
        client.release_array("train")
    for _ in range(2):
        client.hold_array("train", reason="too hot")
    client.release_array("train")
    assert [request.kind.value for request in store.requests(limit=9)] == ["submit", "hold", "release"]
    assert [(entry.action, entry.kind) for entry in client.audit()][-2:] == [("hold", "array"), ("release", "array")]
    store.commit(Changes(workloads={row.id: evolve(row, state=ArrayState(made=2, held="too hot"))}))
    held = client.array("train")
    assert (held.state, held.reason) == ("Held", "too hot")
    assert [one.name for one in client.arrays(states=["held"])] == ["train"]
    assert client.array_why("train").headline == "Array train is held: too hot. Of 5 tasks: 5 waiting."
    store.commit(Changes(workloads={row.id: evolve(row, state=ArrayState(made=2, status="Failed"))}))
    with pytest.raises(Conflict, match="array 'train' is Failed: it cannot be held"):
        client.hold_array("train")


def test_an_array_that_is_applied_again_is_unchanged_or_gets_other_limits_and_nothing_else(
    client: Client, store: MemoryStore
) -> None:
    manifest = {**JOB, "labels": {"a": "b"}, "dependsOn": ["prep:ended"], "array": {"indices": "0-4", "maxRunning": 2}}
    client.submit({"name": "prep", "command": ["x"]})
    with pytest.raises(NotFound, match="array 'train' does not exist"):
        client.put_array("train", manifest)
    first = client.submit_array(manifest)
    assert client.put_array("train", manifest).result == "unchanged"
    listed = {**manifest, "array": {"indices": "0,1,2-4", "maxRunning": 2}}
    assert client.put_array("train", listed).result == "unchanged"
    wider = {**manifest, "array": {"indices": "0-4", "maxRunning": 4, "maxFailures": 0}}
    assert client.check([wider], verb="apply").items[0].name == "train"
    assert [client.put_array("train", wider).result for _ in range(2)] == ["updated", "unchanged"]
    [_, _, asked] = store.requests(limit=9)
    spec = load_array(load_change(asked.payload).spec)
    assert (asked.kind.value, spec.max_running, spec.max_failures, spec.job.after[0].id) == (
        "update", 4, 0, "job00000001",
    )  # fmt: skip
    other = {**manifest, "command": ["x"], "dependsOn": "prep", "array": {"indices": "0-5", "success": "any"}}
    for refused in (lambda: client.put_array("train", other), lambda: client.check([other], verb="apply")):
        with pytest.raises(Conflict, match="only its limits can be changed") as told:
            refused()
        assert {problem.path for problem in told.value.problems} == {
            "command", "dependsOn", "array.indices", "array.success",
        }  # fmt: skip
        assert told.value.problems[0].allowed == ("array.maxRunning", "array.maxFailures")
    row = store.workload(Array, first.id)
    store.commit(Changes(workloads={row.id: evolve(row, state=ArrayState(status="Failed"))}))
    with pytest.raises(Conflict, match="array 'train' is Failed: its limits cannot be changed"):
        client.put_array("train", manifest)


def test_an_array_that_waits_says_so_when_it_is_submitted(client: Client) -> None:
    prep = client.submit({**JOB, "name": "prep"})
    sweep = {**JOB, "name": "sweep", "array": {"indices": "0-1"}, "dependsOn": "prep"}
    for answer in (client.check_array(sweep), client.submit_array(sweep)):
        assert (answer.state, answer.reason) == ("Waiting", "waits for job prep to succeed")
    assert [one.id for one in client.array("sweep").depends_on] == [prep.id]
