"""Drives the entities of a table: runs handlers, judges their reports, applies the outcome, and promotes by children.

Handlers only report; need_retry, expired and give_up are judged here and nowhere else (BEP-1030).
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from holdfast.domain.lifecycle import Outcome, Step, TransitionStatus
from holdfast.domain.lifecycle.judge import Report, is_expired, judge, promotes
from holdfast.domain.lifecycle.table import C, S
from holdfast.domain.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from holdfast.domain.lifecycle import HandlerRow, Lifecycle, PromotionRow
    from holdfast.domain.lifecycle.judge import HandlerOptions, Reports

_log = logging.getLogger(__name__)
E = TypeVar("E")
"""An entity."""
_Given_contra = TypeVar("_Given_contra", contravariant=True)
_MOST_NAMED = 10
"""Most unknown ids logged."""


class Handler(Protocol[_Given_contra, S, C]):
    """Does the work of one phase."""

    row: HandlerRow[S, C]

    def execute(self, targets: Sequence[_Given_contra], now: float) -> Reports:
        """Do the phase's work on a batch and report success, failure or a skip for each entity."""
        ...


class Standing(NamedTuple, Generic[S]):
    """What is judged of an entity."""

    id: str
    """The name handlers use."""
    status: S
    since: float
    """When it entered its status, as stored."""
    tries: int
    """Failures in the status."""


class Coordinator(ABC, Generic[E, S, C]):
    """Applies handlers' reports and children's statuses, for one kind of entity."""

    def __init__(self, table: Lifecycle[S, C], *, since: Callable[[float], float]) -> None:
        """Remember the table, and what maps the time a status was entered to when waiting in it began to count."""
        self.table = table
        self._since = since

    @abstractmethod
    def standing(self, entity: E) -> Standing[S]:
        """Return what is judged of an entity."""

    @abstractmethod
    def children(self, entity: E) -> Collection[C]:
        """Return the statuses of an entity's children."""

    @abstractmethod
    def options(self, row: HandlerRow[S, C] | PromotionRow[S, C], entity: E) -> HandlerOptions:
        """Return the limits for an entity."""

    @abstractmethod
    def apply(self, entity: E, step: Step, to: TransitionStatus[S, C]) -> None:
        """Record a step and move the entity where it leads, if anywhere."""

    def run(self, handler: Handler[E, S, C], batch: Iterable[E], now: float) -> None:
        """Run a handler on those of a batch it is meant for, and apply its reports, or the lack of one."""
        row, targets = handler.row, {}
        for entity in batch:
            at = self.standing(entity)
            if at.status not in row.targets:
                continue
            if row.child_targets is None or not row.child_targets.isdisjoint(self.children(entity)):
                targets[at.id] = entity
        for report in self._execute(handler, targets, now) if targets else ():
            entity, outcome = targets[report.id], report.said
            if outcome is not Outcome.SUCCESS:
                at, options = self.standing(entity), self.options(row, entity)
                since = self._since(at.since)
                outcome = judge(outcome, options, self.table.outcomes, tries=at.tries, since=since, now=now)
            if outcome is not None:
                step = Step(row.name, outcome, now, report.code, report.message, report.steps)
                self.apply(entity, step, row.transitions.get(outcome) or TransitionStatus())

    def _execute(self, handler: Handler[E, S, C], targets: Mapping[str, E], now: float) -> Iterable[Report]:
        """Do the work and return one report on each target; those it did not mention come last.

        A handler that raises has failed for all targets (semantics 6).
        """
        row = handler.row
        try:
            said = list(handler.execute(list(targets.values()), now).reports())
        except Exception as error:  # noqa: BLE001 - whatever it is
            _log.exception("handler %s raised, with %d targets", row.name, len(targets))
            said = [Report(name, Outcome.FAILURE, type(error).__name__, str(error)) for name in targets]
        unknown, first = [], {}
        for report in said:
            if report.id in first or report.id not in targets:
                unknown.append(report.id)
            else:
                first[report.id] = report
        if unknown:
            named = unknown[:_MOST_NAMED]
            _log.error("handler %s reported %d that it was not given: %s", row.name, len(unknown), named)
        for name in targets:
            if name not in first:
                first[name] = Report(name, None)
        return first.values()

    def promote(self, entity: E, now: float) -> bool:
        """Move an entity on if its children allow or its timeout demands it; returns whether it has."""
        at, children = self.standing(entity), self.children(entity)
        for row in self.table.promotions:
            if at.status not in row.targets:
                continue
            if promotes(row, children):
                self.apply(entity, Step(row.name, Outcome.SUCCESS, now), TransitionStatus(row.success))
                return True
            if row.expired is None:
                continue
            timeout_s = self.options(row, entity).timeout_s
            if is_expired(self._since(at.since), timeout_s, now):
                message = f"not {row.success} within {format_duration(timeout_s or 0.0)}"
                step = Step(row.name, Outcome.EXPIRED, now, message=message)
                self.apply(entity, step, TransitionStatus(row.expired))
                return True
        return False
