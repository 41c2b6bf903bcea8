"""Acts on what people asked for, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.ports.store import Request, RequestKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.controller.kind import OwnerKind
    from holdfast.controller.state import ControllerState
    from holdfast.ports.store import ControllerStore


class Requests:
    """Takes requests to those they are about."""

    def __init__(self, state: ControllerState, store: ControllerStore, owners: Iterable[OwnerKind]) -> None:
        """Remember where submitted jobs are, and the kinds that are made of jobs."""
        self._state = state
        self._store = store
        self._owners = tuple(owners)

    def take(self, requests: Sequence[Request], now: float) -> None:
        """Act on requests; they are gone with the commit of this tick."""
        for request in requests:
            if request.kind is RequestKind.SUBMIT:
                self._admit(request)
            else:
                for key in request.job_ids:
                    self._ask(request, key, now)
            self._state.changes.handled.append(request.id)

    def _admit(self, request: Request) -> None:
        state = self._state
        unknown = [job_id for job_id in request.job_ids if job_id not in state.jobs]
        for job in self._store.jobs_by_id(unknown):
            if not job.terminal:
                state.admit(job)
                state.kinds[state.kind_of(job)].admit(job)

    def _ask(self, request: Request, key: str, now: float) -> None:
        job = self._state.jobs.get(key)
        if job is not None:
            self._state.kinds[self._state.kind_of(job)].ask(request, key, now)
            return
        for kind in self._owners:
            if kind.asks(request.kind):
                kind.ask(request, key, now)
