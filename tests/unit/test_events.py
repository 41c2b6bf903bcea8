"""Each transition of a job is one event, each event has its line in the registry, and a fold of them is the job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.client.events import Message, messages
from holdfast.domain import event_mapping
from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Caller
from holdfast.domain.events.jobs import (
    AttemptEnded,
    AttemptStatusChanged,
    FailureDecided,
    JobCancelled,
    JobCancelRequested,
    JobFailed,
    JobHeld,
    JobQueued,
    JobReleased,
    JobRetryScheduled,
    JobStarted,
    JobSubmitted,
    JobSucceeded,
    JobWaiting,
)
from holdfast.domain.events.operators import ENTRY_EVENTS, NodeLost, OperatorActed
from holdfast.domain.events.rebuild import rebuild
from holdfast.domain.events.registry import BY_KIND, BY_NAME, Event, EventRecord, StoredEvent
from holdfast.domain.failure import Cause, ContainerResult, Failure
from holdfast.domain.job import Attempt, Job, JobState, Resources, Run
from holdfast.domain.lifecycle import AttemptStatus, Ending
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.model import Action, Decision, LimitUse
from holdfast.domain.record import evolve
from holdfast.domain.terms import entries
from holdfast.errors import InvalidRequest
from holdfast.service.operations.events import EventLog
from holdfast.wire.render_events import event_view
from tests.unit.conftest import exits, job_named
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.domain.events.registry import EventType
    from tests.unit.conftest import Lab

BY = Caller(Principal("me", roles=(Role.ADMIN,)), 0.0)

NOW = 50.0
QUEUED = Job("j1", "train", "default", 0, 10.0, "{}", Resources(1000, 1 << 30), attempt=1, updated_at=NOW)
RUNNING = evolve(QUEUED, state=JobState.RUNNING)
HELD = evolve(QUEUED, state=JobState.HELD, reason="look")
BACKOFF = evolve(QUEUED, state=JobState.BACKOFF, retry_at=60.0)
FAILURE = Failure(
    Cause.OOM_KILLED,
    frozenset({"OOMKilled"}),
    (ContainerResult(0, "side"), ContainerResult(137, signal=9)),
    category="memory",
    node="n1",
    executor="local",
    message="too much",
)


def ended(action: Action, code: DecisionCode, **more: object) -> Attempt:
    """Make an attempt that failed and was judged."""
    decision = Decision(action, code, "because", "infra", "oom", 0, 3, limits=(LimitUse("infra/oom", 1, 2),))
    decision = evolve(decision, **more)  # type: ignore[arg-type] # fields by name
    return Attempt(
        "j1", 1, AttemptStatus.ERROR, NOW, ending=Ending.FAILED, failure=FAILURE, decision=decision, retry_at=60.0
    )


RETRIED = ended(Action.RETRY, DecisionCode.RETRY, counter="infra/oom", delay_s=10.0)
GIVEN_UP = ended(Action.FAIL, DecisionCode.POLICY_LIMIT)
HELD_BY_RULE = ended(Action.HOLD, DecisionCode.HOLD)
TRANSITIONS: list[tuple[Job, Job, Attempt | None, Event | None]] = [
    (QUEUED, evolve(QUEUED, reason="needs 8 cpu"), None, JobWaiting("needs 8 cpu")),
    (QUEUED, evolve(HELD, reason="held by a user"), None, JobHeld(1, "held by a user")),
    (HELD, evolve(HELD, reason="held anew"), None, JobHeld(1, "held anew")),
    (BACKOFF, HELD, None, JobHeld(1, "look")),
    (HELD, QUEUED, None, JobReleased(1)),
    (BACKOFF, QUEUED, None, JobQueued(1)),
    (RUNNING, evolve(QUEUED, attempt=0, reason="executor lost"), None, JobQueued(0, "executor lost")),
    (RUNNING, evolve(RUNNING, cancel_requested=True, reason="stop"), None, JobCancelRequested(1, "stop")),
    (RUNNING, RUNNING, None, None),
    (RUNNING, evolve(QUEUED, state=JobState.SUCCEEDED), None, JobSucceeded(1)),
    (QUEUED, evolve(QUEUED, state=JobState.CANCELLED, reason="stop"), None, JobCancelled(1, "stop")),
    (
        RUNNING,
        evolve(QUEUED, state=JobState.CANCELLED, reason="stop"),
        evolve(GIVEN_UP, decision=None),
        JobCancelled(1, "stop"),
    ),
    (QUEUED, evolve(QUEUED, state=JobState.FAILED, reason="too late"), None, JobFailed(1, "too late")),
    (
        RUNNING,
        evolve(QUEUED, state=JobState.FAILED, reason="OOMKilled; because"),
        GIVEN_UP,
        JobFailed(
            1, "OOMKilled; because", "oom_killed", "memory", "", 137, 9, "fail_policy_limit", "infra", "oom", final=True
        ),
    ),
    (RUNNING, HELD, HELD_BY_RULE, JobHeld(1, "look", "infra", "oom")),
    (
        RUNNING,
        evolve(
            BACKOFF,
            reason="OOMKilled; because",
            request=Resources(1000, 2 << 30),
            avoid_node="n1",
            avoid_devices=("g@n1",),
            avoid_nodes=("n0", "n1"),
            tried=("n0", "n1"),
        ),
        RETRIED,
        JobRetryScheduled(
            *(1, "OOMKilled; because", "infra", "oom", 10.0, 60.0, "infra/oom", 2 << 30, "n1", ("g@n1",)),
            avoid_nodes=("n0", "n1"),
            tried=("n0", "n1"),
        ),
    ),
    (
        evolve(RUNNING, tried=("n0",)),
        evolve(HELD, tried=("n0", "n1")),
        HELD_BY_RULE,
        JobHeld(1, "look", "infra", "oom", ("n1",)),
    ),
    (evolve(RUNNING, tried=("n0",)), evolve(QUEUED, attempt=2, tried=("n0", "n1")), None, JobQueued(2, "", ("n1",))),
    (
        RUNNING,
        evolve(QUEUED, reason="again"),
        ended(Action.IGNORE, DecisionCode.IGNORE),
        JobRetryScheduled(1, "again", "infra", "oom"),
    ),
    (
        QUEUED,
        evolve(QUEUED, attempt=2, reason="no place"),
        RETRIED,
        JobRetryScheduled(2, "no place", "infra", "oom", 10.0, None, "infra/oom"),
    ),
]


@pytest.mark.parametrize(("before", "after", "attempt", "event"), TRANSITIONS)
def test_a_change_of_a_job_is_one_event(before: Job, after: Job, attempt: Attempt | None, event: Event | None) -> None:
    assert event_mapping.event_of(before, after, attempt) == event


def test_a_submission_tells_what_was_asked_for() -> None:
    job = evolve(QUEUED, priority=7, gang=4, request=Resources(500, 1, 2))
    assert event_mapping.submitted_event(job) == EventRecord(
        "j1", 10.0, JobSubmitted("train", "default", 7, 4, 500, 1, 2)
    )


def test_a_start_tells_where_the_ranks_are_and_joins_neighbours() -> None:
    nodes = ["a", "a", "a", "b", "a"]
    runs = [Run(f"j1-2-{rank}-3", "j1", 2, rank, executor="x", node=node) for rank, node in enumerate(nodes)]
    started = event_mapping.started_event(RUNNING, Attempt("j1", 2, dispatch=3), runs)
    assert started.event == JobStarted(2, 3, (("x", "a", 3), ("x", "b", 1), ("x", "a", 1)))


def test_an_end_tells_the_failure_and_then_what_was_decided() -> None:
    over, decided = event_mapping.attempt_ended_events(RETRIED)
    assert over == EventRecord(
        "j1",
        NOW,
        AttemptEnded(
            1,
            "Failed",
            "ERROR",
            cause="oom_killed",
            category="memory",
            conditions=("OOMKilled",),
            exit_code=137,
            signal=9,
            rank=0,
            node="n1",
            executor="local",
            message="too much",
            container="main",
        ),
    )
    assert decided.event == FailureDecided(
        1, "Retry", "retry", "because", "infra", "oom", 3, 10.0, 60.0, (("infra/oom", 1, 2),)
    )


def test_an_end_without_failure_decides_nothing() -> None:
    [over] = event_mapping.attempt_ended_events(
        Attempt("j1", 1, AttemptStatus.TERMINATED, NOW, ending=Ending.SUCCEEDED)
    )
    assert over.event == AttemptEnded(1, "Succeeded", "TERMINATED", exit_code=0)


def leaves(kind: type[Event]) -> set[type[Event]]:
    """Return the classes below one that have none below themselves."""
    below = kind.__subclasses__()
    return set[type[Event]]().union(*map(leaves, below)) if below else {kind}


def test_every_event_is_registered_by_a_name_of_its_own() -> None:
    assert leaves(Event) == set(BY_KIND)
    assert len(BY_NAME) == len(BY_KIND)


@pytest.mark.parametrize("entry", BY_NAME.values(), ids=lambda entry: entry.name)
def test_every_event_has_a_form_on_the_wire(entry: EventType) -> None:
    kind: Callable[..., Event] = entry.kind
    job_id = "j1" if entry.name.startswith(("job", "attempt", "failure", "session")) else None
    given: dict[str, object] = {
        "name": "n",
        "attempt": 1,
        "reason": "r",
        "revision": 2,
        "kind": "job",
        "queue": "q",
        "status": "RUNNING",
        "retry_at": 2.0,
    }
    defaults = len(entry.kind.__struct_defaults__)
    needed = {name: given.get(name, "x") for name in entry.fields[: len(entry.fields) - defaults]}
    view = event_view(StoredEvent(7, job_id, 3 if job_id else None, 1.5, kind(**needed)))
    assert (view.id, view.time, view.type) == ("7", "1970-01-01T00:00:01.500Z", f"dev.holdfast.{entry.name}.v1")
    assert view.subject
    assert set(view.data) == {*entry.fields}


def test_times_on_the_wire_are_times_and_the_subject_is_an_address() -> None:
    retry = StoredEvent(1, "j1", 4, 0.0, JobRetryScheduled(1, "r", retry_at=2.0))
    assert event_view(retry).data["retry_at"] == "1970-01-01T00:00:02.000Z"
    assert event_view(retry).subject == "jobs/j1"
    created = ENTRY_EVENTS[entries.POLICY.subject]["created"]("infra", 1)
    assert event_view(StoredEvent(1, None, None, 0.0, created)).subject == "retry-policies/infra"
    acted = OperatorActed("ann", "cancel", "job", "j1")
    assert event_view(StoredEvent(1, None, None, 0.0, acted)).subject == "jobs/j1"
    lost = NodeLost("local", ("n0",), 1)
    assert event_view(StoredEvent(1, None, None, 0.0, lost)).subject == "executors/local"


BEGIN = EventRecord("j1", 10.0, JobSubmitted("train", "default"))


def test_nothing_happened_to_a_job_without_events() -> None:
    assert rebuild([]) is None


def test_a_job_is_rebuilt_with_everything_that_changed() -> None:
    grown = JobRetryScheduled(
        *(1, "again", "infra", "oom", 5.0, 25.0, "infra/oom", 2 << 30, "n1", ("g@n1",)), ("n1",), ("n1", "n2")
    )
    story = [
        BEGIN,
        EventRecord("j1", 12.0, JobWaiting("full")),
        EventRecord("j1", 15.0, JobStarted(1)),
        EventRecord("j1", 18.0, AttemptStatusChanged(1, "RUNNING")),
        EventRecord("j1", 20.0, grown),
    ]
    job = rebuild(story)
    assert job is not None
    assert (job.state, job.attempt, job.retry_at, job.reason) == (JobState.BACKOFF, 1, 25.0, "again")
    assert (job.counters, job.retries, job.request.memory, job.avoid_node) == ({"infra/oom": 1}, 1, 2 << 30, "n1")
    assert (job.avoid_devices, job.avoid_nodes, job.tried) == (("g@n1",), ("n1",), ("n1", "n2"))
    assert (job.started_at, job.queued_at, job.ended_at) == (15.0, 20.0, None)
    queued = EventRecord("j1", 25.0, JobQueued(1, tried=("n3",)))
    after = rebuild([*story, queued, EventRecord("j1", 26.0, JobHeld(1, "look", tried=("n4",)))])
    assert after is not None
    assert (after.state, after.reason, after.retry_at, after.queued_at) == (JobState.HELD, "look", None, 25.0)
    assert after.tried == ("n1", "n2", "n3", "n4")


@pytest.mark.parametrize(
    "events",
    [
        [EventRecord("j1", 1.0, JobStarted(1))],
        [BEGIN, BEGIN],
        [BEGIN, EventRecord("other", 1.0, JobStarted(1))],
        [BEGIN, EventRecord("j1", 1.0, JobSucceeded(1)), EventRecord("j1", 2.0, JobQueued(1))],
        [EventRecord(None, 1.0, JobSubmitted("a", "b"))],
    ],
    ids=["no submission", "two submissions", "another job", "after the end", "no job"],
)
def test_events_that_cannot_be_are_refused(events: list[EventRecord]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        rebuild(events)


def test_a_trivial_job_is_four_events(lab: Lab) -> None:
    job_id = lab.submit(job_named("trivial"), exits(0, after_s=0.0))
    lab.pass_s(2)
    assert [event.type.name for event in lab.store.events(limit=100)] == [
        "job.submitted",
        "job.started",
        "attempt.ended",
        "job.succeeded",
    ]
    assert lab.job(job_id).state is JobState.SUCCEEDED


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("job.failed", {"job.failed"}),
        ("JOB.FAILED", {"job.failed"}),
        ("dev.holdfast.job.failed.v1", {"job.failed"}),
        ("policy", {"policy.created", "policy.updated", "policy.deleted"}),
        ("policy.*", {"policy.created", "policy.updated", "policy.deleted"}),
    ],
)
def test_types_are_read_in_every_spelling(text: str, names: set[str]) -> None:
    assert EventLog(MemoryStore()).filter(BY, types=[text]).types == frozenset(names)


def test_unknown_types_are_refused_together() -> None:
    with pytest.raises(InvalidRequest) as caught:
        EventLog(MemoryStore()).filter(BY, types=["job.exploded", "job.failed", "", "job.failed.v9", "jo"])
    assert [problem.message.split("'")[1] for problem in caught.value.problems] == [
        "job.exploded",
        "",
        "job.failed.v9",
        "jo",
    ]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["retry: 1000", "", ": hello", ""], []),
        (["id: 3", "event: x", "data: {}", ""], [Message("{}", "3")]),
        (["id:3", "data:a", "data: b", ""], [Message("a\nb", "3")]),
        ([": heartbeat", "id: 9", ""], [Message("", "9")]),
        (["id: 3", "data: cut off"], []),
        (["unknown: 1", "data", "id: 4", ""], [Message("", "4")]),
    ],
)
def test_server_sent_events_are_read_as_the_standard_says(lines: list[str], found: list[Message]) -> None:
    assert list(messages(lines)) == found
