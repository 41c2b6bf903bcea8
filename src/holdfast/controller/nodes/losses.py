"""Runs lost together with their executors, the jobs suspected of it, and nodes that may come back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.events.operators import NodeLost
from holdfast.domain.events.registry import EventRecord
from holdfast.domain.placement.fit import Place
from holdfast.domain.policy import blame

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.controller.state import ControllerState
    from holdfast.domain.events.registry import StoredEvent
    from holdfast.domain.job import Node, Run
    from holdfast.domain.policy.blame import Loss, Suspicion


class Losses:
    """The last losses of each executor, as evidence against jobs.

    Each loss is stored as an event, so that it survives a restart of the controller.
    """

    def __init__(self, state: ControllerState) -> None:
        self._state = state
        self.recent: dict[str, tuple[Loss, ...]] = {}
        self._culprits: dict[str, tuple[str, Suspicion] | None] = {}
        """The job to blame for the last losses; nobody else is suspected of them."""
        self.ended: list[Run] = []
        """Lost runs that are not part of a recorded loss yet."""

    def restore(self, stored: Iterable[StoredEvent]) -> None:
        """Restore the losses from before this controller."""
        for stored_event in stored:
            if isinstance(stored_event.event, NodeLost):
                self._remember(_read(stored_event.at, stored_event.event))

    def record_ended(self, now: float) -> None:
        """Record the runs lost since the last call as losses; call it before any of them is judged."""
        by_executor: dict[str, list[Run]] = {}
        for run in self.ended:
            by_executor.setdefault(run.executor, []).append(run)
        self.ended = []
        for executor, runs in by_executor.items():
            self._note(executor, runs, now)

    def suspicion(self, job_id: str, runs: Sequence[Run]) -> Suspicion | None:
        """Return the suspicion against a job whose attempt was lost with its place."""
        for run in runs:
            if run.outcome is not None and run.outcome.lost:
                return self._against(job_id, run.executor)
        return None

    def _against(self, job_id: str, executor: str) -> Suspicion | None:
        culprit_found = self._culprits.get(executor)
        if culprit_found is None:
            return blame.find_suspicion(self.recent.get(executor, ()), job_id)
        return culprit_found[1] if culprit_found[0] == job_id else None

    def _note(self, executor: str, runs: Sequence[Run], now: float) -> None:
        ran: dict[str, float] = {}
        for run in runs:
            ran_s = round(run.outcome.ran_s or 0.0, 3) if run.outcome is not None else 0.0
            ran[run.job_id] = max(ran.get(run.job_id, 0.0), ran_s)
        lost = blame.make_loss(executor, now, ran, frozenset(run.node for run in runs))
        self._remember(lost)
        event = NodeLost(executor, tuple(sorted(lost.nodes)), lost.job_count, lost.longest_s, tuple(lost.jobs.items()))
        self._state.emit(EventRecord(None, now, event))

    def _remember(self, lost: Loss) -> None:
        before = self.recent.get(lost.executor, ())
        if self._culprits.get(lost.executor) is not None and not blame.is_same_loss(before[-1], lost):
            before = ()  # Losses with a culprit are no evidence against others, nor twice against the culprit.
        self.recent[lost.executor] = blame.add_loss(before, lost)
        self._culprits[lost.executor] = blame.find_culprit(self.recent[lost.executor])


def _read(at: float, event: NodeLost) -> Loss:
    return blame.Loss(event.executor, frozenset(event.nodes), at, dict(event.jobs), event.taken, event.longest_s)


MAY_COME_BACK_S = 600.0
"""A node that was silent for longer, in seconds, is gone for good."""


class Away:
    """The nodes that are gone and may come back; computed once per tick, and only if any is gone."""

    def __init__(self, state: ControllerState) -> None:
        self._state = state
        self._cached: tuple[float, Sequence[Place]] = (float("-inf"), ())

    def places(self, now: float) -> Sequence[Place]:
        """Return them; for a node from before this controller the time counts from the controller's start."""
        nodes, present = self._state.nodes, self._state.capacity.places
        if len(nodes) <= len(present):
            return ()
        if self._cached[0] != now:
            gone = [node for key, node in nodes.items() if key not in present and self._may(node, now)]
            self._cached = now, [*map(_place, gone)]
        return self._cached[1]

    def _may(self, node: Node, now: float) -> bool:
        return now - self._state.since(node.seen_at) < MAY_COME_BACK_S


def _place(node: Node) -> Place:
    return Place((node.executor, node.name), node.capacity, node.labels, node.engine, node.devices, node.short)
