"""What every store promises about sessions of Backend.AI's users, their kernels and the history of both."""

from __future__ import annotations

import operator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, event

from holdfast.domain.access.grants import Seen
from holdfast.domain.access.places import WorkScope
from holdfast.domain.job import Job, JobState, Queue
from holdfast.domain.lifecycle import EntityKind, HistoryRow, Outcome, RunStatus
from holdfast.domain.record import evolve
from holdfast.domain.sessions.model import (
    Session,
    SessionSpec,
    SessionStatus,
    creation_id,
    history_id,
    kernel_id,
    session_id,
    step_id,
)
from holdfast.domain.sessions.records import first_kernels, first_session
from holdfast.errors import AlreadyExists, InvalidRequest, NotFound
from holdfast.ports.names import ExternalName
from holdfast.ports.sessions import (
    EVERYTHING,
    AllOf,
    AnyOf,
    Compare,
    Comparison,
    KernelField,
    NoneOf,
    Order,
    PageRequest,
    SessionField,
    SessionRename,
    StepField,
)
from holdfast.ports.store import Changes, JobFilter, Submission
from tests.reading import steps_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.domain.sessions.model import Kernel
    from holdfast.ports.sessions import Condition
    from holdfast.ports.store import Store


F, C = SessionField, Comparison
NAMES = ("", "a", "A", "ab", "b%", "B_", "\u00e9", "\u00c9a", "z\U0010ffff", "\ud7ff")
ROWS = 24
LOWER = str.maketrans({chr(code): chr(code + 32) for code in range(ord("A"), ord("Z") + 1)})
SPEC = SessionSpec(domain="home", resource_group="gpus", image="py")
OTHER_NAMES = {F.PARENT_ID: "parent_id", F.USER: "user", F.BATCH_TIMEOUT: "batch_timeout_s"}


def submit(
    store: Store, count: int = 1, *, owner: str = "ann", queue: str = "default", **fields: object
) -> list[Session]:
    """Submit jobs with a session of two kernels each; fields that are functions get the number of the job."""
    begun = len(store.jobs(JobFilter()))
    sessions = []
    jobs = []
    for number in range(begun, begun + count):
        jobs.append(Job(f"job{number:04}", "j", queue, 0, 100.0, '{"name":"j"}', gang=2, submitted_by=owner))
        values = {name: value(number) if callable(value) else value for name, value in fields.items()}
        sessions.append(evolve(first_session(jobs[-1], SPEC, name="n"), **values))  # type: ignore[arg-type] # fields by name
    store.submit(Submission(jobs, sessions=sessions))
    return sessions


def various(store: Store) -> list[Session]:
    """Submit sessions that differ in everything that is compared below, and retry some of them."""
    first = submit(
        store,
        ROWS,
        name=lambda n: NAMES[n % len(NAMES)],
        tag=lambda n: NAMES[n % 3],
        cluster_size=lambda n: n % 3,
        is_preemptible=lambda n: n % 2 == 0,
        batch_timeout_s=lambda n: (None, 60, 3600)[n % 3],
        created_at=lambda n: 100.0 + n // 4,
        terminated_at=lambda n: None if n % 4 else 200.5 + n,
        retry_cause=lambda n: (None, "unknown", "Unknown", "oom_killed")[n % 4],
        status=lambda n: tuple(SessionStatus)[n % 4],
    )
    again = [retry_of(session) for session in first[::5]]
    store.commit(Changes(sessions={session.id: session for session in again}))
    return [*first, *again]


def retry_of(session: Session) -> Session:
    number = session.retry_count + 1
    key, created_as = session_id(session.job_id, number), creation_id(session.job_id, number)
    return evolve(session, id=key, retry_count=number, creation_id=created_as)


def value_of(session: Session, field: SessionField) -> Any:  # noqa: ANN401 - of any type
    value = getattr(session, OTHER_NAMES.get(field, field.value))
    return None if value is None else str(value) if isinstance(value, str) else value


def holds(session: Session, where: Condition) -> bool:
    """Say in plain Python what a condition means."""
    if not isinstance(where, Compare):
        parts = [holds(session, part) for part in where.parts]
        return all(parts) if isinstance(where, AllOf) else any(parts) is isinstance(where, AnyOf)
    assert isinstance(where.field, SessionField)
    value, wanted = value_of(session, where.field), where.value
    if value is None or wanted is None:
        return value is wanted and where.comparison is C.EQUALS
    if where.ignores_case:
        value = value.translate(LOWER)
        wanted = tuple(map(_lower, wanted)) if isinstance(wanted, tuple) else _lower(wanted)
    texts: dict[Comparison, Callable[[Any, Any], bool]] = {
        C.EQUALS: operator.eq,
        C.IN: lambda own, those: own in those,
        C.CONTAINS: operator.contains,
        C.STARTS_WITH: str.startswith,
        C.ENDS_WITH: str.endswith,
        C.LESS: operator.lt,
        C.AT_MOST: operator.le,
        C.GREATER: operator.gt,
        C.AT_LEAST: operator.ge,
    }
    return texts[where.comparison](value, wanted)


