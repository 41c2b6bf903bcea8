"""What every store promises about the event log and the audit log."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.access import Principal
from holdfast.domain.access.group import Grouped
from holdfast.domain.audit import Act, AuditEntry, Caller, Subject
from holdfast.domain.category import CategoryRule, FailureCategory
from holdfast.domain.events.jobs import (
    AttemptEnded,
    FailureDecided,
    JobRetryScheduled,
    JobStarted,
    JobSubmitted,
    JobSucceeded,
    JobWaiting,
)
from holdfast.domain.events.operators import ENTRY_EVENTS, NodeLost, OperatorActed, SettingsUpdated
from holdfast.domain.events.registry import Event, EventRecord, StoredEvent
from holdfast.domain.job import Job, Queue, Resources
from holdfast.domain.policy.model import Action, RetryPolicy, RetrySettings
from holdfast.domain.record import evolve
from holdfast.domain.workloads.array.model import Array
from holdfast.errors import AlreadyExists, Conflict, Internal, NotFound
from holdfast.ports.entries import CATEGORY, POLICY, QUEUE
from holdfast.ports.events import EventFilter
from holdfast.ports.requests import Request, RequestKind
from holdfast.ports.store import Changes, Submission
from holdfast.storage.sql import open_store
from holdfast.storage.sql.batch import Batches
from holdfast.storage.sql.engine import Database
from holdfast.storage.sql.logs import append_events
from tests import databases

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from holdfast.ports.store import Store

ANN = Caller(Principal("ann"), 5.0, "in-process", "r-1")


def job(job_id: str, queue: str = "default", **given: object) -> Job:
    made = Job(job_id, f"name-{job_id}", queue, 3, 100.0, "{}", Resources(500, 1 << 30, 1), gang=2)
    return evolve(made, **given)  # type: ignore[arg-type] # fields by name


def submit(store: Store, *jobs: Job) -> None:
    store.submit(Submission(jobs))


def commit(store: Store, *happened: tuple[str, Event]) -> None:
    changes = Changes(jobs={job.id: job for job in store.jobs_by_id([job_id for job_id, _ in happened])})
    changes.events = {number: EventRecord(job_id, 200.0, event) for number, (job_id, event) in enumerate(happened)}
    store.commit(changes)


def told(store: Store, where: EventFilter | None = None, after: int = 0) -> list[tuple[str | None, int | None, Event]]:
    events = store.events(after=after, limit=1000, where=where or EventFilter())
    return [(event.job_id, event.job_seq, event.event) for event in events]


def test_a_submission_is_an_event_of_each_job(store: Store) -> None:
    submit(store, job("a"), job("b"))
    event = JobSubmitted("name-a", "default", 3, 2, 500, 1 << 30, 1)
    [first, second] = store.events(limit=10)
    assert first == StoredEvent(first.seq, "a", 1, 100.0, event)
    assert (second.job_id, second.job_seq) == ("b", 1)
    assert first.seq < second.seq == store.last_event_seq()


def test_a_refused_submission_leaves_no_event(store: Store) -> None:
    submit(store, job("a"))
    with pytest.raises(AlreadyExists):
        submit(store, job("b"), job("a"))
    assert [job_id for job_id, _, _ in told(store)] == ["a"]


def test_a_repeated_submission_is_one_event(store: Store) -> None:
    for _ in range(2):
        store.submit(Submission([job("a")], idempotency_key="k", fingerprint="f"))
    assert len(told(store)) == 1


def test_a_controller_that_begins_is_told_of_the_nodes_that_were_lost(store: Store) -> None:
    submit(store, job("a"))
    lost = [
        NodeLost("e", ("n0", "n1"), 2, 7.5, (("a", 0.25), ("b", 7.5))),
        NodeLost("e", ("n0",), 1, 3.0, (("a", 3.0),)),
    ]
    for at, event in enumerate(lost):
        changes = Changes(jobs={one.id: one for one in store.jobs_by_id(["a"])})
        changes.events = {0: EventRecord(None, float(at), event), 1: EventRecord("a", float(at), JobWaiting("why"))}
        store.commit(changes)
    assert [(event.at, event.event) for event in store.load().losses] == list(enumerate(lost))


def test_a_controller_that_begins_does_not_look_back_for_ever(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.storage.sql.logs.RECENT_EVENTS", 3)
    submit(store, job("a"))
    commit(store, ("a", JobWaiting("0")))
    for number in range(4):
        changes = Changes(jobs={one.id: one for one in store.jobs_by_id(["a"])})
        changes.events = {0: EventRecord(None, float(number), NodeLost("e", ("n0",), number))}
        store.commit(changes)
    assert [event.at for event in store.load().losses] == [1.0, 2.0, 3.0]


def test_a_commit_appends_its_events_in_order_and_numbers_them_by_job(store: Store) -> None:
    submit(store, job("a"), job("b"))
    began = store.last_event_seq()
    commit(store, ("b", JobStarted(1)), ("a", JobStarted(1)), ("b", JobSucceeded(1)))
    commit(store, ("a", JobSucceeded(1)))
    assert told(store, after=began) == [
        ("b", 2, JobStarted(1)),
        ("a", 2, JobStarted(1)),
        ("b", 3, JobSucceeded(1)),
        ("a", 3, JobSucceeded(1)),
    ]


def test_a_refused_commit_appends_nothing(store: Store) -> None:
    submit(store, job("a"))
    changes = Changes(jobs={"x": job("x")}, events={0: EventRecord("a", 1.0, JobStarted(1))})
    with pytest.raises(Internal):
        store.commit(changes)
    assert len(told(store)) == 1


@pytest.mark.parametrize(
    "event",
    [
        JobWaiting("needs ☃ \0 \udcff"),
        JobStarted(2, 3, (("local", "n1", 2), ("local", "n2", 1))),
        JobRetryScheduled(1, "again", "infra", "oom", 1.5, 99.25, "infra/oom", 1 << 40, "n1"),
        AttemptEnded(1, "Failed", "ERROR", 3.0, "oom_killed", "c", "s", ("A", "B"), 137, 9, 0, "n", "e", "m"),
        FailureDecided(1, "Retry", "retry", "r", "p", "u", 2, 1.0, 2.0, (("a", 1, 2), ("b", 0, None))),
    ],
    ids=lambda event: type(event).__name__,
)
def test_an_event_comes_back_as_it_was(store: Store, event: Event) -> None:
    submit(store, job("a"))
    commit(store, ("a", event))
    assert told(store)[1] == ("a", 2, event)


def test_events_are_read_in_parts_and_by_filter(store: Store) -> None:
    store.put_entry(Queue("gpu"))
    submit(store, job("a"), job("b", "gpu"))
    commit(store, ("a", JobStarted(1)), ("b", JobStarted(1)), ("a", JobSucceeded(1)))
    everything = store.events(limit=1000)
    first = store.events(limit=2)
    assert [*first, *store.events(after=first[-1].seq, limit=1000)] == everything
    assert store.events(after=store.last_event_seq(), limit=10) == []
    assert [job_id for job_id, _, _ in told(store, EventFilter(job_id="a"))] == ["a", "a", "a"]
    assert told(store, EventFilter(types=frozenset({"job.started"}))) == [
        ("a", 2, JobStarted(1)),
        ("b", 2, JobStarted(1)),
    ]
    assert [job_id for job_id, _, _ in told(store, EventFilter(queue="gpu"))] == ["b", "b"]
    assert told(store, EventFilter("a", frozenset({"job.started"}), "gpu")) == []
    assert told(store, EventFilter(job_id="nobody")) == []


def test_an_empty_log_begins_at_nothing(store: Store) -> None:
    assert store.last_event_seq() == 0
    assert store.events(limit=10) == []
    assert store.audit(limit=10) == []


def test_an_edit_is_an_event_and_an_entry_of_the_audit_log(store: Store) -> None:
    policy, category = RetryPolicy("infra"), FailureCategory("net", (CategoryRule(log="reset"),))
    store.put_entry(policy, create=True, caller=ANN)
    store.put_entry(evolve(policy, default_action=Action.RETRY), caller=ANN)
    store.put_entry(Queue("gpu"), caller=ANN)
    store.put_entry(Queue("gpu", weight=2.0), caller=ANN)
    store.put_entry(category, caller=ANN)
    store.put_entry(evolve(category, hint="plug it in"), caller=ANN)
    store.put_settings(RetrySettings(global_max_retries=3), "infra", caller=ANN)
    store.put_settings(RetrySettings(), None, caller=ANN)
    store.delete_entry(POLICY, "infra", caller=ANN)
    store.delete_entry(QUEUE, "gpu", caller=ANN)
    store.delete_entry(CATEGORY, "net", caller=ANN)
    happened = [event for _, _, event in told(store)]
    assert [event for event in happened if not isinstance(event, OperatorActed)] == [
        ENTRY_EVENTS[Subject.POLICY]["created"]("infra", 1),
        ENTRY_EVENTS[Subject.POLICY]["updated"]("infra", 2),
        ENTRY_EVENTS[Subject.QUEUE]["created"]("gpu"),
        ENTRY_EVENTS[Subject.QUEUE]["updated"]("gpu"),
        ENTRY_EVENTS[Subject.CATEGORY]["created"]("net"),
        ENTRY_EVENTS[Subject.CATEGORY]["updated"]("net"),
        SettingsUpdated(3, "infra"),
        SettingsUpdated(),
        ENTRY_EVENTS[Subject.POLICY]["deleted"]("infra", 2),
        ENTRY_EVENTS[Subject.QUEUE]["deleted"]("gpu"),
        ENTRY_EVENTS[Subject.CATEGORY]["deleted"]("net"),
    ]
    acted = [event for event in happened if isinstance(event, OperatorActed)]
    entries = [stored.entry for stored in store.audit(limit=100)]
    assert [(event.action, event.kind, event.name) for event in acted] == [
        (entry.act, entry.subject, entry.name) for entry in entries
    ]
    assert entries[0] == AuditEntry(ANN, Act.CREATE, Subject.POLICY, "infra")
    assert [entry.act for entry in entries[-3:]] == [Act.DELETE] * 3


def test_an_edit_that_changes_nothing_or_is_refused_leaves_no_trace(store: Store) -> None:
    store.put_entry(RetryPolicy("infra"))
    store.put_entry(Queue("gpu", retry_policies=("infra",)))
    store.put_entry(RetryPolicy("infra"), caller=ANN)
    store.put_entry(Queue("gpu", retry_policies=("infra",)), caller=ANN)
    store.put_settings(RetrySettings(), None, caller=ANN)
    with pytest.raises(AlreadyExists):
        store.put_entry(Queue("gpu"), create=True, caller=ANN)
    with pytest.raises(Conflict):
        store.delete_entry(POLICY, "infra", caller=ANN)
    with pytest.raises(NotFound):
        store.delete_entry(CATEGORY, "nothing", caller=ANN)
    assert told(store) == []
    assert store.audit(limit=10) == []


def test_a_request_is_an_entry_for_each_job(store: Store) -> None:
    submit(store, job("a"), job("b"))
    store.append(Request(RequestKind.CANCEL, ("a", "b"), 5.0, "ann", "enough ☃"), caller=ANN)
    store.append(Request(RequestKind.HOLD, ("a",), 6.0))
    assert [stored.entry for stored in store.audit(limit=10)] == [
        AuditEntry(ANN, Act.CANCEL, Subject.JOB, "a", detail="enough ☃"),
        AuditEntry(ANN, Act.CANCEL, Subject.JOB, "b", detail="enough ☃"),
    ]
    assert told(store)[2:] == [
        (name, 2, OperatorActed("ann", "cancel", "job", name, "in-process", "r-1", "enough ☃")) for name in ("a", "b")
    ]
    store.append(Request(RequestKind.CORDON, ("local n1 GPU-1f00",), 5.0, "ann"), caller=ANN)
    shown = [stored.job_id for stored in store.events(limit=20, where=EventFilter(acts=False))]
    assert shown == ["a", "b", "a", "b"], "what was asked of a job is among its events, and nothing else"


def test_a_request_about_a_device_is_an_entry_with_the_devices_name(store: Store) -> None:
    store.append(Request(RequestKind.CORDON, ("local n1 GPU-1f00",), 5.0, "ann", "it fails"), caller=ANN)
    store.append(Request(RequestKind.UNCORDON, ("local n1 GPU-1f00",), 6.0, "ann"), caller=ANN)
    assert [stored.entry for stored in store.audit(limit=10)] == [
        AuditEntry(ANN, Act.CORDON, Subject.DEVICE, "GPU-1f00", detail="it fails"),
        AuditEntry(ANN, Act.UNCORDON, Subject.DEVICE, "GPU-1f00"),
    ]


def test_the_audit_log_is_read_in_parts_and_holds_refusals(store: Store) -> None:
    entries = [AuditEntry(ANN, Act.APPLY, Subject.QUEUE, f"q{n}", "conflict", "no") for n in range(5)]
    for entry in entries:
        store.record(entry)
    first = store.audit(limit=2)
    rest = store.audit(after=first[-1].seq, limit=10)
    assert [stored.entry for stored in (*first, *rest)] == entries
    assert told(store) == []


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database that several processes could share, at the newest schema."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{databases.migrated(tmp_path / 'shared.db')}"


@pytest.fixture
def two(url: str) -> Iterator[tuple[Store, Store]]:
    """Two openings of one database, as two processes have them."""
    one, other = open_store(url), open_store(url)
    yield one, other
    one.close()
    other.close()


def test_an_event_that_is_not_committed_yet_keeps_later_ones_waiting(two: tuple[Store, Store], url: str) -> None:
    """Else a reader would see the later one first, go on behind it, and never see the earlier one."""
    one, reader = two
    submit(one, job("a"), job("b"))
    began = one.last_event_seq()
    slow = Database(url)
    with ThreadPoolExecutor(1) as pool:
        with slow.writing() as connection:
            append_events(connection, Batches(slow.dialect), [EventRecord("a", 1.0, JobStarted(1))])
            later = pool.submit(commit, one, ("b", JobStarted(1)))
            with pytest.raises(TimeoutError):
                later.result(timeout=0.3)
            assert reader.events(after=began, limit=10) == []
        later.result(timeout=20)
    slow.close()
    assert [job_id for job_id, _, _ in told(reader, after=began)] == ["a", "b"]


def test_a_reader_beside_many_writers_misses_nothing_and_sees_nothing_twice(two: tuple[Store, Store]) -> None:
    store, reader = two
    rounds, writers = 15, 4
    done = threading.Event()

    def write(writer: int) -> None:
        for number in range(rounds):
            submit(store, job(f"w{writer}-{number}"), job(f"w{writer}-{number}x"))

    def read() -> Sequence[StoredEvent]:
        seen: list[StoredEvent] = []
        while True:
            finished = done.is_set()
            part = reader.events(after=seen[-1].seq if seen else 0, limit=7)
            seen.extend(part)
            if finished and not part:
                return seen

    with ThreadPoolExecutor(writers + 1) as pool:
        reading = pool.submit(read)
        list(pool.map(write, range(writers)))
        done.set()
        seen = reading.result(timeout=60)
    assert len(seen) == 2 * rounds * writers
    assert seen == reader.events(limit=1000)


def test_events_are_read_by_the_group_of_what_they_are_about(store: Store) -> None:
    groups = ("a/b", "", "a/bc", "a/b/c", "a/b")
    records = {at: EventRecord(None, float(at), NodeLost("e", ("n0",), at), name) for at, name in enumerate(groups)}
    store.commit(Changes(events=records))
    assert [one.group for one in store.events(limit=9)] == list(groups)

    def found(group: Grouped, *, after: int = 0, limit: int = 9) -> list[int]:
        return [one.seq for one in store.events(after=after, limit=limit, where=EventFilter(group=group))]

    assert found(Grouped("a/b")) == [1, 5]
    assert found(Grouped("a/b"), after=1) == [5]
    assert found(Grouped("a/b", below=True)) == [1, 4, 5]
    assert found(Grouped("a/b", below=True), after=1, limit=1) == [4]
    assert found(Grouped("a", below=True)) == [1, 3, 4, 5]
    assert found(Grouped("b", below=True)) == found(Grouped("a")) == []


def test_a_submission_with_a_caller_is_an_entry_in_the_same_transaction(store: Store) -> None:
    store.submit(Submission([job("a"), job("b")], caller=ANN, idempotency_key="k"))
    store.submit(Submission([job("a"), job("b")], caller=ANN, idempotency_key="k"))
    store.submit(Submission([], also=[Array("s", name="s", spec="{}")], caller=ANN))
    store.submit(Submission([job("c")]))
    with pytest.raises(AlreadyExists):
        store.submit(Submission([job("d"), job("a")], caller=ANN))
    entries = [stored.entry for stored in store.audit(limit=10)]
    assert [(one.caller.at, one.act, one.subject, one.name, one.detail) for one in entries] == [
        (ANN.at, Act.CREATE, Subject.JOB, "a", "2 jobs"),
        (ANN.at, Act.CREATE, Subject.ARRAY, "s", "1 array"),
    ]
