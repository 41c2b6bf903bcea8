"""Submits jobs of owners with specifications of their own; they are taken in after the commit that orders them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.compiled.codec import load_spec
from holdfast.domain.terms.workload_kinds import GANG
from holdfast.domain.workloads.children import CreateChild, child_of_gang, job_of
from holdfast.errors import Internal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.controller.state import ControllerState
    from holdfast.controller.workloads.memory import Work
    from holdfast.domain.workloads.children import Order
    from holdfast.ports.store import ControllerStore


class ChildSubmitter:
    """Submits the jobs of owners of every kind."""

    def __init__(self, state: ControllerState, store: ControllerStore) -> None:
        self._state = state
        self._store = store

    def submit(self, work: Work[Any, Any], orders: Iterable[Order], now: float) -> None:
        """Submit the jobs that do not exist yet with this commit, and take in those of an earlier one."""
        state, row, missing = self._state, work.row, self._missing(work, orders)
        if not missing:
            return
        for job in self._store.jobs_by_id(list(missing)):
            if job.terminal:
                message = f"{row.noun} {row.name} has used the name {job.name} before"
                raise Internal(message)
            del missing[job.id]
            work.jobs[job.name] = job.id
            state.take_in(job)
        for key, order in missing.items():
            if key not in state.changes.new_jobs:
                self._submit_one(work, key, order, now)
        if missing:
            state.queue.defer(row.kind, row.id)

    def _missing(self, work: Work[Any, Any], orders: Iterable[Order]) -> dict[str, CreateChild]:
        """Return what is to be created and is not in memory, by the id of the job to be."""
        missing = {}
        for order in orders:
            if not isinstance(order, CreateChild) or order.name in work.submitted:
                continue
            job_id = work.jobs.get(order.name)
            if job_id is None:
                missing[f"{work.row.id}-{order.name}"] = order
            elif job_id not in self._state.jobs:
                message = f"its job {order.name} is quarantined"
                raise Internal(message)
        return missing

    def _submit_one(self, work: Work[Any, Any], key: str, order: CreateChild, now: float) -> None:
        job = job_of(order, load_spec(order.spec), work.row, key, now)
        self._state.submit(job)
        if job.kind == GANG:
            work.jobs[job.name], work.children[job.name] = job.id, child_of_gang(job)
            work.submitted.add(job.name)

    def take_in(self, work: Work[Any, Any]) -> None:
        """Take in the jobs that an earlier tick submitted and that wait for a place by themselves."""
        for job in self._store.jobs_by_id([work.jobs[name] for name in work.submitted]):
            self._state.take_in(job)  # Taking it in shows it to its owner.
        if work.submitted:
            self._state.queue.defer(work.row.kind, work.row.id)