def _lower(wanted: object) -> str:
    return str(wanted).translate(LOWER)


def _key(field: SessionField | KernelField | StepField, session: Session) -> tuple[bool, object]:
    assert isinstance(field, SessionField)
    value = value_of(session, field)
    return value is None, 0 if value is None else value


def in_order(sessions: Sequence[Session], order: Sequence[Order]) -> list[Session]:
    parts = [*order, Order(F.ID, descending=order[-1].descending)]
    ordered = [*sessions]
    for part in reversed(parts):
        ordered.sort(key=partial(_key, part.field), reverse=part.descending)
    return ordered


TEXT_FIELDS = st.sampled_from((F.NAME, F.TAG, F.RETRY_CAUSE, F.PARENT_ID, F.STATUS, F.USER))
TEXTS = st.sampled_from((*NAMES, "u", "unknown", "KILLED", "%", "_", "\\", "PENDING"))
NUMBER_FIELDS = st.sampled_from((F.CLUSTER_SIZE, F.BATCH_TIMEOUT, F.RETRY_COUNT, F.PRIORITY))
NUMBERS = st.sampled_from((0, 1, 2, 60, -1, 2**31, -(2**31) - 1, 2**63, -(2**70)))
TIME_FIELDS = st.sampled_from((F.CREATED_AT, F.TERMINATED_AT))
TIMES = st.sampled_from((0.0, 101.0, 103.0, 200.5, 1e12))
SIZES = st.sampled_from((C.LESS, C.AT_MOST, C.GREATER, C.AT_LEAST))
PARTS = st.sampled_from((C.CONTAINS, C.STARTS_WITH, C.ENDS_WITH))
COMPARES = st.one_of(
    st.builds(Compare, TEXT_FIELDS, st.sampled_from((C.EQUALS,)) | PARTS, TEXTS, st.booleans()),
    st.builds(Compare, TEXT_FIELDS, st.just(C.IN), st.lists(TEXTS, max_size=3).map(tuple), st.booleans()),
    st.builds(Compare, TEXT_FIELDS, SIZES, TEXTS),
    st.builds(Compare, NUMBER_FIELDS, SIZES | st.just(C.EQUALS), NUMBERS),
    st.builds(Compare, NUMBER_FIELDS, st.just(C.IN), st.lists(NUMBERS, max_size=3).map(tuple)),
    st.builds(Compare, TIME_FIELDS, SIZES | st.just(C.EQUALS), TIMES),
    st.builds(Compare, st.just(F.IS_PREEMPTIBLE), st.just(C.EQUALS), st.booleans()),
    st.builds(Compare, TEXT_FIELDS | TIME_FIELDS, SIZES | st.just(C.EQUALS) | PARTS, st.none()),
)
CONDITIONS = st.recursive(
    COMPARES,
    lambda parts: st.builds(
        lambda kind, of: kind(tuple(of)), st.sampled_from((AllOf, AnyOf, NoneOf)), st.lists(parts, max_size=3)
    ),
    max_leaves=6,
)
ORDERS = st.lists(
    st.builds(Order, TEXT_FIELDS | NUMBER_FIELDS | TIME_FIELDS, st.booleans()), min_size=1, max_size=3
).map(tuple)


def test_searches_find_what_a_filter_in_python_finds_in_the_same_order(store: Store) -> None:
    sessions = various(store)

    @settings(max_examples=150)
    @given(CONDITIONS, ORDERS, st.integers(0, 5), st.integers(0, 4) | st.just(2**40))
    def check(where: Condition, order: tuple[Order, ...], limit: int, offset: int) -> None:
        matching = [session for session in in_order(sessions, order) if holds(session, where)]
        page = store.search_sessions(where, PageRequest(limit, offset, order=order))
        assert page.items == matching[offset : offset + limit]
        assert page.total == len(matching)
        assert page.has_next is (offset + limit < len(matching))
        assert page.has_previous is (offset > 0 and bool(matching))

    check()


