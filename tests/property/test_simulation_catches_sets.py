"""The world is worth something for job sets, too: the code, broken in named ways, is caught within a few seeds each."""

# ruff: noqa: ANN401, ARG005, SLF001 - what breaks private parts must reach them, and takes whatever they take

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.controller.state import ControllerState
from holdfast.controller.workloads import jobsets
from holdfast.controller.workloads.domains import Domains
from holdfast.controller.workloads.jobsets import JobSets
from holdfast.controller.workloads.kubejobs import KubeJobs
from holdfast.domain.lifecycle import RUN_TERMINAL, RunStatus
from holdfast.domain.record import evolve
from holdfast.domain.workloads.dependencies import OnUnmet, check
from holdfast.domain.workloads.jobset import children, reconcile
from holdfast.domain.workloads.jobset.failure import Budget, LimitReached
from holdfast.domain.workloads.jobset.state import Transition
from holdfast.domain.workloads.kubejob.reconcile_pods import PodReconciler
from tests.property.breaks import Break, assert_noticed
from tools.simulate.world import SETS_EVERY

if TYPE_CHECKING:
    from holdfast.domain.job import Run
    from holdfast.domain.workloads.jobset.children import SortedJobs


def a_job_left_failed_is_judged_again(patch: pytest.MonkeyPatch) -> None:

    def forgetful(*arguments: Any) -> Any:
        passed = reconcile.converge(*arguments)
        return evolve(passed, state=evolve(passed.state, left_failed={}))

    patch.setattr(jobsets, "converge", forgetful)


def restarts_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    grant = Budget.grant
    patch.setattr(
        Budget, "grant", lambda self, scope, rule, child, counted: grant(self, scope, rule, child, counted=False)
    )


def limits_are_ignored(patch: pytest.MonkeyPatch) -> None:
    check = Budget.check

    def generous(self: Budget, rule: Any, child: Any, *, counted: bool) -> Any:
        try:
            return check(self, rule, child, counted=counted)
        except LimitReached as reached:
            return reached.limits

    patch.setattr(Budget, "check", generous)


def a_generation_starts_before_the_last_has_gone(patch: pytest.MonkeyPatch) -> None:

    def hasty(spec: Any, state: Any, jobs: SortedJobs, allowed: Any) -> Any:
        return children.create(spec, state, evolve(jobs, previous=[]), allowed)

    patch.setattr(reconcile, "create", hasty)


def dependencies_are_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reconcile, "dependencies_met", lambda *_: True)


def a_restart_loses_what_is_remembered_of_pods(patch: pytest.MonkeyPatch) -> None:
    resume = KubeJobs._resume
    patch.setattr(KubeJobs, "_resume", lambda self, job, record: resume(self, job, record and evolve(record, pods=())))


def a_set_is_stored_a_decision_late(patch: pytest.MonkeyPatch) -> None:
    put = JobSets.put

    def late(self: JobSets, work: Any, row: Any) -> None:
        stored = work.row
        put(self, work, row)
        if row.state.restarts > stored.state.restarts:
            self._state.changes.workloads[stored.id] = stored

    patch.setattr(JobSets, "put", late)


def a_domain_is_given_twice(patch: pytest.MonkeyPatch) -> None:
    claim = Domains.claim

    def shared(self: Domains, *asked: Any) -> str:
        self._owners.clear()
        return claim(self, *asked)

    patch.setattr(Domains, "claim", shared)


def a_kept_place_is_not_given_back(patch: pytest.MonkeyPatch) -> None:
    take = ControllerState._take_places

    def grasping(self: ControllerState, active: Any, orders: Any) -> None:
        orders.give_back.clear()
        take(self, active, orders)

    patch.setattr(ControllerState, "_take_places", grasping)


def a_pod_is_replaced_before_it_has_gone(patch: pytest.MonkeyPatch) -> None:
    def impatient(self: PodReconciler) -> None:
        gone = {*RUN_TERMINAL, RunStatus.TERMINATING}
        for name in [name for name, pod in self.pods.items() if pod.run and pod.run.status in gone]:
            self.pods.pop(name)

    patch.setattr(PodReconciler, "_clear", impatient)


