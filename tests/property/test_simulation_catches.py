"""The world is worth something: the code, broken in named ways, is caught within a few seeds each."""

# ruff: noqa: ANN401, SLF001 - what breaks private parts must reach them, and passes on whatever they are given

from __future__ import annotations

from typing import Any

import pytest

from holdfast.controller.controller import Controller
from holdfast.controller.observations import Observations
from holdfast.controller.reconcile import Requests
from holdfast.controller.state import ControllerState
from holdfast.controller.workloads import gangs
from holdfast.domain.event_mapping import Outbox
from holdfast.domain.job import Job, Run
from holdfast.domain.lifecycle import RUN_TERMINAL, RunStatus
from holdfast.domain.placement.fit import Capacity
from holdfast.domain.placement.scheduling import Round
from holdfast.domain.policy import decide
from holdfast.domain.record import evolve
from holdfast.domain.workloads import judge
from holdfast.domain.workloads.gang import conclude as concluding
from holdfast.domain.workloads.gang import reconcile as gang
from holdfast.domain.workloads.gang.reconcile import Intervention
from holdfast.executor.executor import Executor
from holdfast.ports.engine import RunPhase
from holdfast.ports.requests import RequestKind
from tests.property.breaks import Break, assert_noticed

BESIDE = {"never-twice", "no-node-overloaded", "generations-apart", "domains-exclusive", "nothing-outlives"}
"""What can come of it when the controller does not know what still runs."""


def limits_are_ignored(patch: pytest.MonkeyPatch) -> None:
    counted = decide._counted

    def uncounted(rule: Any, failure: Any, history: Any, *rest: Any) -> Any:
        return counted(rule, failure, evolve(history, counters=()), *rest)

    patch.setattr(decide, "_counted", uncounted)


def the_global_cap_is_ignored(patch: pytest.MonkeyPatch) -> None:
    capped = decide.decide

    def uncapped(policies: Any, failure: Any, history: Any, settings: Any, **rest: Any) -> Any:
        return capped(policies, failure, history, evolve(settings, global_max_retries=None), **rest)

    patch.setattr(judge, "decide", uncapped)


def counters_are_not_stored(patch: pytest.MonkeyPatch) -> None:
    fail = concluding.fail

    def forgetful(spec: Any, job: Job, *rest: Any) -> Any:
        result = fail(spec, job, *rest)
        return evolve(result, state=evolve(result.state, counters=job.counters))

    patch.setattr(concluding, "fail", forgetful)


def a_refused_commit_is_published(patch: pytest.MonkeyPatch) -> None:
    commit = Controller._commit
    patch.setattr(Controller, "_commit", lambda self: commit(self) and None)


def an_ended_run_can_be_reported_again(patch: pytest.MonkeyPatch) -> None:
    def find(self: Observations, uid: str) -> Any:
        job_id = self._state.owner.get(uid)
        active = self._state.active.get(job_id) if job_id else None
        run = active.runs.get(uid) if active else None
        if run is not None and run.status in RUN_TERMINAL:  # the table of runs knows no move from there
            run = evolve(run, status=RunStatus.RUNNING)
        return run and (active, run)

    patch.setattr(Observations, "_find", find)


def capacity_is_not_given_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Capacity, "release", lambda self, uid: uid in self.charges)


def a_retry_does_not_wait(patch: pytest.MonkeyPatch) -> None:
    after = concluding._after

    def at_once(*about: Any, now: float, due: float | None, **more: Any) -> Any:
        return after(*about, now=now, due=None if due is None else min(now, due), **more)

    patch.setattr(concluding, "_after", at_once)


def a_uid_is_used_for_every_attempt(patch: pytest.MonkeyPatch) -> None:
    def reused(**fields: Any) -> Run:
        return Run(**{**fields, "uid": f"{fields['job_id']}-1-{fields['rank']}-1"})

    patch.setattr(gang, "Run", reused)


def results_are_forgotten_before_they_are_safe(patch: pytest.MonkeyPatch) -> None:
    step = Executor.step

    def forgetful(self: Executor) -> bool:
        seen = self._engine.observe()
        reached = step(self)
        self._engine.forget([uid for uid, each in seen.items() if each.phase is RunPhase.FINISHED])
        return reached

    patch.setattr(Executor, "step", forgetful)


def a_failure_hides_a_cancellation(patch: pytest.MonkeyPatch) -> None:
    conclude = concluding.conclude

    def blind(spec: Any, job: Job, over: Any, now: float) -> Any:
        result = conclude(spec, evolve(job, cancel_requested=False), over, now)
        return evolve(result, state=evolve(result.state, cancel_requested=job.cancel_requested))

    patch.setattr(gang, "conclude", blind)


def a_gang_is_judged_rank_by_rank(patch: pytest.MonkeyPatch) -> None:
    fail = concluding.fail

    def each(spec: Any, job: Job, *rest: Any) -> Any:
        result = fail(spec, job, *rest)
        return fail(spec, result.state, *rest) if job.gang > 1 and not result.state.terminal else result

    patch.setattr(concluding, "fail", each)


