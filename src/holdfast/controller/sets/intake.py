"""Acts on what people asked of job sets, and of jobs made of pods.

Decides which sets a request applies to as they are now (one that no longer applies is dropped); what follows is
``jobsets``' and ``podjobs``'.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from holdfast.dialects.jobset.loading import load_set, with_suspend
from holdfast.domain.events import JobSetChanged
from holdfast.domain.job import JobState
from holdfast.domain.jobset.manual import restart_group, restart_job, restart_set
from holdfast.errors import Conflict, NotFound
from holdfast.ports.store import RequestKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.controller.sets.jobsets import JobSets
    from holdfast.controller.sets.memory import SetWork
    from holdfast.controller.sets.plans import Plans
    from holdfast.controller.sets.podjobs import PodJobs
    from holdfast.controller.world import World
    from holdfast.domain.job import Job
    from holdfast.domain.jobset.conditions import Turned
    from holdfast.domain.jobset.stored import JobSet
    from holdfast.ports.store import Request

SET_REQUESTS = frozenset(
    {
        RequestKind.SET_SUBMIT,
        RequestKind.SET_UPDATE,
        RequestKind.SET_SUSPEND,
        RequestKind.SET_RESUME,
        RequestKind.SET_RESTART,
        RequestKind.SET_DELETE,
    }
)


class SetIntake:
    """Requests about job sets."""

    def __init__(
        self,
        world: World,
        sets: JobSets,
        pods: PodJobs,
        plans: Plans,
        *,
        rows_by_id: Callable[[Sequence[str]], Sequence[JobSet]],
        children_of: Callable[[str], Sequence[Job]],
    ) -> None:
        """Wire it; the last two read what was appended."""
        self._world = world
        self._sets = sets
        self._pods = pods
        self._plans = plans
        self._rows_by_id = rows_by_id
        self._children_of = children_of

    def take(self, request: Request, now: float) -> None:
        """Act on a request about job sets."""
        for set_id in request.targets:
            work = self._find(set_id)
            if work is not None and not work.row.deleting:
                self._act(request, work, now)

    def _find(self, set_id: str) -> SetWork | None:
        """Return a set; one that was not known, or is over and was forgotten, is taken in with what is left of it."""
        if set_id not in self._sets.sets:
            changes = self._world.changes
            for stored in self._rows_by_id([set_id]):
                if stored.id in changes.deleted_sets:
                    continue
                # What is not committed yet is newer than what is stored.
                row = changes.job_sets.get(stored.id, stored)
                jobs = [changes.jobs.get(job.id, job) for job in self._children_of(set_id)]
                jobs = [job for job in jobs if not job.terminal]
                for job in jobs:
                    self._world.admit(job)
                self._sets.take_in(row, jobs)
                for job in jobs:
                    self._pods.admit(job)
        return self._sets.sets.get(set_id)

    def _act(self, request: Request, work: SetWork, now: float) -> None:
        match request.kind:
            case RequestKind.SET_UPDATE:
                self._change(work, request.payload, "updated", now)
            case RequestKind.SET_SUSPEND:
                self._suspend(work, now, suspend=True)
            case RequestKind.SET_RESUME:
                self._suspend(work, now, suspend=False)
            case RequestKind.SET_RESTART:
                self._restart(work, request, now)
            case RequestKind.SET_DELETE:
                self._sets.delete(work, now)
            case RequestKind.SET_SUBMIT:
                pass  # to find it was to take it in
            case RequestKind.SUBMIT | RequestKind.CANCEL | RequestKind.HOLD | RequestKind.RELEASE:
                pass  # about jobs
            case _:
                assert_never(request.kind)
        self._sets.look_again(work.row.id)

    def _suspend(self, work: SetWork, now: float, *, suspend: bool) -> None:
        if work.spec.suspend is suspend or work.row.state.terminal:
            return
        manifest = with_suspend(work.row.manifest, suspend=suspend)
        self._change(work, manifest, "suspended" if suspend else "resumed", now)

    def _change(self, work: SetWork, manifest: str, change: str, now: float) -> None:
        row = work.row
        self._plans.forget(row.id)
        work.spec = load_set(manifest, lenient=row.lenient)
        work.row = replace(row, manifest=manifest, generation=row.generation + 1, updated_at=now)
        self._world.changes.job_sets[row.id] = work.row
        self._sets.happened(now, JobSetChanged(row.id, row.name, change))
        self._pods.touched.update(dict.fromkeys(work.jobs.values()))

    def _restart(self, work: SetWork, request: Request, now: float) -> None:
        wanted = json.loads(request.payload) if request.payload else {}
        try:
            turned = self._restarted(work, wanted, now)
        except (Conflict, NotFound):
            return
        row = work.row
        work.row = replace(row, state=turned.state, updated_at=now)
        self._world.changes.job_sets[row.id] = work.row
        for event in turned.events:
            self._sets.log(row, event, now)
        detail = "/".join(str(part) for part in (wanted.get("group"), wanted.get("index")) if part is not None)
        self._sets.happened(now, JobSetChanged(row.id, row.name, "restarted", detail))

    @staticmethod
    def _restarted(work: SetWork, wanted: dict[str, object], now: float) -> Turned:
        group, index = wanted.get("group"), wanted.get("index")
        if not isinstance(group, str):
            return restart_set(work.spec, work.row.state, now)
        if not isinstance(index, int):
            return restart_group(work.spec, work.row.state, group)
        return restart_job(work.spec, work.row.state, group, index)

    def about_job(self, request: Request, job: Job, now: float) -> None:
        """Act on a request about a job made of pods; one of a set is its set's to stop and start."""
        if job.child is not None or job.id not in self._pods.jobs:
            return
        match request.kind:
            case RequestKind.CANCEL | RequestKind.HOLD if job.cancel_requested:
                pass
            case RequestKind.CANCEL:
                reason = request.reason or f"cancelled{f' by {request.actor}' if request.actor else ''}"
                running = job.state is JobState.RUNNING
                self._world.put_job(replace(job, cancel_requested=running, reason=reason, updated_at=now))
                self._pods.delete(job.id, now)
            case RequestKind.HOLD:
                self._pods.suspend(job.id, suspended=True)
            case RequestKind.RELEASE:
                self._pods.suspend(job.id, suspended=False)
            case RequestKind.SUBMIT:
                pass  # it is there
            case (
                RequestKind.SET_SUBMIT
                | RequestKind.SET_UPDATE
                | RequestKind.SET_SUSPEND
                | RequestKind.SET_RESUME
                | RequestKind.SET_RESTART
                | RequestKind.SET_DELETE
            ):
                pass  # about job sets
            case _:
                assert_never(request.kind)
