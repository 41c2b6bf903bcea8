"""Job sets: what the controller does for them beyond the rules of all owners."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from holdfast.compiled.codec import set_spec_of, suspending
from holdfast.controller.workloads.owners import OwnerRules, Owners
from holdfast.domain.events.registry import EventRecord
from holdfast.domain.events.workloads import JobSetChanged, JobSetDeleted, JobSetEnded
from holdfast.domain.record import evolve
from holdfast.domain.terms.workload_kinds import KUBEJOB
from holdfast.domain.workloads.base import Result
from holdfast.domain.workloads.dependencies import OnUnmet, check
from holdfast.domain.workloads.jobset.manual import restart_group, restart_job, restart_set
from holdfast.domain.workloads.jobset.model import JobSetSpec, RestartStrategy
from holdfast.domain.workloads.jobset.reconcile import InPlace, ReconcileInput, converge, expected_pods
from holdfast.domain.workloads.jobset.state import NEVER_SATISFIED, JobSet, SetEvent, Transition, failed
from holdfast.domain.workloads.kubejob.pods import in_place_attempts
from holdfast.errors import Conflict, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.controller.policy_catalog import PolicyCatalog
    from holdfast.controller.state import ControllerState
    from holdfast.controller.workloads.kubejobs import KubeJobs
    from holdfast.controller.workloads.memory import JobWork, SetWork
    from holdfast.controller.workloads.pods import Pods
    from holdfast.domain.events.registry import Event
    from holdfast.domain.job import Job
    from holdfast.domain.notifications.notification import Notification
    from holdfast.domain.workloads.jobset.reconcile import SetResult
    from holdfast.domain.workloads.jobset.state import JobSetState
    from holdfast.ports.store import ControllerStore

RULES = OwnerRules(
    JobSet, set_spec_of, lambda spec, row, children, now: converge(spec, row.state, children, ReconcileInput(now))
)


class JobSets(Owners[JobSet, JobSetSpec]):
    """All job sets."""

    begins_anew = True

    def __init__(
        self,
        state: ControllerState,
        jobs: KubeJobs,
        pods: Pods,
        store: ControllerStore,
        *,
        works: dict[str, SetWork],
        catalog: PolicyCatalog,
    ) -> None:
        super().__init__(RULES, state, store)
        self._jobs = jobs
        self._pods = pods
        self.works = works
        self._catalog = catalog

    def take_in(self, row: JobSet, jobs: Iterable[Job]) -> None:
        """Add a set."""
        super().take_in(row, jobs)
        self._prepare(self.works[row.id])

    def update(self, work: SetWork, payload: str, change: str, now: float) -> None:
        """Act on a request to change a set; its dependencies stay."""
        super().update(work, payload, change, now)
        if work.row.state.unmet and not work.spec.suspend:
            self.put(work, evolve(work.row, state=evolve(work.row.state, unmet="")))
        self._prepare(work)

    def _prepare(self, work: SetWork) -> None:
        """Prepare what follows from a set's specification."""
        work.first, work.reports = work.spec.offsets, {} if _restarts_in_place(work.spec) else None
        self._wait(work)

    def _wait(self, work: SetWork) -> None:
        """Have a set looked at when the state of something it waits for changes."""
        state = work.row.state
        if not state.terminal and work.spec.waits_for(state.met):
            self._state.waits.watch(work.row.id, self.name, work.spec.after, state.met)

    def decide(self, work: SetWork, now: float) -> SetResult:
        """Look at a set once all its dependencies are satisfied."""
        state, after = work.row.state, work.spec.after
        if state.terminal or len(state.met) == len(after):
            return self._converge(work, state, now)
        looked = self._look_waiting(work, now)
        if not looked.state.terminal and len(looked.state.met) < len(after):
            return Result(state=looked.state)
        result = self._converge(work, looked.state, now)
        return evolve(result, events=(*looked.events, *result.events))

    def _look_waiting(self, work: SetWork, now: float) -> Transition:
        """Look at a set's dependencies; if one can never be satisfied, the set fails, suspends or starts."""
        state, after, waits = work.row.state, work.spec.after, self._state.waits
        waits.look_up(self._store, self._state.changes)
        outlook = check(after, state.met, waits.standings(after, state.met))
        if outlook.unmet is OnUnmet.CANCEL:
            waits.leave(work.row.id, after)
            return failed(state, NEVER_SATISFIED, outlook.reason, now)
        state = state if outlook.met == state.met else evolve(state, met=outlook.met)
        if outlook.ready:
            waits.leave(work.row.id, after)
        if outlook.unmet is not OnUnmet.HOLD:
            return Transition(state)
        if (suspended := suspending(work.row, suspend=True)) is not None:
            self.update(work, suspended, "suspended", now)
        return Transition(evolve(state, unmet=outlook.reason), (SetEvent("Warning", NEVER_SATISFIED, outlook.reason),))

    def _converge(self, work: SetWork, before: JobSetState, now: float) -> SetResult:
        """Apply the rules; pods learn when the barrier of a restart in place has moved."""
        in_place = None
        if work.reports is not None:
            # Absent pods do not hold up the barrier: they have succeeded, or wait for resources that pods at the
            # barrier may hold, and begin where the others are by then.
            jobs = (self._jobs.jobs.get(job_id) for job_id in work.jobs.values())
            attempts = [moved for job in jobs if job is not None for moved in in_place_attempts(job.pods)]
            absent = expected_pods(work.spec) - len(attempts)
            in_place = InPlace((*attempts, *[max(attempts, default=0)] * absent))
        allowed = self._catalog.catalogue.settings.global_max_retries != 0
        look = ReconcileInput(now, restarts_allowed=allowed, in_place=in_place)
        result = converge(work.spec, before, list(work.children.values()), look)
        after = result.state
        if (before.in_place_previous, before.in_place_current) != (after.in_place_previous, after.in_place_current):
            for job_id in work.jobs.values():
                self._state.queue.add(KUBEJOB, job_id)
        return result

    def hear(self, owner: SetWork, job: Job, work: JobWork) -> None:
        """Have a set looked at when its pods report another restart in place."""
        in_place = in_place_attempts(work.pods)
        if owner.reports is not None and owner.reports.get(job.name) != in_place:
            owner.reports[job.name] = in_place
            self._state.queue.add(self.name, owner.row.id)

    def forget(self, work: SetWork) -> None:
        """Forget the plans of its pods, and its dependencies."""
        self._state.waits.leave(work.row.id, work.spec.after)
        self._pods.forget_plans(work.row.id)

    def restart(self, work: SetWork, payload: str, now: float) -> None:
        """Restart a set, a replicated job or a job, unless it has ended or does not exist."""
        selection = json.loads(payload) if payload else {}
        group, index, row = selection.get("group"), selection.get("index"), work.row
        try:
            if not isinstance(group, str):
                turned = restart_set(work.spec, row.state, now)
            elif not isinstance(index, int):
                turned = restart_group(work.spec, row.state, group)
            else:
                turned = restart_job(work.spec, row.state, group, index)
        except (Conflict, NotFound):
            return
        self.put(work, evolve(row, state=turned.state, updated_at=now))
        self.log(row, turned.events, now)
        detail = "/".join(str(part) for part in (group, index) if part is not None)
        self._emit(row, JobSetChanged(row.id, row.name, "restarted", detail), now)

    def log(self, row: JobSet, what: Sequence[Any], now: float) -> None:
        """Append decisions and events to the set's log and to the events."""
        self._state.log_of_set(row, what, now)

    def tell(self, row: JobSet, what: str, now: float) -> None:
        """Emit the event of a set that has changed, has ended or is deleted."""
        if what == "deleted":
            self._emit(row, JobSetDeleted(row.id, row.name), now)
        elif what == "ended":
            condition = row.state.condition(row.ended)
            reason, message = (condition.reason, condition.message) if condition is not None else ("", "")
            event = JobSetEnded(row.id, row.name, row.ended, reason, message)
            self._emit(row, event, now, self.told_of(row, now))
        else:
            self._emit(row, JobSetChanged(row.id, row.name, what), now)

    def _emit(self, row: JobSet, event: Event, now: float, events: Sequence[Notification] = ()) -> None:
        self._state.emit(EventRecord(None, now, event, row.group, row), events)


def _restarts_in_place(spec: JobSetSpec) -> bool:
    return spec.failure is not None and spec.failure.strategy is RestartStrategy.IN_PLACE
