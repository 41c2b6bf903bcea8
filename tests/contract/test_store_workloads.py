"""What every store promises about workloads of any kind: a new one needs its record, and nothing of the store's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.compiled.workloads import KINDS, Stored
from holdfast.domain.job import Job, JobState, Run
from holdfast.domain.record import evolve
from holdfast.domain.workloads.base import Workload
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.domain.workloads.kubejob.records import KubeJobRecord
from holdfast.errors import AlreadyExists, Internal, NotFound
from holdfast.ports.requests import RequestKind
from holdfast.ports.store import Changes, Submission
from holdfast.ports.workloads import WorkloadFilter

if TYPE_CHECKING:
    from holdfast.ports.store import Store
    from tests.contract.conftest import SqlPlace


class Service(Workload, frozen=True):
    """A kind of work Holdfast does not have."""

    replicas: int = 1
    routes: tuple[str, ...] = ()
    run: str = ""

    kind = "service"
    noun = "service"

    @property
    def last_runs(self) -> tuple[str, ...]:
        return (self.run,) if self.run else ()


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, Service.kind, Stored(Service))


def job(job_id: str) -> Job:
    return Job(job_id, job_id, "default", 0, 100.0, "{}", queued_at=100.0, updated_at=100.0)


WEB = Service(
    "w", name="web", spec="{}", manifest="web: {}", expires_at=8.5, created_at=1.0, submitted_by="ann",
    submitter_uid=1001, replicas=3, routes=("a",),
)  # fmt: skip


def test_a_kind_that_was_registered_is_kept_with_every_field(store: Store) -> None:
    store.submit(Submission([job("w-1")], owner=WEB))
    assert store.workload(Service, "web") == store.workload(Service, "w") == WEB
    changed = evolve(
        WEB, owner="o", name="x", version=7, created_at=9.0, generation=2, spec="s", manifest="m", deleting=True,
        expires_at=9.5, updated_at=9.5, submitted_by="ben", submitter_uid=None, replicas=1, routes=("☃", "\udcff"),
    )  # fmt: skip
    store.commit(Changes(workloads={"w": changed}))
    kept = evolve(changed, owner=WEB.owner, name=WEB.name, version=WEB.version, created_at=WEB.created_at)
    kept = evolve(kept, submitted_by="ann", submitter_uid=1001)
    assert store.workload(Service, "w") == kept
    assert store.workloads(Service) == [kept]
    assert store.load().of(Service) == store.workloads_by_id(Service, ["w", "none"]) == {"w": kept}
    store.commit(Changes(forgotten={"w": None}))
    assert (store.workloads(Service), store.load().workloads) == ([], {})


def test_a_job_may_have_a_record_of_its_kind_which_goes_with_it(store: Store) -> None:
    store.submit(Submission([job("j1"), job("j2")]))
    records = {key: Service(key, owner="w", run="j1-1-0-1" if key == "j1" else "") for key in ("j1", "j2")}
    run = Run("j1-1-0-1", "j1", 1, 0, generation=4)
    store.commit(Changes(workloads={**records}, runs={run.uid: run}))
    snapshot = store.load()
    assert (snapshot.of(Service), snapshot.runs) == (records, [run])
    store.commit(Changes({"j1": evolve(store.job("j1"), state=JobState.SUCCEEDED, ended_at=1.0)}))
    assert store.load().of(Service) == {"j2": records["j2"]}
    assert store.workloads_by_id(Service, ["j1"]) == {"j1": records["j1"]}
    assert store.delete_finished(["j1", "j2"]) == 1
    assert store.workloads_by_id(Service, ["j1", "j2"]) == {"j2": records["j2"]}


def test_kinds_do_not_see_each_other(store: Store) -> None:
    store.submit(Submission([job("j")], owner=WEB))
    store.submit(Submission([], owner=JobSet("s", name="web")))
    store.commit(Changes(workloads={"j": KubeJobRecord("j")}))
    assert [store.workload(kind, "web").id for kind in (Service, JobSet)] == ["w", "s"]
    assert [list(store.load().of(kind)) for kind in (Service, JobSet, KubeJobRecord)] == [["w"], ["s"], ["j"]]
    assert store.workloads_by_id(JobSet, ["w", "s", "j"]) == {"s": store.workload(JobSet, "web")}
    assert [each.id for each in store.workloads(JobSet, after="w")] == ["s"]
    with pytest.raises(NotFound, match="no service has"):
        store.workload(Service, "s")
    with pytest.raises(AlreadyExists, match="service 'web' exists"):
        store.submit(Submission([], owner=evolve(WEB, id="other")))


def test_workloads_are_listed_by_who_submitted_them(store: Store) -> None:
    others = [evolve(WEB, id=key, name=key, submitted_by=name) for key, name in {"a": "ben", "x": "ann"}.items()]
    store.submit(Submission([], also=[WEB, *others]))
    hers = WorkloadFilter(submitted_by="ann")
    assert [each.id for each in store.workloads(Service, hers)] == ["w", "x"]
    assert [each.id for each in store.workloads(Service, hers, after="web", limit=1)] == ["x"]
    assert [each.workload.id for each in store.all_asked_of(Service, WorkloadFilter("ben"))] == ["a"]


def test_jobs_and_workloads_of_their_own_are_appended_and_taken_in_together_or_not_at_all(store: Store) -> None:
    keyed = Submission([job("j1"), job("j2")], idempotency_key="k", fingerprint="f", also=[WEB])
    assert store.submit(keyed) == store.submit(keyed) == ("j1", "j2", "w")
    assert store.workload(Service, "web") == WEB
    [request] = store.requests(limit=10)
    assert (request.kind, request.targets) == (RequestKind.SUBMIT, ("j1", "j2", "w"))
    other = evolve(WEB, id="other", name="other")
    with pytest.raises(AlreadyExists, match="service 'web' exists"):
        store.submit(Submission([job("j3")], also=[other, evolve(WEB, id="again")]))
    assert (store.jobs_by_id(["j3"]), store.workloads_by_id(Service, ["other"])) == ([], {})
    assert store.submit(Submission([], also=[other])) == ("other",)
    assert len(store.requests(limit=10)) == 2


def test_what_has_happened_that_a_job_waits_for_is_kept(store: Store) -> None:
    waits = evolve(job("j1"), state=JobState.WAITING, reason="waits for job a to succeed", met=(1,))
    store.submit(Submission([waits]))
    known = store.job("j1")
    assert evolve(known, seq=0) == waits
    assert [one.met for one in store.load().jobs] == [(1,)]
    more = evolve(known, met=(0, 1, 12))
    store.commit(Changes(jobs={"j1": more}))
    assert store.job("j1") == store.load().jobs[0] == more
    ready = evolve(known, state=JobState.QUEUED, met=(), ready_at=7.5, queued_at=7.5, reason="")
    store.commit(Changes(jobs={"j1": ready}))
    assert store.job("j1") == store.load().jobs[0] == ready


def test_what_is_neither_there_nor_a_jobs_is_refused(store: Store) -> None:
    with pytest.raises(Internal, match="a workload that does not exist"):
        store.commit(Changes(workloads={"w": WEB}))
    assert store.workloads(Service) == []


@pytest.mark.parametrize("state", ["{", "[]", "{}", '{"version":2}', '{"version":1,"replicas":"many"}'])
def test_a_record_that_cannot_be_read_is_named_and_keeps_no_other_from_being_loaded(
    sqlite: SqlPlace, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = sqlite.open()
    store.submit(Submission([], owner=WEB))
    store.submit(Submission([], owner=JobSet("s", name="s")))
    with monkeypatch.context() as patch:
        patch.setattr("holdfast.storage.sql.codec.dump_state", lambda _: state)
        store.commit(Changes(workloads={"w": WEB}))
    snapshot = store.load()
    assert list(snapshot.workloads) == ["s"]
    ((key, (kind, error)),) = snapshot.unreadable.items()
    assert (key, kind, type(error)) == ("w", "service", Internal)
    assert "the stored service w" in error.message
    with pytest.raises(Internal, match="the stored service w"):
        store.workload(Service, "w")


def test_a_kind_this_version_does_not_know_is_left_alone(sqlite: SqlPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    store = sqlite.open()
    store.submit(Submission([], owner=WEB))
    monkeypatch.delitem(KINDS, Service.kind)
    assert [kind for kind, _ in store.load().unreadable.values()] == ["service"]
