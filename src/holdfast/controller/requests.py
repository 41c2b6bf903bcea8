"""Acts on users' requests, in order."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from holdfast.domain.lifecycle import ATTEMPT_TERMINAL, RUN_TERMINAL, RunStatus
from holdfast.domain.workloads.base import UNREAD
from holdfast.domain.workloads.gang.conclusion import cancelled, cancelled_while_pending
from holdfast.ports.store import Request, RequestKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.controller.kind import Kind, OwnerKind
    from holdfast.controller.reconcile import Quarantine
    from holdfast.controller.state import ControllerState
    from holdfast.ports.store import ControllerStore


class Requests:
    """Routes requests to the kinds they are about."""

    def __init__(
        self,
        state: ControllerState,
        store: ControllerStore,
        owners: Iterable[OwnerKind],
        quarantine: Quarantine,
    ) -> None:
        """Remember where submitted jobs are, and the kinds made of jobs."""
        self._state = state
        self._store = store
        self._owners = tuple(owners)
        self._quarantine = quarantine

    def take(self, requests: Sequence[Request], now: float) -> None:
        """Act on requests; this tick's commit removes them."""
        for request in requests:
            if request.kind is RequestKind.SUBMIT:
                self._admit(request.targets, now)
            else:
                for key in request.targets:
                    self._ask(request, key, now)
            self._state.handled(request.id)

    def _admit(self, job_ids: Sequence[str], now: float) -> None:
        state = self._state
        unknown = [job_id for job_id in job_ids if job_id not in state.jobs]
        for job in self._store.jobs_by_id(unknown):
            if not job.terminal:
                self._quarantine.attempt_to_take_in(UNREAD, job.id, now, partial(state.take_in, job))

    def _ask(self, request: Request, key: str, now: float) -> None:
        if key in self._quarantine:
            self._quarantine.release(key, now)
            self._admit([key], now)
        if key in self._quarantine and request.kind is RequestKind.CANCEL:
            self._end(key, request, now)
        job = self._state.jobs.get(key)
        kinds: list[Kind] = [kind for kind in self._owners if kind.asks(request.kind)]
        if job is not None:
            kinds = [self._state.kinds[self._state.kind_of(job)]]
        for kind in kinds:
            doing = f"acting on {request.kind.value}"
            self._quarantine.attempt(kind.name, key, now, doing, partial(kind.ask, request, key, now))

    def _end(self, key: str, request: Request, now: float) -> None:
        """Cancel a job of which only the row can be read; its runs are stopped already."""
        for job in self._store.jobs_by_id([key]):
            runs = (run for run in self._store.runs(key) if run.status not in RUN_TERMINAL)
            attempts = (each for each in self._store.attempts(key) if each.status not in ATTEMPT_TERMINAL)
            self._state.end_unread(
                job,
                cancelled_while_pending(replace(job, reason=request.cancel_reason), now),
                [cancelled(job, attempt, now, started=True).attempt for attempt in attempts],
                [replace(run, status=RunStatus.CANCELLED, status_since=now, ended_at=now) for run in runs],
            )
            self._quarantine.release(key, now)