def test_pages_from_an_item_on_hold_what_follows_it_in_any_order(store: Store) -> None:
    sessions = various(store)

    @settings(max_examples=150)
    @given(CONDITIONS, ORDERS, st.sampled_from(sessions), st.integers(1, 9), st.booleans())
    def check(where: Condition, order: tuple[Order, ...], item: Session, limit: int, backward: bool) -> None:  # noqa: FBT001 - drawn
        ordered = in_order(sessions, order)
        place = ordered.index(item)
        earlier, later = ordered[: place + (not backward)], ordered[place + (not backward) :]
        earlier, later = ([each for each in part if holds(each, where)] for part in (earlier, later))
        if backward:
            page = store.search_sessions(where, PageRequest(limit, before=item.id, from_end=True, order=order))
            assert page.items == earlier[-limit:]
            assert (page.has_previous, page.has_next) == (len(earlier) > limit, bool(later))
        else:
            page = store.search_sessions(where, PageRequest(limit, after=item.id, order=order))
            assert page.items == later[:limit]
            assert (page.has_previous, page.has_next) == (bool(earlier), len(later) > limit)
        assert page.total == len(earlier) + len(later)

    check()


def test_the_newest_come_first_unless_a_request_says_otherwise(store: Store) -> None:
    sessions = various(store)
    newest = in_order(sessions, [Order(F.CREATED_AT, descending=True)])
    page = store.search_sessions(EVERYTHING, PageRequest(limit=7))
    assert (page.items, page.total, page.has_next, page.has_previous) == (newest[:7], len(sessions), True, False)
    last = store.search_sessions(EVERYTHING, PageRequest(limit=7, from_end=True))
    assert (last.items, last.has_next, last.has_previous) == (newest[-7:], False, True)
    between = store.search_sessions(EVERYTHING, PageRequest(99, after=newest[3].id, before=newest[9].id))
    assert (between.items, between.has_next, between.has_previous) == (newest[4:9], True, True)


def test_a_page_begins_only_at_an_item_that_the_caller_may_see(store: Store) -> None:
    [mine] = submit(store)
    [theirs] = submit(store, owner="ben")
    for key in ("no such", theirs.id, "\0"):
        with pytest.raises(InvalidRequest, match="there is no item"):
            store.search_sessions(EVERYTHING, PageRequest(after=key), seen=Seen("ann"))
    assert store.search_sessions(EVERYTHING, PageRequest(after=mine.id), seen=Seen("ann")).items == []


@pytest.mark.parametrize(
    ("seen", "names"),
    [
        (None, "abcd"),
        (Seen(everyones=True), "abcd"),
        (Seen("ann"), "ab"),
        (Seen("ann", frozenset({"night"})), "abd"),
        (Seen("ben", uid=7), "cd"),
        (Seen("ann", places=(WorkScope(queue="night"),)), "b"),
        (Seen(everyones=True, places=(WorkScope(job="job0002"),)), "c"),
        (Seen("ann", places=()), ""),
    ],
)
def test_callers_find_what_they_may_see_of_sessions_kernels_and_history(
    store: Store, seen: Seen | None, names: str
) -> None:
    store.put_entry(Queue("night"))
    sessions = [
        *submit(store, name="a"),
        *submit(store, name="b", queue="night"),
        *submit(store, name="c", owner="ben"),
        *submit(store, name="d", owner="ben", queue="night"),
    ]
    record_steps(store, sessions)
    visible = [session for session in sessions if session.name in names]
    page = PageRequest(limit=50)
    assert {each.id for each in store.search_sessions(EVERYTHING, page, seen=seen).items} == {s.id for s in visible}
    kernels = store.search_kernels(EVERYTHING, page, seen=seen)
    assert (kernels.total, {each.session_id for each in kernels.items}) == (2 * len(visible), {s.id for s in visible})
    for kind, rows in ((EntityKind.SESSION, 2), (EntityKind.KERNEL, 4)):
        steps = store.search_steps(kind, EVERYTHING, page, seen=seen)
        assert (steps.total, {step.job_id for step in steps.items}) == (
            rows * len(visible),
            {s.job_id for s in visible},
        )
    for session in sessions:
        if session in visible:
            assert store.session(session.id, seen=seen) == session
        else:
            with pytest.raises(NotFound):
                store.session(session.id, seen=seen)


def record_steps(store: Store, sessions: Sequence[Session]) -> list[HistoryRow]:
    """Record two steps of every session and kernel."""
    rows: list[HistoryRow] = []
    for session in sessions:
        for kind, rank in ((EntityKind.SESSION, None), (EntityKind.KERNEL, 0), (EntityKind.KERNEL, 1)):
            name = history_id(session.job_id, session.retry_count, rank)
            for seq, (before, after) in enumerate((("PENDING", "SCHEDULED"), ("SCHEDULED", "PREPARING"))):
                outcome = Outcome.SUCCESS if rank != 1 else Outcome.NEED_RETRY
                at = 100.0 + len(rows) // 2
                rows.append(HistoryRow(kind, name, seq, f"phase{seq}", before, after, outcome, at, at + 1))
    store.commit(Changes(history={row.key: row for row in rows}))
    return rows


