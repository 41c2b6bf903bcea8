"""How notifications get from commits to people: under the real controller and database, in virtual time."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Caller
from holdfast.domain.job import Queue
from holdfast.domain.notifications.notification import DeliveryState
from holdfast.domain.notifier import Medium, Notifier, Notify, Occasion
from holdfast.domain.workloads.array.model import ArraySpec, Indexes
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import Unavailable
from holdfast.notify.courier import AT_ONCE, AT_ONCE_EACH, Courier
from holdfast.ports.entries import NOTIFIER
from holdfast.ports.notifications import NotificationFilter, SendResult
from holdfast.ports.requests import RequestKind
from holdfast.service.operations.notifiers import Notifications
from tests.unit.conftest import LoadedDice, exits, retrying
from tests.unit.test_arrays import ArrayLab

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from holdfast.domain.notifications.notification import Notification
    from holdfast.errors import Problem

BY = Caller(Principal("me", roles=(Role.ADMIN,)), 0.0)

END, FAILURE, HOLD, _, RECOVERY, *_REST = Occasion
EVERYTHING = NotificationFilter()


class Held:
    """Workers that do nothing until they are let, and then everything at once."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []
        self.held = False

    def submit(self, call: Callable[[], None]) -> None:
        if self.held:
            self.calls.append(call)
        else:
            call()

    def let(self, count: int = 1) -> None:
        for call in self.calls[:count]:
            call()
        del self.calls[:count]


class Post:
    """Where people are told; answers what the test says."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []
        self.answers: dict[str, SendResult] = {}
        self.sent: list[Notification] = []

    def check(self, _: Notifier) -> Sequence[Problem]:
        return []

    def send(self, notifier: Notifier, notification: Notification, _: float) -> SendResult:
        self.told.append((notifier.name, notification.id, notification.report.event))
        self.sent.append(notification)
        return self.answers.get(notifier.name, SendResult())


class TellingLab(ArrayLab):
    """A lab whose store tells people."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        for name in ("ops", "me"):
            self.store.put_entry(Notifier(name, Medium.WEBHOOK, url="https://example.org"))
        self.post, self.workers = Post(), Held()
        self.counted: Counter[str] = Counter()
        self.courier = self.another()

    def another(self) -> Courier:
        count = self.counted.update
        return Courier(
            self.store, self.post, self.clock, LoadedDice(), workers=self.workers, count=lambda how: count([how])
        )

    def run(self, *codes: int, notify: tuple[Notify, ...] = (Notify("ops", tuple(Occasion)),)) -> None:
        """Run a job whose attempts end with these codes in turn."""
        left = list(codes)
        self.plan = lambda _: exits(left.pop(0))
        policies = (retrying(len(codes) - 1),)
        self.submit(JobSpec(f"train-{len(self.plans)}", ("train",), notify=notify, inline_policies=policies))
        self.pass_s(5 * len(codes))

    def outbox(self) -> Sequence[Notification]:
        return self.store.notifications(EVERYTHING, limit=1000)

    def deliver(self, for_s: float = 0.0) -> None:
        """Step as the loop would for some time."""
        until = self.clock.now() + for_s
        while True:
            while self.courier.step() <= 0:
                pass
            due = self.store.next_notification_at()
            if due is None or due > until:
                return
            self.clock.time = max(self.clock.time, due)


@pytest.fixture
def lab(tmp_path: Path) -> TellingLab:
    return TellingLab(tmp_path / "holdfast.db")


@pytest.mark.parametrize(
    ("codes", "event"), [((0,), "job.succeeded"), ((1, 1, 0), "job.recovered"), ((1, 3), "job.failed")]
)
def test_a_job_is_told_of_once_however_many_attempts_it_took(
    lab: TellingLab, codes: tuple[int, ...], event: str
) -> None:
    lab.run(*codes)
    lab.restart_controller()
    lab.pass_s(10)
    lab.deliver(60)
    [(to, _, told)] = lab.post.told
    assert (to, told) == ("ops", event)
    [report] = [one.report for one in lab.post.sent]
    assert (report.attempts, report.nodes != ()) == (len(codes), True)
    assert report.failure == ("exit code 3" if event == "job.failed" else "")


def test_a_job_that_asks_for_nothing_leaves_nothing_to_be_told(lab: TellingLab) -> None:
    lab.run(1, 1, notify=())
    assert lab.outbox() == []


def test_a_queue_is_told_of_its_jobs_and_arrays_from_when_it_says_so(lab: TellingLab) -> None:
    lab.run(0, notify=())
    lab.store.put_entry(Queue("default", notify=(Notify("me", (END,)), Notify("ops", (FAILURE,)))))
    lab.run(2, notify=(Notify("me", (FAILURE,)),))
    lab.plan = lambda order: exits(int(order.containers[0].env["HOLDFAST_ARRAY_INDEX"]) % 2)
    lab.submit_array(ArraySpec(JobSpec("sweep", ("train",)), (Indexes(0, 3),)))
    lab.pass_s(60)
    lab.deliver()
    told = [(to, event) for to, _, event in lab.post.told]
    assert told == [("me", "job.failed"), ("ops", "job.failed"), ("me", "array.failed"), ("ops", "array.failed")]
    array = lab.post.sent[-1].report
    assert (dict(array.counts), dict(array.causes)) == (
        {"succeeded": 2, "failed": 2, "cancelled": 0},
        {"exit code 1": 2},
    )


