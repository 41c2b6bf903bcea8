"""What is told of the retries of sessions: as events, to notifiers, in metrics and in the audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.app.telemetry import Telemetry
from holdfast.domain.audit import Act, Subject
from holdfast.domain.events.jobs import JobFailed
from holdfast.domain.events.sessions import SessionRetryExhausted, SessionRetryScheduled
from holdfast.domain.failure import EndedBy, FailureCondition
from holdfast.domain.job import Queue
from holdfast.domain.notifications.words import facts, payload, subject
from holdfast.domain.notifier import Medium, Notifier, Notify, Occasion
from holdfast.domain.record import evolve
from holdfast.domain.sessions.model import SessionType, creation_id, session_id
from holdfast.domain.sessions.policy import RetryEligibleCause, SessionRetryPolicy
from holdfast.ports.events import EventFilter
from holdfast.ports.notifications import NotificationFilter
from holdfast.ports.requests import RequestKind
from tests.unit.conftest import Lab, ends_with, exits, job_named, retrying
from tests.unit.test_session_chains import AT_ONCE, SOON, chain, enqueue
from tests.unit.test_telemetry import observe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.events.registry import Event
    from holdfast.engines.simulated.life import SimulatedRun

TOLD = (SessionRetryScheduled, SessionRetryExhausted)


def events(lab: Lab, job: str) -> Sequence[Event]:
    return [stored.event for stored in lab.store.events(limit=1000, where=EventFilter(job_id=job))]


def told(lab: Lab, job: str) -> list[Event]:
    return [event for event in events(lab, job) if isinstance(event, TOLD)]


def test_each_retry_is_announced_and_the_last_failure_once(lab: Lab) -> None:
    """RX-001, RX-008."""
    job = enqueue(lab, "fails", SOON, exits(1))
    lab.pass_s(90)
    ids, failed = [session_id(job, count) for count in range(3)], "kernel_nonzero_exit"
    delays = [attempt.decision.delay_s for attempt in lab.attempts(job) if attempt.decision is not None]
    due = [attempt.retry_at or 0.0 for attempt in lab.attempts(job)]
    assert told(lab, job) == [
        SessionRetryScheduled(ids[0], ids[1], creation_id(job, 1), failed, 2, 3, delays[0], due[0]),
        SessionRetryScheduled(ids[1], ids[2], creation_id(job, 2), failed, 3, 3, delays[1], due[1]),
        SessionRetryExhausted(ids[2], failed, 3, 3),
    ]
    assert min(delays[:2]) >= SOON.retry_delay
    assert [session.creation_id for session in chain(lab, job)[1:]] == [creation_id(job, count) for count in (1, 2)]


def test_a_retry_is_announced_with_the_decision_before_its_session_exists(lab: Lab) -> None:
    job = enqueue(lab, "waits", SOON, exits(1))
    lab.pass_s(4)
    [scheduled] = told(lab, job)
    [parent] = chain(lab, job)
    assert isinstance(scheduled, SessionRetryScheduled)
    assert (scheduled.session_id, scheduled.retry_at) == (parent.id, parent.retry_at)
    lab.restart_controller()
    lab.pass_s(4)
    assert told(lab, job) == [scheduled]


def test_exhaustion_is_announced_before_the_job_ends(lab: Lab) -> None:
    job = enqueue(lab, "fails", evolve(AT_ONCE, max_retries=1), exits(1))
    lab.pass_s(30)
    last, end = events(lab, job)[-2:]
    assert (type(last), type(end)) == (SessionRetryExhausted, JobFailed)


@pytest.mark.parametrize(
    ("policy", "fields", "plan"),
    [
        (SessionRetryPolicy(max_retries=0), {}, exits(1)),
        (evolve(AT_ONCE, eligible_causes=frozenset({RetryEligibleCause.OOM_KILLED})), {}, exits(1)),
        (AT_ONCE, {"type": SessionType.INTERACTIVE}, exits(1)),
        (AT_ONCE, {"retries_enabled": False}, exits(1)),
        (AT_ONCE, {}, exits(0)),
    ],
    ids=["RX-002", "not eligible", "interactive", "switched off", "succeeded"],
)
def test_nothing_is_told_of_what_is_never_retried(
    lab: Lab, policy: SessionRetryPolicy, fields: dict[str, object], plan: SimulatedRun
) -> None:
    job = enqueue(lab, "once", policy, plan, **fields)
    lab.pass_s(30)
    assert told(lab, job) == []


def test_nothing_is_told_of_a_session_that_is_ended(lab: Lab) -> None:
    job = enqueue(lab, "ended", AT_ONCE, exits(0, after_s=100.0))
    lab.pass_s(3)
    lab.ask(RequestKind.CANCEL, job)
    lab.pass_s(10)
    assert told(lab, job) == []


def test_a_policy_may_silence_its_events(lab: Lab) -> None:
    """RX-004."""
    asked = (Notify("ops", tuple(Occasion)),)
    lab.store.put_entry(Notifier("ops", Medium.WEBHOOK, url="https://example.org"))
    job = enqueue(lab, "quiet", evolve(AT_ONCE, max_retries=1, emit_retry_events=False), exits(1), notify=asked)
    lab.pass_s(30)
    assert len(chain(lab, job)) == 2
    assert told(lab, job) == []
    assert [notification.report.event for notification in outbox(lab)] == ["job.failed"]


@pytest.mark.parametrize(
    ("plan", "cause"),
    [
        (ends_with(FailureCondition.EXECUTOR_LOST, EndedBy.LOST), "agent_transient"),
        (ends_with(FailureCondition.DEADLINE_EXCEEDED, EndedBy.DEADLINE), "unknown"),
        (ends_with(FailureCondition.STALLED, EndedBy.STALL), "unknown"),
    ],
)
def test_causes_are_told_and_kept_as_policies_name_them(lab: Lab, plan: SimulatedRun, cause: str) -> None:
    job = enqueue(lab, "fails", evolve(AT_ONCE, max_retries=1), plan)
    lab.pass_s(60)
    assert [(getattr(event, "cause", "")) for event in told(lab, job)] == [cause, cause]
    assert [session.retry_cause for session in chain(lab, job)] == [cause, cause]


def outbox(lab: Lab) -> Sequence[Any]:
    return lab.store.notifications(NotificationFilter(), limit=100)


def test_notifiers_of_the_job_and_its_queue_are_told_in_order(lab: Lab) -> None:
    for name in ("ops", "me", "rest"):
        lab.store.put_entry(Notifier(name, Medium.WEBHOOK, url="https://example.org"))
    every = (Occasion.RETRY, Occasion.EXHAUSTED, Occasion.END)
    lab.store.put_entry(Queue("ml", notify=(Notify("me", (Occasion.EXHAUSTED,)), Notify("rest"))))
    job = enqueue(lab, "train", evolve(SOON, max_retries=1), exits(3), queue="ml", notify=(Notify("ops", every),))
    lab.pass_s(60)
    sent = [(notification.to, notification.report) for notification in outbox(lab)]
    assert [(to, report.event) for to, report in sent] == [
        ("ops", "session.retry_scheduled"),
        ("ops", "session.retry_exhausted"),
        ("me", "session.retry_exhausted"),
        ("ops", "job.failed"),
        ("rest", "job.failed"),
    ]
    scheduled, exhausted = sent[0][1], sent[1][1]
    body = payload(scheduled)
    assert body["type"] == "session.retry_scheduled"
    first, parent = told(lab, job)[0], session_id(job, 0)
    assert isinstance(first, SessionRetryScheduled)
    assert body["data"]["session"] == {
        "session_id": parent,
        "child_id": session_id(job, 1),
        "child_creation_id": creation_id(job, 1),
        "cause": "kernel_nonzero_exit",
        "attempt": 2,
        "of": 2,
        "delay_s": first.delay_s,
        "retry_at": first.retry_at,
    }
    assert "session" not in payload(sent[3][1])["data"]
    assert subject(scheduled) == "session train failed and will be retried: exit code 3"
    assert subject(exhausted) == "session train failed with no retries left: exit code 3"
    assert dict(facts(exhausted))["retry"] == "attempt 2 of 2"
    assert dict(facts(scheduled))["retry"].startswith("attempt 2 of 2 at 1970-01-12T")


@pytest.mark.parametrize(("emits", "doors"), [(True, ("backendai",)), (False, ())])
def test_retries_are_counted_also_when_their_events_are_silenced(
    lab: Lab, *, emits: bool, doors: tuple[str, ...]
) -> None:
    """RX-004, RX-005, RD-013."""
    telemetry = Telemetry(lab.clock.now, doors)

    def value(name: str, **labels: str) -> float | None:
        return telemetry.registry.get_sample_value(f"bai_session_retry_{name}_total", labels)

    assert value("succeeded") == (0 if doors else None)
    once, oom = evolve(AT_ONCE, max_retries=1, emit_retry_events=emits), {"cause": "oom_killed"}
    enqueue(lab, "late", evolve(once, retry_delay=5.0), lambda order: exits(1 if order.attempt == 1 else 0))
    enqueue(lab, "big", once, ends_with(FailureCondition.OOM_KILLED, EndedBy.ITSELF))
    enqueue(lab, "slow", once, ends_with(FailureCondition.DEADLINE_EXCEEDED, EndedBy.DEADLINE))
    enqueue(lab, "once", evolve(once, max_retries=0), exits(1))
    enqueue(lab, "fine", once, exits(0))
    observe(lab, telemetry, 60)
    assert (value("scheduled", **oom), value("exhausted", **oom)) == (1, 1)
    assert (value("scheduled", cause="unknown"), value("exhausted", cause="unknown")) == (1, 1)
    assert value("scheduled", cause="kernel_nonzero_exit") == 1
    assert value("exhausted", cause="kernel_nonzero_exit") is None
    assert value("succeeded") == 1


def test_jobs_that_are_no_sessions_are_not_counted_as_such(lab: Lab) -> None:
    telemetry = Telemetry(lab.clock.now, ("backendai",))
    lab.submit(job_named("flaky", retrying(1)), exits(1))
    observe(lab, telemetry, 20)
    names = {sample.name for family in telemetry.registry.collect() for sample in family.samples}
    assert "bai_session_retry_scheduled_total" not in names
    assert "bai_session_retry_exhausted_total" not in names


def test_each_retry_is_in_the_audit_log_with_its_session(lab: Lab) -> None:
    """RX-007."""
    job = enqueue(lab, "fails", SOON, exits(1))
    lab.pass_s(4)
    assert lab.store.audit(limit=9) == []
    lab.restart_controller()
    lab.pass_s(90)
    ids = [session_id(job, count) for count in range(3)]
    entries = [stored.entry for stored in lab.store.audit(limit=9)]
    assert [(entry.caller.actor, entry.act, entry.subject, entry.name, entry.detail) for entry in entries] == [
        (
            "system",
            Act.RETRY,
            Subject.JOB,
            job,
            (
                f"auto=true cause=kernel_nonzero_exit attempt={count + 1} of=3"
                f" session={ids[count]} parent={ids[count - 1]}"
            ),
        )
        for count in (1, 2)
    ]
    begun = [session.created_at for session in chain(lab, job)[1:]]
    assert [entry.caller.at for entry in entries] == begun
