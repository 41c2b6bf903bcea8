"""Whatever happens to jobs, their events say it: the state is a fold of them, at every moment, after every crash."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from holdfast.domain.events.rebuild import rebuild
from holdfast.domain.events.registry import StoredEvent
from holdfast.domain.failure import EndedBy, FailureCondition
from holdfast.domain.job import Resources
from holdfast.domain.policy.model import (
    Action,
    Backoff,
    ExitCodeOperator,
    ExitCodes,
    MemoryGrowth,
    Mutation,
    RetryPolicy,
    Rule,
)
from holdfast.domain.record import evolve
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import Unavailable
from holdfast.ports.events import EventFilter
from holdfast.ports.requests import RequestKind
from tests.unit.conftest import Lab, ends_with, exits
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from holdfast.domain.events.registry import StoredEvent
    from holdfast.ports.store import Changes

ENDINGS = {
    "succeeds": exits(0),
    "fails": exits(1),
    "has a bug": exits(2),
    "asks for a person": exits(3),
    "is killed": exits(137, signal=9),
    "needs more memory": ends_with(FailureCondition.OOM_KILLED, EndedBy.MEMORY),
    "is preempted": ends_with(FailureCondition.PREEMPTED, EndedBy.PREEMPTION),
    "cannot be launched": ends_with(FailureCondition.LAUNCH_FAILED, EndedBy.ITSELF, started=False),
    "takes long": exits(0, after_s=40.0),
}
RULES = (
    Rule(Action.FAIL, "bug", exit_codes=ExitCodes(ExitCodeOperator.IN, frozenset({2}))),
    Rule(Action.HOLD, "person", exit_codes=ExitCodes(ExitCodeOperator.IN, frozenset({3}))),
    Rule(
        Action.RETRY,
        "oom",
        conditions=frozenset({"OOMKilled"}),
        mutate=Mutation(MemoryGrowth(factor=2.0)),
        backoff=Backoff(initial_s=0.0),
    ),
    Rule(Action.IGNORE, "preempted", conditions=frozenset({"Preempted"})),
)
policies = st.builds(
    RetryPolicy,
    st.just("inline"),
    rules=st.just(RULES),
    retry_limit=st.none() | st.integers(0, 3),
    default_action=st.sampled_from([Action.RETRY, Action.FAIL, Action.HOLD]),
    backoff=st.builds(Backoff, initial_s=st.sampled_from([0.0, 1.0, 10.0])),
)
specs = st.builds(
    JobSpec,
    name=st.just("a-job"),
    command=st.just(("true",)),
    resources=st.sampled_from([Resources(1000, 1 << 30), Resources(3000, 3 << 30), Resources(9000)]),
    gang=st.sampled_from([1, 1, 2]),
    scheduling_timeout_s=st.sampled_from([None, None, 20.0]),
    total_deadline_s=st.sampled_from([None, None, None, 60.0]),
    inline_policies=st.tuples(policies),
)


class RefusingStore(MemoryStore):
    """A store whose disk is full when told so."""

    full = False

    def commit(self, changes: Changes) -> None:
        if self.full and changes:
            raise Unavailable
        super().commit(changes)


class EventsTellEverything(RuleBasedStateMachine):
    """A whole Holdfast in virtual time, and people who ask it for things at any moment."""

    jobs = Bundle("jobs")

    def __init__(self) -> None:
        super().__init__()
        self.lab = Lab()
        self.store = self.lab.store = RefusingStore()
        self.lab.restart_controller()
        self.seen: list[StoredEvent] = []

    @rule(target=jobs, spec=specs, endings=st.lists(st.sampled_from(sorted(ENDINGS)), min_size=1, max_size=5))
    def submit(self, spec: JobSpec, endings: list[str]) -> str:
        named = evolve(spec, name=f"job-{len(self.lab.plans)}")
        return self.lab.submit(named, lambda order: ENDINGS[endings[min(order.attempt, len(endings)) - 1]])

    @rule(job=jobs, kind=st.sampled_from([RequestKind.CANCEL, RequestKind.HOLD, RequestKind.RELEASE]))
    def ask(self, job: str, kind: RequestKind) -> None:
        self.lab.ask(kind, job, "as you like it")

    @rule(seconds=st.sampled_from([0.0, 0.5, 3.0, 15.0, 70.0]))
    def time_passes(self, seconds: float) -> None:
        self.lab.pass_s(seconds, every_s=max(0.5, seconds / 20))

    @rule()
    def the_controller_looks(self) -> None:
        self.lab.tick()

    @rule()
    def the_controller_dies(self) -> None:
        self.lab.restart_controller()

    @rule(full=st.sampled_from([True, False, False, False]))
    def the_disk_fills_or_has_room(self, full: bool) -> None:  # noqa: FBT001 - drawn
        self.store.full = full

    @rule(broken=st.sampled_from([True, False, False]))
    def the_line_breaks_or_heals(self, broken: bool) -> None:  # noqa: FBT001 - drawn
        self.lab.transport.broken = broken

    @invariant()
    def every_job_is_what_its_events_make_of_it(self) -> None:
        for job in self.store.jobs_by_id([f"job-{n:03}-job-{n - 1}" for n in range(1, len(self.lab.plans) + 1)]):
            events = self.store.events(limit=10_000, where=EventFilter(job_id=job.id))
            rebuilt = rebuild(events)
            assert rebuilt is not None
            assert rebuilt == evolve(job, spec="", seq=0, updated_at=rebuilt.updated_at)
            assert [event.job_seq for event in events] == list(range(1, len(events) + 1))
            ends = [
                event.job_seq for event in events if event.type.name in {"job.succeeded", "job.failed", "job.cancelled"}
            ]
            assert ends == ([len(events)] if job.terminal else [])

    @invariant()
    def what_was_written_stays(self) -> None:
        events = list(self.store.events(limit=100_000))
        assert events[: len(self.seen)] == self.seen
        self.seen = events

    @invariant()
    def every_attempt_ends_once_and_every_failure_is_judged_once(self) -> None:
        told = [
            (event.job_id, event.type.name, event.event.attempt)  # type: ignore[attr-defined] # both have it
            for event in self.seen
            if event.type.name in {"attempt.ended", "failure.decided"}
        ]
        assert len(told) == len(set(told))


EventsTellEverything.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
test_events_tell_everything = EventsTellEverything.TestCase