def one_good_rank_is_enough(patch: pytest.MonkeyPatch) -> None:
    conclude = concluding.conclude

    def lenient(spec: Any, job: Job, over: Any, now: float) -> Any:
        good = [run for run in over.runs if run.outcome is not None and run.outcome.succeeded]
        return conclude(spec, job, over._replace(runs=good or over.runs), now)

    patch.setattr(gang, "conclude", lenient)


def an_executor_ignores_its_lease(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Executor, "_fence", lambda *_: None)


def overtaken_messages_are_believed(patch: pytest.MonkeyPatch) -> None:
    take = Observations.take

    def gullible(self: Observations, request: Any, now: float) -> bool:
        self._newest.clear()
        return take(self, request, now)

    patch.setattr(Observations, "take", gullible)


def messages_to_an_earlier_controller_are_believed(patch: pytest.MonkeyPatch) -> None:
    take = Observations.take
    patch.setattr(
        Observations, "take", lambda self, request, now: take(self, evolve(request, acked=self._controller_epoch), now)
    )


def what_a_new_controller_misses_is_started(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Observations, "missed", lambda *_: ())


def a_paused_queue_goes_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Round, "_queue_refuses", lambda *_: "")


def a_submission_gets_lost(patch: pytest.MonkeyPatch) -> None:
    take = Requests.take

    def careless(self: Requests, requests: Any, now: float) -> None:
        self._state.changes.handled.extend(each.id for each in requests if each.kind is RequestKind.SUBMIT)
        take(self, [each for each in requests if each.kind is not RequestKind.SUBMIT], now)

    patch.setattr(Requests, "take", careless)


def a_restart_forgets_what_runs(patch: pytest.MonkeyPatch) -> None:
    resume = ControllerState.resume
    patch.setattr(ControllerState, "resume", lambda self, job, attempt, _, last: resume(self, job, attempt, (), last))


def an_event_is_left_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Outbox, "job_changed", lambda *_, **__: None)


def what_has_started_is_cancelled_as_if_it_had_not(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(gangs._ASKED, RequestKind.CANCEL_UNLESS_STARTED, Intervention.CANCEL)


BREAKS: dict[str, Break] = {
    "the decision ignores the rule's limit": (limits_are_ignored, {"limits-hold", "explained"}, 2),
    "the decision ignores the global cap": (the_global_cap_is_ignored, {"limits-hold"}, 6),
    "counters are not stored": (counters_are_not_stored, {"judged-once"}, 1),
    "what is published is not committed": (a_refused_commit_is_published, {"stored-first", "stored-last"}, 5),
    "an ended run is not absorbing": (an_ended_run_can_be_reported_again, {"terminal-absorbs"}, 1),
    "capacity is not given back": (capacity_is_not_given_back, {"capacity-adds-up"}, 1),
    "a retry does not wait for its back-off": (a_retry_does_not_wait, {"back-off-waits"}, 2),
    "a run's uid is used again": (
        a_uid_is_used_for_every_attempt,
        {"started-once", "terminal-absorbs", "true-success"},
        1,
    ),
    "results are forgotten before they are acknowledged": (
        results_are_forgotten_before_they_are_safe,
        {"stored-last"},
        1,
    ),
    "a failure hides a cancellation": (a_failure_hides_a_cancellation, {"cancelled-stays"}, 12),
    "a gang is judged rank by rank": (a_gang_is_judged_rank_by_rank, {"judged-once"}, 1),
    "one good rank makes a gang succeed": (one_good_rank_is_enough, {"true-success"}, 1),
    "an executor ignores its lease": (
        an_executor_ignores_its_lease,
        BESIDE,
        400_619,  # a connection is cut for longer than its lease under a long program, and another place is free
    ),
    "overtaken messages are believed": (overtaken_messages_are_believed, BESIDE, 17),
    "messages to an earlier controller are believed": (
        messages_to_an_earlier_controller_are_believed,
        # what the earlier one placed last was decided upon an end that was never stored
        BESIDE | {"waits-for-it"},
        500_854,  # the memory is dropped between a late message and all newer ones
    ),
    "what a new controller misses is started": (what_a_new_controller_misses_is_started, {"started-once"}, 7),
    "a paused queue goes on": (a_paused_queue_goes_on, {"queue-limits"}, 5),
    "a submission gets lost": (a_submission_gets_lost, {"no-job-lost"}, 2),
    "a restart forgets what runs": (
        a_restart_forgets_what_runs,
        {*BESIDE, "capacity-adds-up", "stored-last", "all-ends"},
        41,  # an earlier one sees it only when after days it has not come to an end, which takes long
    ),
    "what has started is cancelled as if it had not": (
        what_has_started_is_cancelled_as_if_it_had_not,
        {"started-goes-on"},
        13,
    ),
    "an event is left out": (an_event_is_left_out, {"replay"}, 1),
}


@pytest.mark.parametrize("name", BREAKS)
def test_the_world_catches_it_when(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_noticed(BREAKS[name], monkeypatch)
