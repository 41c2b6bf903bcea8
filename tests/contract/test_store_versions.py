"""What every store promises about the versions of job sets: nothing asked of one gets between a look and a request."""

from __future__ import annotations

import itertools
import threading
from functools import partial
from typing import TYPE_CHECKING, Protocol

import pytest

from holdfast.compiled.codec import load_change, load_set_spec
from holdfast.domain.access import Principal
from holdfast.domain.audit import Act, Caller
from holdfast.domain.record import evolve
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.errors import Conflict, NotFound, VersionConflict
from holdfast.ports.requests import Request, RequestKind
from holdfast.ports.store import Changes, Submission
from holdfast.ports.workloads import AskedOf
from holdfast.service.jobsets.sets import SetWriter
from holdfast.service.steering.control import Control
from holdfast.service.steering.jobsets import JOB_SETS
from tests.unit.conftest import VirtualClock
from tests.unit.jobset_lab import group, manifest
from tests.unit.jobset_service import Counting

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.ports.store import Store


class Place(Protocol):
    def open(self) -> Store: ...


def job_set(set_id: str = "s1") -> JobSet:
    return JobSet(id=set_id, name=f"name-{set_id}", created_at=90.0, manifest="{}", updated_at=90.0)


def request(kind: RequestKind = RequestKind.HOLD, set_id: str = "s1") -> Request:
    return Request(kind, (set_id,), 1.0)


def at_once(tasks: list[Callable[[], object]]) -> list[Exception]:
    """Do all of it at once; returns what was raised."""
    together, raised = threading.Barrier(len(tasks)), list[Exception]()

    def do(task: Callable[[], object]) -> None:
        together.wait()
        try:
            task()
        except Exception as error:  # noqa: BLE001 - looked at by the test
            raised.append(error)

    threads = [threading.Thread(target=do, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_a_set_has_another_version_after_each_request_and_no_other_set_has(store: Store) -> None:
    store.submit(Submission([], owner=job_set()))
    store.submit(Submission([], owner=job_set("s2")))
    versions = [store.workload(JobSet, "s1").resource_version]
    for kind in (RequestKind.UPDATE, RequestKind.HOLD, RequestKind.RESTART, RequestKind.DELETE):
        store.append(request(kind))
        versions.append(store.workload(JobSet, "s1").resource_version)
    assert len({*versions}) == 5
    assert store.workload(JobSet, "s2") == job_set("s2")
    assert store.workload(JobSet, "s2").resource_version not in versions


def test_a_commit_leaves_the_version_that_requests_gave(store: Store) -> None:
    store.submit(Submission([], owner=job_set()))
    read = store.workload(JobSet, "s1")
    store.append(request())
    store.commit(Changes(workloads={"s1": evolve(read, generation=2)}, handled=[1, 2]))
    found = store.workload(JobSet, "s1")
    assert (found.generation, found.version) == (2, read.version + 1)


def test_a_request_for_an_older_version_leaves_nothing(store: Store) -> None:
    store.submit(Submission([], owner=job_set()))
    store.append(request(), version=1)
    before = store.requests(limit=9)
    with pytest.raises(VersionConflict) as caught:
        store.append(request(RequestKind.DELETE), caller=Caller(Principal("ann"), 1.0), version=1)
    assert caught.value.current == store.workload(JobSet, "s1").resource_version
    assert (store.requests(limit=9), store.workload(JobSet, "s1").version, store.audit(limit=9)) == (before, 2, [])
    store.append(request(RequestKind.DELETE), caller=Caller(Principal("ann"), 1.0), version=2)
    assert [entry.act for _, entry in store.audit(limit=9)] == [Act.DELETE]
    with pytest.raises(NotFound):
        store.append(request(set_id="gone"), version=1)


def test_a_set_is_read_with_what_was_asked_of_it_and_not_acted_on_yet(store: Store) -> None:
    for set_id in ("s1", "s2"):
        store.submit(Submission([], owner=job_set(set_id)))
    for kind, set_id in (("HOLD", "s1"), ("RELEASE", "s2"), ("DELETE", "s1")):
        store.append(request(RequestKind[kind], set_id))
    store.append(Request(RequestKind.CANCEL, ("s1",), 1.0))
    found = store.asked_of(JobSet, "name-s1")
    assert (found.workload, store.asked_of(JobSet, "s1")) == (store.workload(JobSet, "s1"), found)
    assert [one.kind for one in found.requests] == [RequestKind.HOLD, RequestKind.DELETE, RequestKind.CANCEL]
    assert store.all_asked_of(JobSet) == [found, store.asked_of(JobSet, "s2")]
    assert store.all_asked_of(JobSet, after="name-s1", limit=5) == [store.asked_of(JobSet, "s2")]
    assert [one.workload.id for one in store.all_asked_of(JobSet, limit=1)] == ["s1"]
    store.commit(Changes(handled=[one.id for one in found.requests]))
    assert store.asked_of(JobSet, "s1") == AskedOf(store.workload(JobSet, "s1"), [])
    with pytest.raises(NotFound):
        store.asked_of(JobSet, "gone")


def test_of_ten_requests_for_one_version_at_once_one_is_accepted(place: Place) -> None:
    store = place.open()
    store.submit(Submission([], owner=job_set()))
    stores = [place.open() for _ in range(10)]
    raised = at_once([lambda one=one: one.append(request(), version=1) for one in stores])  # type: ignore[misc]
    assert {type(error) for error in raised} == {VersionConflict}
    assert (len(raised), len(store.asked_of(JobSet, "s1").requests), store.workload(JobSet, "s1").version) == (9, 1, 2)


def test_of_ten_first_puts_at_once_one_creates_and_none_is_refused(place: Place) -> None:
    ids, documents = Counting(), [manifest(replicatedJobs=[group("w")], suspend=bool(n % 2)) for n in range(10)]
    services = [SetWriter(place.open(), VirtualClock(), ids) for _ in documents]
    results: list[str] = []

    def put(sets: SetWriter, document: dict[str, object]) -> None:
        results.append(sets.put(document).result)

    pairs = zip(services, documents, strict=True)
    assert at_once([lambda one=one, document=document: put(one, document) for one, document in pairs]) == []  # type: ignore[misc]
    assert results.count("created") == 1
    asked = services[0].store.asked_of(JobSet, "train")
    assert asked.workload.version == 1 + len(asked.requests) == 1 + results.count("updated")
    suspensions = [load_set_spec(load_change(one.payload).spec).suspend for one in asked.requests]
    assert all(one is not other for one, other in itertools.pairwise(suspensions))


def test_of_ten_changes_and_a_deletion_at_once_nothing_is_accepted_after_the_deletion(place: Place) -> None:
    ids, store = Counting(), place.open()
    SetWriter(store, VirtualClock(), ids).put(manifest(replicatedJobs=[group("w")]))
    suspended = manifest(replicatedJobs=[group("w")], suspend=True)
    tasks: list[Callable[[], object]] = []
    for number in range(10):
        sets, control = SetWriter(place.open(), VirtualClock(), ids), Control(JOB_SETS, place.open(), VirtualClock())
        tasks.append(partial(sets.put, suspended) if number % 2 else partial(control.ask, Act.RESUME, "train"))
    deleting = Control(JOB_SETS, place.open(), VirtualClock())
    raised = at_once([*tasks, lambda: deleting.ask(Act.DELETE, "train")])
    assert all(type(error) is Conflict for error in raised)
    assert [one.kind for one in store.asked_of(JobSet, "train").requests][-1] is RequestKind.DELETE
