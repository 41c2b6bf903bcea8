"""What every store promises about job sets, their logs and what is remembered of pods."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

import pytest

from holdfast.domain.access import Principal
from holdfast.domain.audit import Act, Caller, Subject
from holdfast.domain.events.jobs import JobQueued, JobSubmitted
from holdfast.domain.events.registry import EventRecord
from holdfast.domain.events.workloads import JobSetCreated, JobSetDeleted
from holdfast.domain.job import Attempt, ChildOf, Job, JobState, Run
from holdfast.domain.lifecycle import AttemptStatus, RunStatus
from holdfast.domain.policy.model import Considered, LimitUse, SetAction
from holdfast.domain.record import evolve
from holdfast.domain.workloads.jobset.state import (
    GroupStatus,
    JobSet,
    JobSetState,
    SetCondition,
    SetDecision,
    SetEvent,
    SetLogEntry,
    Streak,
    Terminal,
)
from holdfast.domain.workloads.kubejob.model import BackoffRecord, JobCondition, KubeJobState
from holdfast.domain.workloads.kubejob.records import KubeJobRecord, PodRecord
from holdfast.errors import AlreadyExists, Conflict, Internal, NotFound
from holdfast.ports.events import EventFilter
from holdfast.ports.requests import Request, RequestKind
from holdfast.ports.store import Changes, JobFilter, Submission

if TYPE_CHECKING:
    from holdfast.ports.store import Store


class Place(Protocol):
    def open(self) -> Store: ...


def job(job_id: str, child: ChildOf | None = None) -> Job:
    state = JobState.QUEUED if child is None else JobState.WAITING
    return Job(job_id, job_id, "default", 0, 100.0, "{}", state=state, queued_at=100.0, updated_at=100.0, child=child)


def job_set(set_id: str = "s1", name: str | None = None) -> JobSet:
    manifest = '{"metadata":{"name":"☃"}}'
    return JobSet(id=set_id, name=name or set_id, created_at=90.0, manifest=manifest, updated_at=90.0)


def submission(set_id: str = "s1", jobs: int = 2, *, name: str | None = None, key: str | None = None) -> Submission:
    children = [job(f"{set_id}-{index}", ChildOf(set_id, "workers", index)) for index in range(jobs)]
    return Submission(children, idempotency_key=key, fingerprint="f", owner=job_set(set_id, name))


STATE = JobSetState(
    restarts=3,
    restarts_counted=2,
    job_restarts={"workers": {0: 1, 11: 2}},
    job_restarts_counted={"workers": {11: 1}},
    group_restarts={"workers": 1},
    group_restarts_counted={"workers": 1},
    rule_restarts={"again": 2},
    blamed={"workers": 2},
    counted_at=(1.5, 2.5),
    forgiven=1,
    left_failed={"s1-workers-0": (1, 2)},
    terminal=Terminal.FAILED,
    conditions=(SetCondition("Failed", status=True, reason="FailedJobs", message="☃", since=3.5),),
    groups=(GroupStatus("workers", 1, 2, 3, 4, 5),),
    started_at=0.5,
    ended_at=4.5,
    healthy_since=1.0,
    not_before={"": 5.5},
    streaks={"": Streak(21, 5.5)},
    in_place_previous=1,
    in_place_current=2,
)
DECISION = SetDecision(
    job="s1-workers-0",
    attempt=(1, 2),
    action=SetAction.RESTART_JOB_SET,
    granted=True,
    reason="Restarting",
    message="broken \udcff",
    rule="again",
    rule_index=0,
    limits=(LimitUse("maxRestarts", 1, None), LimitUse("again", 1, 3)),
    delay_s=1.5,
    considered=(Considered("failurePolicy", "again", matched=True, because="the reason is in [A]"),),
)
POD_JOB = KubeJobRecord(
    id="s1-0",
    owner="s1",
    created_at=100.0,
    restart=1,
    job_restart=2,
    present=False,
    suspended=True,
    deleting_since=1.5,
    domain="rack-1",
    parallelism=3,
    completions=4,
    expires_at=12.5,
    state=KubeJobState(
        started_at=1.5,
        active=1,
        ready=1,
        terminating=1,
        succeeded=1,
        failed=1,
        ignored=1,
        counted=frozenset({"a", "b"}),
        completed_indexes=frozenset({0, 1, 2, 9}),
        failed_indexes=frozenset({4}),
        index_failures={4: (1, 2, 3.5)},
        conditions=(JobCondition("Failed", status=True, reason="r", message="m", since=2.5),),
        backoff=BackoffRecord(1, 2.5),
        finished_at=3.5,
    ),
    pods=(
        PodRecord(name="a", rank=1, index_failures=2, restarts=1, run="b", due=9.5, counters={"p/r": 1}),
        PodRecord(name="c", rank=0, index_ignored=1, in_place=2, avoid_node="n"),
    ),
)


def log(what: SetDecision | SetEvent = DECISION, set_id: str = "s1", at: float = 7.5) -> SetLogEntry:
    return SetLogEntry(set_id=set_id, at=at, what=what)


# Submitting


def test_a_submitted_set_is_there_with_its_jobs_in_order(store: Store) -> None:
    assert store.submit(submission()) == ("s1-0", "s1-1")
    assert store.workload(JobSet, "s1") == job_set()
    assert store.children_of("s1") == store.jobs(JobFilter(job_set="s1")) == store.jobs(JobFilter())
    assert [each.child for each in store.children_of("s1")] == [
        ChildOf("s1", "workers", 0),
        ChildOf("s1", "workers", 1),
    ]
    assert {each.state for each in store.children_of("s1")} == {JobState.WAITING}
    assert store.children_of("unknown") == []


def test_a_submitted_set_is_one_request_and_tells_of_itself_and_of_each_job(store: Store) -> None:
    store.submit(submission())
    (request,) = store.requests(limit=10)
    assert evolve(request, id=0) == Request(RequestKind.SUBMIT, ("s1",), 90.0)
    created, *jobs = store.events(limit=10)
    assert (created.job_id, created.event) == (None, JobSetCreated("s1", "s1", 2))
    assert [(each.job_id, each.event) for each in jobs] == [
        (f"s1-{index}", JobSubmitted(f"s1-{index}", "default", 0, 1, 1000, 0, 0, "s1", "workers", index))
        for index in (0, 1)
    ]


def test_a_set_may_have_no_jobs(store: Store) -> None:
    assert store.submit(submission(jobs=0)) == ()
    assert store.workload(JobSet, "s1") == job_set()
    assert [each.kind for each in store.requests(limit=10)] == [RequestKind.SUBMIT]


def test_a_name_is_taken_once_and_then_nothing_of_the_submission_is_kept(store: Store) -> None:
    store.submit(submission())
    with pytest.raises(AlreadyExists, match="'s1'") as taken:
        store.submit(submission("s2", name="s1", key="k"))
    assert taken.value.hint == "delete it first, or rename this"
    assert [each.id for each in store.workloads(JobSet)] == ["s1"]
    assert len(store.jobs(JobFilter())) == 2
    assert len(store.requests(limit=10)) == 1
    assert store.submit(submission("s3", key="k")) == ("s3-0", "s3-1")


def test_a_job_that_is_there_already_keeps_its_set_out(store: Store) -> None:
    store.submit(Submission([job("s1-1")]))
    with pytest.raises(AlreadyExists):
        store.submit(submission())
    assert store.workloads(JobSet) == []


@pytest.mark.parametrize("jobs", [0, 2])
def test_a_known_idempotency_key_makes_no_second_set(store: Store, jobs: int) -> None:
    first = store.submit(submission(jobs=jobs, key="k"))
    assert store.submit(submission("s2", jobs=jobs, key="k")) == first
    assert [each.id for each in store.workloads(JobSet)] == ["s1"]
    with pytest.raises(Conflict, match="'k'"):
        store.submit(evolve(submission("s3", key="k"), fingerprint="g"))


def test_of_ten_sets_of_one_name_at_once_one_is_made(place: Place) -> None:
    together = threading.Barrier(10)
    refused: list[str] = []

    def send(store: Store, number: int) -> None:
        together.wait()
        try:
            store.submit(submission(f"s{number}", name="one"))
        except AlreadyExists as error:
            refused.append(str(error))

    threads = [threading.Thread(target=send, args=(place.open(), number)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store = place.open()
    assert len(refused) == 9
    made = store.workload(JobSet, "one").id
    assert [each.child.set_id for each in store.jobs(JobFilter()) if each.child] == [made] * 2


def test_a_request_keeps_what_its_kind_needs(store: Store) -> None:
    payload = '{"group":"workers","index":☃}'
    store.append(Request(RequestKind.RESTART, ("s1",), 1.0, payload=payload))
    (request,) = store.requests(limit=10)
    assert (request.kind, request.targets, request.payload) == (RequestKind.RESTART, ("s1",), payload)


@pytest.mark.parametrize(
    ("kind", "act"),
    [
        (RequestKind.UPDATE, Act.UPDATE),
        (RequestKind.HOLD, Act.SUSPEND),
        (RequestKind.RELEASE, Act.RESUME),
        (RequestKind.RESTART, Act.RESTART),
        (RequestKind.DELETE, Act.DELETE),
    ],
)
def test_what_somebody_asks_of_a_set_is_in_the_audit_log(store: Store, kind: RequestKind, act: Act) -> None:
    store.submit(submission())
    store.append(Request(kind, ("s1",), 1.0, "ann", "tired"), caller=Caller(Principal("ann"), 1.0))
    ((_, entry),) = store.audit(limit=10)
    assert (entry.act, entry.subject, entry.name, entry.detail) == (act, Subject.JOB_SET, "s1", "tired")


# Committing


def test_every_field_of_a_set_is_kept_but_its_name(store: Store) -> None:
    store.submit(submission())
    changed = evolve(
        job_set(), manifest='{"new":1}', lenient=True, generation=2, updated_at=95.5, deleting=True, state=STATE
    )
    store.commit(Changes(workloads={"s1": evolve(changed, name="other", created_at=1.0)}))
    assert store.workload(JobSet, "s1") == changed
    assert store.workloads(JobSet) == [changed]
    assert store.load().of(JobSet) == store.workloads_by_id(JobSet, ["s1"]) == {"s1": changed}


def test_a_log_is_kept_in_order_and_read_page_by_page(store: Store) -> None:
    store.submit(submission())
    store.submit(submission("s2"))
    event = SetEvent("Warning", "Exceeded", "broken \udcff ☃")
    bare = SetDecision(job="j", attempt=(0, 0), action=None, granted=False, reason="r", message="m")
    store.commit(Changes(set_log=[log(DECISION), log(event), log(event, "s2")]))
    store.commit(Changes(set_log=[log(bare, at=8.5)]))
    entries = store.set_log("s1")
    assert [evolve(each, seq=0) for each in entries] == [log(DECISION), log(event), log(bare, at=8.5)]
    assert [each.seq for each in entries] == sorted({each.seq for each in entries})
    assert entries[0].seq > 0
    assert store.set_log("s1", after=entries[0].seq) == entries[1:]
    assert store.set_log("s1", after=entries[0].seq, limit=1) == entries[1:2]
    assert len(store.set_log("s2")) == 1
    assert store.set_log("unknown") == []


def test_every_field_of_a_job_made_of_pods_is_kept_and_the_last_value_wins(store: Store) -> None:
    store.submit(submission())
    fresh = KubeJobRecord(id="s1-1")
    store.commit(Changes(workloads={"s1-0": evolve(POD_JOB, domain=""), "s1-1": fresh}))
    store.commit(Changes(workloads={"s1-0": POD_JOB}))
    assert store.workloads_by_id(KubeJobRecord, ["s1-1", "s1-0", "unknown"]) == {"s1-0": POD_JOB, "s1-1": fresh}
    assert store.load().of(KubeJobRecord) == {"s1-0": POD_JOB, "s1-1": fresh}
    assert store.workloads_by_id(KubeJobRecord, []) == {}


@pytest.mark.parametrize(
    "bad",
    [
        Changes(workloads={"s9": job_set("s9")}),
        Changes(set_log=[log(set_id="s9")]),
        Changes(workloads={"j9": KubeJobRecord(id="j9")}),
    ],
    ids=["set", "log", "pods"],
)
def test_a_commit_about_something_unknown_leaves_nothing(store: Store, bad: Changes) -> None:
    store.submit(submission())
    changes = evolve(bad, handled=[1])
    changes.workloads["s1"] = evolve(job_set(), generation=2)
    changes.workloads["s1-0"] = KubeJobRecord(id="s1-0")
    changes.set_log.insert(0, log())
    with pytest.raises(Internal):
        store.commit(changes)
    assert store.workload(JobSet, "s1") == job_set()
    assert store.workloads_by_id(KubeJobRecord, ["s1-0"]) == {}
    assert store.set_log("s1") == []
    assert len(store.requests(limit=10)) == 1


def test_a_deleted_set_goes_with_its_log_and_its_jobs_stay(store: Store) -> None:
    store.submit(submission())
    store.submit(submission("s2"))
    store.commit(Changes(set_log=[log(), log(set_id="s2")], workloads={"s1-0": POD_JOB}))
    gone = Changes(workloads={"s1": evolve(job_set(), deleting=True)}, forgotten={"s1": None}, set_log=[log()])
    store.commit(gone)
    store.commit(Changes(forgotten={"s1": None}))
    assert [each.id for each in store.workloads(JobSet)] == ["s2"]
    assert store.set_log("s1") == []
    assert len(store.set_log("s2")) == 1
    assert [each.id for each in store.children_of("s1")] == ["s1-0", "s1-1"]
    assert store.workloads_by_id(KubeJobRecord, ["s1-0"]) == {"s1-0": POD_JOB}
    store.submit(submission("s3", name="s1"))
    assert store.workload(JobSet, "s1").id == "s3"


def test_what_happened_to_sets_and_to_jobs_is_told_in_its_own_order(store: Store) -> None:
    store.submit(submission())
    before = store.last_event_seq()
    told = [
        EventRecord(job_id, 7.5, JobQueued(number) if job_id else JobSetDeleted("s1", str(number)))
        for number, job_id in enumerate(("s1-0", None, "s1-1", "s1-0", None, "s1-0"))
    ]
    store.commit(Changes(handled=[1], events=dict(enumerate(told))))
    events = store.events(after=before, limit=10)
    assert [EventRecord(each.job_id, each.at, each.event) for each in events] == told
    assert [each.job_seq for each in events] == [2, None, 2, 3, None, 4]


def test_a_number_in_a_log_is_never_given_again(store: Store) -> None:
    store.submit(submission())
    store.commit(Changes(set_log=[log()]))
    (before,) = store.set_log("s1")
    store.commit(Changes(forgotten={"s1": None}))
    store.submit(submission("s2"))
    store.commit(Changes(set_log=[log(set_id="s2")]))
    assert store.set_log("s2")[0].seq > before.seq


# Asking


def test_a_set_is_found_by_id_before_name(store: Store) -> None:
    store.submit(submission("a", 0, name="b"))
    store.submit(submission("b", 0, name="c"))
    assert [store.workload(JobSet, reference).id for reference in ("a", "b", "c")] == ["a", "b", "b"]
    for reference in ("d", "", "\0", "\udcff"):
        with pytest.raises(NotFound, match="no job set"):
            store.workload(JobSet, reference)


def test_sets_are_listed_by_name_page_by_page(store: Store) -> None:
    for set_id, name in (("1", "b"), ("2", "a-b"), ("3", "a"), ("4", "c"), ("5", "a1")):
        store.submit(submission(set_id, 0, name=name))
    names = ["a", "a-b", "a1", "b", "c"]
    assert [each.name for each in store.workloads(JobSet)] == names
    assert [each.name for each in store.load().of(JobSet).values()] == names
    assert [each.name for each in store.workloads(JobSet, after="a", limit=2)] == ["a-b", "a1"]
    assert [each.name for each in store.workloads(JobSet, after="c")] == []
    assert store.workloads_by_id(JobSet, ["4", "1", "4", "unknown"]).keys() == {"1", "4"}


def test_a_snapshot_holds_pods_of_active_jobs_and_every_run_that_goes_on(store: Store) -> None:
    store.submit(submission())
    going, done = store.children_of("s1")
    attempt = Attempt(going.id, 1, AttemptStatus.RUNNING, dispatch=3)
    pods = tuple(PodRecord(name=f"pod-{rank}", rank=rank, run=f"{going.id}-1-{rank}-1") for rank in (1, 3))
    remembered = KubeJobRecord(id=going.id, pods=pods)
    runs = {
        "replaced": Run(f"{going.id}-1-0-1", going.id, 1, 0, RunStatus.ERROR),
        "older": Run(f"{going.id}-1-1-1", going.id, 1, 1, RunStatus.RUNNING),
        "ended": Run(f"{going.id}-1-2-3", going.id, 1, 2, RunStatus.TERMINATED),
        "newest": Run(f"{going.id}-1-0-3", going.id, 1, 0, RunStatus.RUNNING),
        "last": Run(f"{going.id}-1-3-1", going.id, 1, 3, RunStatus.ERROR),
        "other": Run(f"{done.id}-1-0-1", done.id, 1, 0, RunStatus.RUNNING),
    }
    store.commit(Changes(
        jobs={going.id: evolve(going, state=JobState.RUNNING), done.id: evolve(done, state=JobState.SUCCEEDED)},
        attempts={attempt.key: attempt, (done.id, 1): Attempt(done.id, 1, AttemptStatus.TERMINATED, dispatch=1)},
        runs={each.uid: each for each in runs.values()},
        workloads={going.id: remembered, done.id: KubeJobRecord(id=done.id)},
    ))  # fmt: skip
    snapshot = store.load()
    assert snapshot.runs == [runs["older"], runs["newest"], runs["ended"], runs["last"]]
    assert snapshot.of(KubeJobRecord) == {going.id: remembered}
    assert store.workloads_by_id(KubeJobRecord, [done.id]) == {done.id: KubeJobRecord(id=done.id)}


# Forgetting


def test_a_forgotten_job_takes_what_is_known_of_its_pods_along_and_leaves_its_set(store: Store) -> None:
    store.submit(submission())
    ended = evolve(store.job("s1-0"), state=JobState.SUCCEEDED, ended_at=1.0)
    store.commit(Changes(jobs={ended.id: ended}, workloads={"s1-0": POD_JOB}, set_log=[log()]))
    assert store.delete_finished(["s1-0", "s1-1"]) == 1
    assert store.workloads_by_id(KubeJobRecord, ["s1-0"]) == {}
    assert [each.id for each in store.children_of("s1")] == ["s1-1"]
    assert len(store.set_log("s1")) == 1


def test_the_events_of_one_set_are_its_own_and_those_of_its_jobs(store: Store) -> None:
    store.submit(Submission([job("lone")]))
    for set_id in ("s1", "s2", "s10"):
        store.submit(submission(set_id, 1))
    store.commit(Changes(handled=[1], events={0: EventRecord(None, 7.5, JobSetDeleted("s1", "s1"))}))
    found = store.events(limit=9, where=EventFilter(job_set="s1"))
    assert [(one.job_id, type(one.event)) for one in found] == [
        (None, JobSetCreated),
        ("s1-0", JobSubmitted),
        (None, JobSetDeleted),
    ]
    assert store.events(limit=9, where=EventFilter(job_set="s")) == []