def test_steps_are_found_by_their_ids_and_by_those_of_whose_they_are(store: Store) -> None:
    rows = record_steps(store, submit(store, 3))
    page = PageRequest(limit=50, order=(Order(StepField.CREATED_AT),))
    session, kernel = session_id("job0001", 0), kernel_id(session_id("job0001", 0), 1)

    def found(kind: EntityKind, field: StepField, *ids: str) -> list[HistoryRow]:
        return [*store.search_steps(kind, Compare(field, C.IN, ids), page).items]

    for row in rows:
        assert found(row.kind, StepField.ID, step_id(row)) == [row]
        assert found(row.kind, StepField.ID, session, step_id(row).upper()[:-1]) == []
    assert len({step_id(row) for row in rows}) == len(rows)
    assert found(EntityKind.SESSION, StepField.SESSION_ID, session) == [
        row for row in rows if row.id == history_id("job0001", 0)
    ]
    assert found(EntityKind.KERNEL, StepField.KERNEL_ID, kernel) == [
        row for row in rows if row.id == history_id("job0001", 0, 1)
    ]
    assert len(found(EntityKind.KERNEL, StepField.SESSION_ID, session)) == 4
    assert found(EntityKind.KERNEL, StepField.SESSION_ID, "x") == []


def test_steps_are_filtered_ordered_and_paged_like_sessions(store: Store) -> None:
    rows = [row for row in record_steps(store, submit(store, 3)) if row.kind is EntityKind.KERNEL]
    where = AllOf(
        (
            Compare(StepField.RESULT, C.EQUALS, Outcome.NEED_RETRY.value),
            NoneOf((Compare(StepField.PHASE, C.ENDS_WITH, "1"),)),
        )
    )
    wanted = [row for row in rows if row.outcome is Outcome.NEED_RETRY and row.phase == "phase0"]
    order = (Order(StepField.TO_STATUS), Order(StepField.CREATED_AT, descending=True))
    page = store.search_steps(EntityKind.KERNEL, where, PageRequest(limit=2, order=order))
    assert (page.items, page.total, page.has_next) == (wanted[:0:-1], 3, True)
    rest = store.search_steps(EntityKind.KERNEL, where, PageRequest(2, after=step_id(wanted[1]), order=order))
    assert (rest.items, rest.has_next, rest.has_previous) == (wanted[:1], False, True)
    with pytest.raises(InvalidRequest, match="there is no item"):
        store.search_steps(EntityKind.SESSION, where, PageRequest(2, after=step_id(wanted[1])))


def test_kernels_are_found_by_session_node_and_status(store: Store) -> None:
    sessions = submit(store, 3)
    kernels = [kernel for session in sessions for kernel in first_kernels(session)]
    placed = [evolve(kernel, node=f"n{kernel.rank}", status=RunStatus.RUNNING) for kernel in kernels[:3]]
    store.commit(Changes(kernels={kernel.id: kernel for kernel in placed}))
    by_rank = PageRequest(50, order=(Order(KernelField.CREATED_AT), Order(KernelField.RANK, descending=True)))

    def found(field: KernelField, value: str) -> list[Kernel]:
        return [*store.search_kernels(Compare(field, C.EQUALS, value), by_rank).items]

    assert found(KernelField.SESSION_ID, sessions[2].id) == [kernels[5], kernels[4]]
    assert found(KernelField.STATUS, "RUNNING")[0] == placed[1]
    assert {kernel.id for kernel in found(KernelField.NODE, "n0")} == {placed[0].id, placed[2].id}
    there = store.search_sessions(Compare(F.NODE, C.EQUALS, "n1"), PageRequest())
    assert [session.id for session in there.items] == [sessions[0].id]
    elsewhere = store.search_sessions(NoneOf((Compare(F.NODE, C.IN, ("n0", "n1")),)), PageRequest())
    assert [session.id for session in elsewhere.items] == [sessions[2].id]


