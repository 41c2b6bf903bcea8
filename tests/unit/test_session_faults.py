"""Chains of sessions when something happens to them: crashes, clocks, drains and holds."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Caller
from holdfast.domain.job import JobState, Resources
from holdfast.domain.lifecycle import EntityKind
from holdfast.domain.notifier import Medium, Notifier, Notify, Occasion
from holdfast.domain.sessions.model import RetryState, SessionResult, SessionStatus, session_id
from holdfast.domain.sessions.policy import SessionRetryPolicy
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.engine import NodeInfo
from holdfast.ports.requests import RequestKind
from holdfast.service.operations.nodes import Nodes
from tests.unit.conftest import Lab, exits
from tests.unit.test_session_chains import AT_ONCE, SOON, chain, enqueue, statuses, told
from tests.unit.test_session_retries_told import outbox
from tests.unit.test_session_retries_told import told as events_told

if TYPE_CHECKING:
    from holdfast.ports.store import Changes

S, R = SessionStatus, RetryState
BY = Caller(Principal("me", roles=(Role.ADMIN,)), 0.0)
ENDLESS = SimulatedRun(duration_s=None)


class Killed(BaseException):
    """The process has been killed."""


class Killer:
    """Kills the process of a lab before or after one of its commits."""

    def __init__(self, lab: Lab, at: int, *, after: bool) -> None:
        self.commits = self.kills = 0
        self._at, self._after = at, after
        self._lab, self._commit = lab, lab.store.commit
        lab.store.commit = self.commit  # type: ignore[method-assign] # the process is killed there

    def commit(self, changes: Changes) -> None:
        self.commits += 1
        if self.commits == self._at and not self._after:
            raise Killed
        self._commit(changes)
        if self.commits == self._at and self._after:
            raise Killed

    def pass_s(self, seconds: int) -> None:
        """Let time pass, and start the process again if it is killed."""
        for _ in range(seconds):
            try:
                self._lab.pass_s(1)
            except Killed:
                self.kills += 1
                self._lab.restart_controller()
                self._lab.restart_executor()


def chained(lab: Lab) -> str:
    lab.store.put_entry(Notifier("ops", Medium.WEBHOOK, url="https://example.org"))
    asked = (Notify("ops", (Occasion.RETRY, Occasion.EXHAUSTED)),)
    return enqueue(lab, "chain", SessionRetryPolicy(max_retries=2, retry_delay=3.0), exits(1), notify=asked)


@pytest.mark.parametrize("after", [False, True])
def test_a_server_killed_at_any_commit_starts_each_session_of_a_chain_once(make_lab: type[Lab], *, after: bool) -> None:
    lab = make_lab()
    job, killer = chained(lab), Killer(lab, 0, after=after)
    killer.pass_s(40)
    assert lab.job(job).state is JobState.FAILED
    for at in range(1, killer.commits + 1):
        lab = make_lab()
        job = chained(lab)
        killed = Killer(lab, at, after=after)
        killed.pass_s(60)
        assert killed.kills == 1
        sessions = chain(lab, job)
        assert [session.id for session in sessions] == [session_id(job, count) for count in range(3)], at
        assert [session.retry_state for session in sessions] == [R.RETRIED, R.RETRIED, R.EXHAUSTED], at
        assert [order.attempt for order in lab.orders] == [1, 2, 3], at
        assert [type(event).__name__ for event in events_told(lab, job)] == [
            "SessionRetryScheduled",
            "SessionRetryScheduled",
            "SessionRetryExhausted",
        ], at
        assert len(lab.store.audit(limit=9)) == 2, at
        assert len(outbox(lab)) == 3, at
        for parent, child in pairwise(sessions):
            assert parent.terminated_at is not None
            assert child.created_at - parent.terminated_at >= 3.0, at


@pytest.mark.parametrize("back_s", [4.0, 3600.0])
def test_a_clock_that_is_set_back_delays_a_retry_by_its_whole_delay_at_most(lab: Lab, back_s: float) -> None:
    job = enqueue(lab, "chain", SOON, exits(1))
    lab.pass_s(4)
    lab.clock.set_by -= back_s
    lab.restart_controller()
    lab.restart_executor()
    lab.pass_s(20)
    assert [session.retry_count for session in chain(lab, job)][:2] == [0, 1]
    lab.pass_s(60)
    assert [session.retry_count for session in chain(lab, job)] == [0, 1, 2]
    assert [order.attempt for order in lab.orders] == [1, 2, 3]


def test_a_drained_session_goes_on_elsewhere_as_the_same_one(lab: Lab) -> None:
    """C20: a drain is no failure of the session."""
    lab.use(*(NodeInfo(name, Resources(4000, 8 << 30, 0)) for name in ("n0", "n1")))
    job = enqueue(lab, "moved", AT_ONCE, lambda order: ENDLESS if order.attempt == 1 else exits(0))
    lab.pass_s(3)
    [first] = {run.node for run in lab.runs(job)}
    Nodes(lab.store, lab.clock).cordon(BY, first, "a new kernel", drain=True)
    lab.pass_s(90)
    [session] = chain(lab, job)
    assert told(session) == (S.TERMINATED, SessionResult.SUCCESS, None, R.NONE)
    assert [run.node == first for run in lab.runs(job)] == [True, False]
    assert "PENDING" in statuses(lab, EntityKind.SESSION, f"{job}/0")[1:]
    assert events_told(lab, job) == []


def test_a_session_that_is_held_and_released_is_the_same_one(lab: Lab) -> None:
    job = enqueue(lab, "held", AT_ONCE, lambda order: ENDLESS if order.attempt == 1 else exits(0))
    lab.pass_s(3)
    lab.ask(RequestKind.HOLD, job)
    lab.pass_s(10)
    [session] = chain(lab, job)
    assert (lab.job(job).state, session.status) == (JobState.HELD, S.PENDING)
    lab.ask(RequestKind.RELEASE, job)
    lab.pass_s(10)
    [session] = chain(lab, job)
    assert told(session) == (S.TERMINATED, SessionResult.SUCCESS, None, R.NONE)


def test_a_retry_that_is_held_begins_once_it_is_released(lab: Lab) -> None:
    job = enqueue(lab, "held", SOON, lambda order: exits(1 if order.attempt == 1 else 0))
    lab.pass_s(4)
    lab.ask(RequestKind.HOLD, job)
    lab.pass_s(60)
    [parent] = chain(lab, job)
    assert (lab.job(job).state, parent.retry_state) == (JobState.HELD, R.PENDING)
    lab.ask(RequestKind.RELEASE, job)
    lab.pass_s(5)
    assert [told(session)[1:] for session in chain(lab, job)] == [
        (SessionResult.FAILURE, "kernel_nonzero_exit", R.RETRIED),
        (SessionResult.SUCCESS, None, R.NONE),
    ]