def test_a_hold_is_told_each_time_and_the_end_once(lab: TellingLab) -> None:
    job = lab.submit(JobSpec("train", ("train",), notify=(Notify("ops"),)))
    for _ in range(2):
        lab.ask(RequestKind.HOLD, job, "wait for the data")
        lab.pass_s(1)
        lab.ask(RequestKind.RELEASE, job)
    lab.pass_s(20)
    lab.deliver()
    assert [event for _, _, event in lab.post.told] == ["job.held", "job.held", "job.succeeded"]
    assert len({key for _, key, _ in lab.post.told}) == 3
    assert lab.post.sent[0].report.reason == "wait for the data"


@pytest.mark.parametrize("restarts", [False, True])
def test_that_an_array_is_held_is_told_each_time_and_once(lab: TellingLab, *, restarts: bool) -> None:
    lab.plan = lambda _: exits(0, after_s=5.0)
    lab.submit_array(ArraySpec(JobSpec("sweep", ("train",)), (Indexes(0, 3),), notify=(Notify("ops"),)))
    for why in ("wait for the data", "wait again"):
        lab.ask(RequestKind.HOLD, "sweep", why)
        lab.pass_s(1)
        lab.ask(RequestKind.HOLD, "sweep", "me, too")
        lab.pass_s(1)
        assert [one.report.reason for one in lab.outbox()][-1] == why, "in the commit that holds it"
        if restarts:
            lab.restart_controller()
            lab.courier = lab.another()
        lab.pass_s(2)
        lab.deliver()
        lab.ask(RequestKind.RELEASE, "sweep")
        lab.pass_s(1)
    lab.pass_s(20)
    lab.deliver()
    assert [event for _, _, event in lab.post.told] == ["array.held", "array.held", "array.succeeded"]
    assert len({key for _, key, _ in lab.post.told}) == 3


def test_what_cannot_be_delivered_is_tried_again_and_given_up_after_a_day_and_can_be_replayed(lab: TellingLab) -> None:
    lab.post.answers["ops"] = SendResult("it answered 500")
    lab.run(0)
    lab.deliver(2 * 86_400)
    [dead] = lab.outbox()
    assert (dead.state, dead.tries, dead.error) == (DeliveryState.DEAD, 13, "it answered 500")
    assert len({key for _, key, _ in lab.post.told}) == 1
    assert lab.counted == {"failed": 12, "dead": 1}
    del lab.post.answers["ops"]
    Notifications(lab.store, lab.clock).replay(BY, dead.id)
    lab.deliver()
    [delivered] = lab.outbox()
    assert (delivered.state, delivered.tries, delivered.error) == (DeliveryState.DELIVERED, 1, "")
    assert lab.post.told[-1] == lab.post.told[0]


def test_a_notifier_that_is_gone_is_given_up_at_once_with_its_name(lab: TellingLab) -> None:
    lab.run(0)
    lab.store.delete_entry(NOTIFIER, "ops")
    lab.deliver()
    [dead] = lab.outbox()
    assert (dead.state, dead.error) == (DeliveryState.DEAD, "notifier 'ops' does not exist, or cannot be read")


def test_one_that_never_answers_leaves_room_for_the_others(lab: TellingLab) -> None:
    lab.workers.held = True
    for _ in range(2 * AT_ONCE):
        lab.run(0, notify=(Notify("ops"),))
    lab.run(0, notify=(Notify("me"),))
    lab.courier.step()
    assert len(lab.workers.calls) == AT_ONCE_EACH + 1  # two to one that does not answer, one to the other
    lab.workers.let(1)
    assert lab.courier.step() >= 0.0
    assert len(lab.workers.calls) == AT_ONCE_EACH + 1  # the next to the one that answered


def test_who_is_killed_between_telling_and_storing_it_tells_again_under_the_same_id(lab: TellingLab) -> None:
    lab.run(0)
    lab.courier.step()  # it is delivered, and that is not stored yet
    lab.courier = lab.another()
    lab.deliver()
    first, second = lab.post.told
    assert first == second
    assert [one.state for one in lab.outbox()] == [DeliveryState.DELIVERED]


def test_what_cannot_be_stored_while_the_database_is_away_is_stored_later_and_not_told_again(
    lab: TellingLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.run(0)
    lab.courier.step()

    def away(*_: object) -> None:
        message = "the disk is full"
        raise Unavailable(message)

    with monkeypatch.context() as patched:
        patched.setattr(lab.store, "settle_notifications", away)
        for _ in range(3):
            with pytest.raises(Unavailable):
                lab.courier.step()
    lab.deliver(60)
    assert len(lab.post.told) == 1
    assert [one.state for one in lab.outbox()] == [DeliveryState.DELIVERED]


def test_before_a_process_ends_what_is_due_is_delivered_and_the_rest_is_counted(lab: TellingLab) -> None:
    lab.post.answers["me"] = SendResult("it answered 500")
    lab.run(0, notify=(Notify("ops"), Notify("me")))
    assert lab.courier.drain(5.0) == 1
    assert {one.to: one.state.value for one in lab.outbox()} == {"ops": "Delivered", "me": "Waiting"}