def test_a_session_is_renamed_and_its_retry_has_the_new_name(store: Store) -> None:
    [session] = submit(store, name="old", tag="t")
    renamed = store.rename_session(session.id, SessionRename(name="new"), 1.0)
    assert renamed == evolve(session, name="new") == store.session(session.id)
    again = store.rename_session(session.id, SessionRename(tag=""), 2.0)
    assert again == evolve(session, name="new", tag="") == store.session(session.id)
    retry = retry_of(session)
    store.commit(Changes(sessions={retry.id: retry, session.id: session}, retries={retry.id: session.id}))
    assert [(each.name, each.tag) for each in store.chains([session.job_id])[session.job_id]] == [("new", "")] * 2
    with pytest.raises(NotFound, match="no session 'x'"):
        store.rename_session("x", SessionRename(name="new"), 1.0)


def test_a_name_of_another_live_session_is_refused_and_that_of_an_ended_one_is_free(store: Store) -> None:
    first, second = submit(store, 2)
    names = {session.job_id: ExternalName(f"bai/ann/{number}") for number, session in enumerate((first, second))}
    for job_id, name in names.items():
        store.rename_session(session_id(job_id, 0), SessionRename(external_name=name.name), 1.0)
    wanted = SessionRename(name="b", external_name="bai/ann/1")
    with pytest.raises(AlreadyExists):
        store.rename_session(first.id, wanted, 2.0)
    assert store.session(first.id) == first, "nothing was changed"
    assert {*store.named(["bai/ann/0", "bai/ann/1"])} == {"bai/ann/0", "bai/ann/1"}
    job = store.job(second.job_id)
    store.commit(Changes(jobs={job.id: evolve(job, state=JobState.SUCCEEDED, ended_at=9.0)}))
    assert store.rename_session(first.id, wanted, 3.0).name == "b"
    assert store.rename_session(first.id, wanted, 4.0).name == "b", "its own name is no other's"
    assert {name: named.job_id for name, named in store.named(["bai/ann/0", "bai/ann/1"]).items()} == {
        "bai/ann/1": first.job_id
    }


def test_of_two_sessions_that_take_a_name_at_one_moment_one_has_it(store: Store) -> None:
    sessions = submit(store, 4)
    ready = Barrier(len(sessions))

    def has_taken(session: Session) -> bool:
        store.session(session.id)
        ready.wait()
        try:
            store.rename_session(session.id, SessionRename(name="same", external_name="bai/ann/same"), 1.0)
        except AlreadyExists:
            return False
        return True

    with ThreadPoolExecutor(len(sessions)) as threads:
        taken = [*threads.map(has_taken, sessions)]
    assert [session.name == "same" for session in map(store.session, (each.id for each in sessions))] == taken
    assert (sum(taken), {*store.named(["bai/ann/same"])}) == (1, {"bai/ann/same"})


def test_a_chain_of_a_hundred_sessions_is_read_with_one_statement_and_their_kernels_with_another(store: Store) -> None:
    chain = submit(store)
    while len(chain) < 100:
        chain.append(retry_of(chain[-1]))
    kernels = {kernel.id: kernel for session in chain for kernel in first_kernels(session)}
    store.commit(Changes(sessions={session.id: session for session in chain}, kernels=kernels))
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        statements.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        assert store.chains([chain[0].job_id]) == {chain[0].job_id: chain}
        assert len(store.kernels_of([session.id for session in chain])) == 100
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert len(statements) == 2, statements


def test_a_retry_that_ten_write_at_once_is_one_session(store: Store) -> None:
    """RD-016: its id is made from its place in the chain."""
    [parent] = submit(store)
    child, together = retry_of(parent), Barrier(10)

    def write(_: int) -> None:
        together.wait()
        store.commit(Changes(sessions={child.id: child}, retries={child.id: parent.id}))

    with ThreadPoolExecutor(10) as pool:
        [*pool.map(write, range(10))]
    chain = store.chains([parent.job_id])[parent.job_id]
    assert [session.id for session in chain] == [parent.id, child.id]


def test_sessions_kernels_and_their_history_are_deleted_with_their_job(store: Store) -> None:
    kept, gone = submit(store, 2)
    record_steps(store, [kept, gone])
    job = store.job(gone.job_id)
    store.commit(Changes(jobs={job.id: evolve(job, state=JobState.SUCCEEDED, ended_at=9.0)}, handled=[1]))
    assert store.delete_finished([gone.job_id, kept.job_id]) == 1
    page = PageRequest(limit=50)
    assert [session.id for session in store.search_sessions(EVERYTHING, page).items] == [kept.id]
    assert {kernel.session_id for kernel in store.search_kernels(EVERYTHING, page).items} == {kept.id}
    for kind in (EntityKind.SESSION, EntityKind.KERNEL):
        assert {step.job_id for step in store.search_steps(kind, EVERYTHING, page).items} == {kept.job_id}
        assert steps_of(store, kind, history_id(gone.job_id, 0, None if kind is EntityKind.SESSION else 0)) == []