def a_deleted_set_does_not_wait_for_its_programs(patch: pytest.MonkeyPatch) -> None:
    look = JobSets._look

    def at_once(self: JobSets, work: Any, now: float) -> None:
        if not work.row.deleting:
            look(self, work, now)
            return
        self._leave(work)
        self._state.changes.workloads.pop(work.row.id, None)
        self._state.changes.forgotten[work.row.id] = None

    patch.setattr(JobSets, "_look", at_once)


def pods_do_not_wait_before_they_start_again(patch: pytest.MonkeyPatch) -> None:
    may_start = PodReconciler.may_start
    patch.setattr(PodReconciler, "may_start", lambda self, record: may_start(self, evolve(record, due=None)))


def a_stopped_program_is_give_up_time_once(patch: pytest.MonkeyPatch) -> None:
    given_up = PodReconciler.give_up_time

    def impatient(self: PodReconciler, run: Run) -> float | None:
        return run.status_since if run.status is RunStatus.TERMINATING else given_up(self, run)

    patch.setattr(PodReconciler, "give_up_time", impatient)


def a_set_waits_for_nothing(patch: pytest.MonkeyPatch) -> None:
    met = tuple(range(10))
    patch.setattr(JobSets, "_look_waiting", lambda self, work, now: Transition(evolve(work.row.state, met=met)))


def a_set_that_waits_is_told_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(JobSets, "_wait", lambda self, work: None)
    patch.setattr(JobSets, "_look_waiting", lambda self, work, now: Transition(work.row.state))


def a_set_fails_although_it_may_still_start(patch: pytest.MonkeyPatch) -> None:
    def impatient(*known: Any) -> Any:
        found = check(*known)
        return found if found.ready else evolve(found, unmet=OnUnmet.CANCEL, reason="job a did not succeed")

    patch.setattr("holdfast.controller.workloads.jobsets.check", impatient)


BREAKS: dict[str, Break] = {
    "a job left failed is judged again": (a_job_left_failed_is_judged_again, {"sets-judge-once"}, 49),
    "restarts are not counted": (restarts_are_not_counted, {"sets-add-up"}, 4),
    "limits are ignored": (limits_are_ignored, {"sets-within-budgets"}, 4),
    "a generation starts before the last has gone": (
        a_generation_starts_before_the_last_has_gone,
        {"generations-apart"},
        4,
    ),
    "dependencies are ignored": (dependencies_are_ignored, {"starts-in-order"}, 82),
    "a restart loses what is remembered of pods": (
        a_restart_loses_what_is_remembered_of_pods,
        {"capacity-adds-up", "never-twice", "asked-for"},
        4,
    ),
    "a set is stored a decision late": (a_set_is_stored_a_decision_late, {"sets-add-up"}, 1),
    "a domain is given twice": (a_domain_is_given_twice, {"domains-exclusive"}, 1),
    "a kept place is not given back": (a_kept_place_is_not_given_back, {"capacity-adds-up"}, 1),
    "a pod is replaced before it has gone": (
        a_pod_is_replaced_before_it_has_gone,
        {"capacity-adds-up", "never-twice", "nothing-outlives", "generations-apart"},
        1,
    ),
    "a deleted set does not wait for its programs": (
        a_deleted_set_does_not_wait_for_its_programs,
        {"nothing-outlives"},
        10,
    ),
    "a set waits for nothing": (a_set_waits_for_nothing, {"waits-for-it"}, 7),
    "a set that waits is told nothing": (a_set_that_waits_is_told_nothing, {"all-ends"}, 13),
    "a set fails although it may still start": (a_set_fails_although_it_may_still_start, {"waits-for-it"}, 7),
    "pods do not wait before they start again": (pods_do_not_wait_before_they_start_again, {"back-off-waits"}, 4),
    "a stopped program is given up at once": (
        a_stopped_program_is_give_up_time_once,
        {"never-twice", "nothing-outlives", "generations-apart", "no-node-overloaded"},
        1,
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_the_world_catches_it_when(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_noticed(BREAKS[name], monkeypatch, every=SETS_EVERY)
