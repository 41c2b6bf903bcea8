"""Users' requests about job sets; one that no longer applies to the set is dropped."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from holdfast.compiled.codec import load_change, load_set_spec
from holdfast.domain.events import JobSetChanged
from holdfast.domain.workloads.base import JOBSET, KUBEJOB
from holdfast.domain.workloads.jobset.manual import restart_group, restart_job, restart_set
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.errors import Conflict, NotFound
from holdfast.ports.store import RequestKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.controller.state import ControllerState
    from holdfast.controller.workloads.kubejobs import KubeJobs
    from holdfast.controller.workloads.memory import SetWork
    from holdfast.controller.workloads.owners import Owners
    from holdfast.controller.workloads.plans import Plans
    from holdfast.domain.workloads.jobset.state import Transition
    from holdfast.ports.store import ControllerStore, Request


class SetRequests:
    """Acts on requests about job sets."""

    def __init__(
        self,
        state: ControllerState,
        owners: Owners,
        pods: KubeJobs,
        plans: Plans,
        store: ControllerStore,
        *,
        delete: Callable[[SetWork, float], None],
    ) -> None:
        """Remember what it works with; ``delete`` begins to delete a set."""
        self._state = state
        self._delete = delete
        self._pods = pods
        self._plans = plans
        self._owners = owners
        self._store = store

    def ask(self, request: Request, set_id: str, now: float) -> None:
        """Act on a request about a job set."""
        work = self._find(set_id)
        if work is not None and not work.row.deleting:
            self._act(request, work, now)

    def _find(self, set_id: str) -> SetWork | None:
        """Return a set; one not in memory, whether new or over, is taken in from the store."""
        if set_id not in self._owners.sets:
            changes = self._state.changes
            for stored in self._store.workloads_by_id(JobSet, [set_id]).values():
                if stored.id in changes.forgotten:
                    continue
                # Uncommitted changes are newer than what is stored.
                row = changes.of(JobSet).get(stored.id, stored)
                jobs = [changes.jobs.get(job.id, job) for job in self._store.children_of(set_id)]
                jobs = [job for job in jobs if not job.terminal]
                for job in jobs:
                    self._state.admit(job)
                self._owners.take_in(row, jobs)
                for job in jobs:
                    self._pods.admit(job)
        return self._owners.sets.get(set_id)

    def _act(self, request: Request, work: SetWork, now: float) -> None:
        match request.kind:
            case RequestKind.UPDATE:
                self._change(work, request.payload, "updated", now)
            case RequestKind.HOLD | RequestKind.RELEASE:
                change = "suspended" if request.kind is RequestKind.HOLD else "resumed"
                if not work.row.state.terminal:
                    self._change(work, request.payload, change, now)
            case RequestKind.RESTART:
                self._restart(work, request, now)
            case RequestKind.DELETE:
                self._delete(work, now)
            case RequestKind.SUBMIT | RequestKind.CANCEL:
                pass  # finding it has taken it in, and nobody cancels a set
            case _:
                assert_never(request.kind)
        self._state.queue.add(JOBSET, work.row.id)

    def _change(self, work: SetWork, payload: str, change: str, now: float) -> None:
        row, wanted = work.row, load_change(payload)
        self._plans.forget(row.id)
        work.spec = load_set_spec(wanted.spec)
        generation = row.generation + 1
        work.row = replace(row, manifest=wanted.manifest, spec=wanted.spec, generation=generation, updated_at=now)
        self._state.put_job_set(work.row)
        self._owners.emit(now, JobSetChanged(row.id, row.name, change))
        for job_id in work.jobs.values():
            self._state.queue.add(KUBEJOB, job_id)

    def _restart(self, work: SetWork, request: Request, now: float) -> None:
        wanted = json.loads(request.payload) if request.payload else {}
        try:
            turned = self._restarted(work, wanted, now)
        except (Conflict, NotFound):
            return
        row = work.row
        work.row = replace(row, state=turned.state, updated_at=now)
        self._state.put_job_set(work.row)
        for event in turned.events:
            self._owners.log(row, event, now)
        detail = "/".join(str(part) for part in (wanted.get("group"), wanted.get("index")) if part is not None)
        self._owners.emit(now, JobSetChanged(row.id, row.name, "restarted", detail))

    @staticmethod
    def _restarted(work: SetWork, wanted: dict[str, object], now: float) -> Transition:
        group, index = wanted.get("group"), wanted.get("index")
        if not isinstance(group, str):
            return restart_set(work.spec, work.row.state, now)
        if not isinstance(index, int):
            return restart_group(work.spec, work.row.state, group)
        return restart_job(work.spec, work.row.state, group, index)
