"""What every store promises those who tell people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Act, Caller
from holdfast.domain.events.workloads import NotificationDead, NotificationDelivered
from holdfast.domain.failure import Cause, Failure, FailureCondition
from holdfast.domain.job import Attempt, ChildOf, Job, JobState, Queue
from holdfast.domain.lifecycle import AttemptStatus
from holdfast.domain.notifications.notification import DeliveryState, Notification, OutcomeReport
from holdfast.domain.notifier import Medium, Notifier, Notify, Secret
from holdfast.domain.record import evolve
from holdfast.errors import AlreadyExists, Conflict, InvalidRequest, NotFound
from holdfast.ports.entries import NOTIFIER
from holdfast.ports.notifications import NotificationFilter
from holdfast.ports.store import Changes, Submission

if TYPE_CHECKING:
    from holdfast.ports.store import Store
    from tests.contract.conftest import Place

OPS = Notifier("ops", Medium.WEBHOOK, url="https://example.org", signing=Secret(env="HOLDFAST_SECRET_OPS"))
EVERYTHING = NotificationFilter()
BY = Caller(Principal("me", roles=(Role.ADMIN,)), 9.0)


def told(key: str, to: str = "ops", at: float = 1.0, about: str = "") -> Notification:
    report = OutcomeReport(
        event="job.failed",
        kind="job",
        id=about or f"job-{key}",
        name="train",
        at=at,
        state="Failed",
        failure="exit code 3 \0 \ud800",
        exit_code=3,
        nodes=("n1",),
        causes={"gpu": 2},
    )
    return Notification(id=key, to=to, report=report, created_at=at, since=at, next_at=at)


def test_a_notifier_is_created_changed_and_deleted_and_each_moves_the_catalogue(store: Store) -> None:
    versions = [store.catalogue_version()]
    store.put_entry(OPS, create=True, caller=BY)
    versions.append(store.catalogue_version())
    store.put_entry(OPS)
    assert store.catalogue_version() == versions[-1]
    changed = evolve(OPS, timeout_s=3.0)
    store.put_entry(changed, create=False)
    versions.append(store.catalogue_version())
    assert dict(store.catalogue().notifiers) == {"ops": changed}
    with pytest.raises(AlreadyExists):
        store.put_entry(OPS, create=True)
    with pytest.raises(NotFound):
        store.put_entry(evolve(OPS, name="other"), create=False)
    store.delete_entry(NOTIFIER, "ops", caller=BY)
    assert dict(store.catalogue().notifiers) == {}
    with pytest.raises(NotFound):
        store.delete_entry(NOTIFIER, "ops")
    assert versions == sorted(set(versions))
    events = [one.type.name for one in store.events(after=0, limit=99)]
    assert [name for name in events if name != "operator.acted"] == ["notifier.created", "notifier.deleted"]


def test_a_queue_names_only_notifiers_there_are_and_keeps_them_from_being_deleted(store: Store) -> None:
    queue = Queue("ml", notify=(Notify("ops"),))
    with pytest.raises(InvalidRequest) as caught:
        store.put_entry(queue)
    assert str(caught.value.problems[0]).startswith("notify[0].to: notifier 'ops' does not exist")
    store.put_entry(OPS)
    store.put_entry(queue)
    assert store.catalogue().queues["ml"] == queue
    with pytest.raises(Conflict, match="used by queue 'ml'"):
        store.delete_entry(NOTIFIER, "ops")


def test_what_is_to_be_told_is_stored_once_with_the_commit_and_is_there_after_a_restart(place: Place) -> None:
    place.open().commit(Changes(notifications=[told("a"), told("b", "me", at=2.0)]))
    place.open().commit(Changes(notifications=[evolve(told("a"), to="other")]))
    store = place.open()
    first, second = store.notifications(EVERYTHING, limit=9)
    assert (first.id, first.to, second.id, first.seq < second.seq) == ("a", "ops", "b", True)
    assert evolve(first, seq=0, report=told("a").report) == told("a")
    assert first.report.failure.startswith("exit code 3")
    assert evolve(first.report, failure="") == evolve(told("a").report, failure="")
    assert store.notification("b") == second
    with pytest.raises(NotFound):
        store.notification("c")


def test_those_that_are_due_come_first_to_last_without_those_under_way_or_full(store: Store) -> None:
    store.commit(
        Changes(notifications=[told("late", at=9.0), told("b", at=3.0), told("a", at=2.0), told("m", "me", 1.0)])
    )

    def due(now: float, **but: object) -> list[str]:
        return [one.id for one in store.due_notifications(now, limit=9, **but)]  # type: ignore[arg-type] # by name

    assert due(5.0) == ["m", "a", "b"]
    assert due(5.0, but={"a"}) == ["m", "b"]
    assert due(5.0, not_to={"ops"}) == ["m"]
    assert [one.id for one in store.due_notifications(99.0, limit=2)] == ["m", "a"]
    assert store.next_notification_at() == 1.0
    assert store.next_notification_at(not_to={"me"}, but={"a"}) == 3.0
    assert store.next_notification_at(not_to={"me", "ops"}) is None


def test_a_notifier_hears_about_one_job_in_order(store: Store) -> None:
    first, second = told("first", at=1.0, about="j"), told("second", at=1.0, about="j")
    store.commit(Changes(notifications=[first, second, told("another", "me", 2.0, about="j"), told("of-k", at=2.0)]))

    def due(now: float) -> list[str]:
        return [one.id for one in store.due_notifications(now, limit=9)]

    assert due(5.0) == ["first", "another", "of-k"]
    assert store.next_notification_at(but={"first", "another", "of-k"}) is None
    store.settle_notifications([store.notification("first").failed("it answered 500", 5.0, draw=0.5, final=False)])
    assert due(6.0) == ["another", "of-k"]
    store.settle_notifications([store.notification("first").delivered(10.0)])
    assert due(10.0) == ["second", "another", "of-k"]


def test_what_is_settled_is_due_no_more_and_in_the_event_log(store: Store) -> None:
    store.commit(Changes(notifications=[told("a"), told("b"), told("c")]))
    a, b, c = store.due_notifications(5.0, limit=9)
    dead = b.failed("it answered 410", 6.0, draw=0.5, final=True)
    store.settle_notifications([a.delivered(6.0), dead, c.failed("it answered 500", 6.0, draw=0.5, final=False)])
    assert [(one.id, one.tries, one.error) for one in store.due_notifications(99.0, limit=9)] == [
        ("c", 1, "it answered 500")
    ]
    assert dict(store.count_notifications()) == {"Delivered": 1, "Dead": 1, "Waiting": 1}
    assert [one.event for one in store.events(after=0, limit=9)] == [
        NotificationDelivered("a", "ops", "job-a", 1),
        NotificationDead("b", "ops", "job-b", 1, "it answered 410"),
    ]
    found = store.notifications(NotificationFilter(DeliveryState.DEAD, "ops", "job-b"), limit=9)
    assert [one.id for one in found] == ["b"]
    assert store.notifications(NotificationFilter(to="me"), limit=9) == []
    assert store.notifications(NotificationFilter(about="k"), limit=9) == []
    assert [one.id for one in store.notifications(EVERYTHING, after=a.seq, limit=1)] == ["b"]


def test_what_became_of_a_try_is_not_stored_of_what_was_settled_replayed_or_forgotten_meanwhile(store: Store) -> None:
    store.commit(Changes(notifications=[told(key) for key in "abc"]))
    tried = store.due_notifications(5.0, limit=9)
    a, b, c = tried
    store.settle_notifications([one.delivered(6.0) for one in tried])  # by a courier that leads since
    store.replay_notifications(["b"], 7.0)
    store.commit(Changes(notifications=[told("d")]))
    assert store.delete_notifications(settled_before=6.5, limit=1) == 1
    before, told_of = store.notifications(EVERYTHING, limit=9), len(store.events(after=0, limit=99))
    late = [a.delivered(8.0), b.delivered(8.0), c.failed("it answered 500", 8.0, draw=0.5, final=False)]
    d = store.notification("d").failed("it answered 500", 8.0, draw=0.5, final=False)
    assert [one.id for one in store.settle_notifications([*late, d])] == ["d"]
    assert {one.id: one for one in store.notifications(EVERYTHING, limit=9)} == {
        one.id: (evolve(d, seq=one.seq) if one.id == "d" else one) for one in before
    }
    assert len(store.events(after=0, limit=99)) == told_of


def test_who_has_delivered_says_so_though_another_try_failed_meanwhile(store: Store) -> None:
    store.commit(Changes(notifications=[told("a")]))
    (a,) = store.due_notifications(5.0, limit=9)
    store.settle_notifications([a.failed("it answered 500", 6.0, draw=0.5, final=False)])
    store.settle_notifications([a.delivered(7.0)])
    assert store.notification("a").state is DeliveryState.DELIVERED


def test_a_replay_makes_what_is_settled_due_again_under_its_id_and_is_audited(store: Store) -> None:
    store.commit(Changes(notifications=[told("a"), told("b")]))
    store.settle_notifications([store.notification("a").failed("gone", 6.0, draw=0.5, final=True)])
    assert store.replay_notifications(["a", "b", "no"], 7.0, caller=BY) == 1
    again = store.notification("a")
    assert (again.state, again.tries, again.since, again.next_at) == (DeliveryState.WAITING, 0, 7.0, 7.0)
    assert [(one.entry.act, one.entry.name) for one in store.audit(after=0, limit=9)] == [(Act.REPLAY, "a")]


def test_old_ones_are_forgotten_a_few_at_a_time_and_those_that_wait_are_kept(store: Store) -> None:
    store.commit(Changes(notifications=[told(key) for key in "abcd"]))
    for key, at in (("a", 10.0), ("b", 11.0), ("c", 99.0)):
        store.settle_notifications([store.notification(key).delivered(at)])
    assert [store.delete_notifications(settled_before=50.0, limit=1) for _ in range(3)] == [1, 1, 0]
    assert [one.id for one in store.notifications(EVERYTHING, limit=9)] == ["c", "d"]


def test_failed_tasks_are_counted_by_what_their_last_attempts_failed_of(store: Store) -> None:
    lost = Failure(cause=Cause.AGENT_TRANSIENT, conditions=frozenset({FailureCondition.NODE_LOST}), message="of n1")
    full = Failure(Cause.OOM_KILLED, frozenset(), category="memory")
    jobs = [
        Job(f"t{index}", f"t{index}", "default", 0, 1.0, "{}", state=JobState.QUEUED, child=ChildOf("arr", "", index))
        for index in range(5)
    ]
    store.submit(Submission(jobs))
    failures = [lost, full, full, None, None]
    done = [evolve(one, state=JobState.FAILED, attempt=2) for one in jobs[:4]]
    ended = [
        Attempt(one.id, number, AttemptStatus.ERROR, failure=failure if number == 2 else lost)
        for one, failure in zip(jobs, failures, strict=True)
        for number in (1, 2)
        if failure is not None
    ]
    store.commit(Changes(jobs={one.id: one for one in done}, attempts={one.key: one for one in ended}))
    assert list(store.causes_of("arr").items()) == [("memory", 2), ("NodeLost", 1), ("unknown", 1)]
    assert store.causes_of("other") == {}
