"""Checks what nodes that are short get and cost, and what follows where nobody knows how a program ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.compiled.codec import load_spec
from holdfast.domain.failure import EndedBy
from holdfast.domain.policy.builtin import INFRASTRUCTURE, ON_UNKNOWN_END
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.model import Action
from holdfast.domain.terms.settings import UnknownEnd
from tools.simulate.invariants.untried import UntriedChecks
from tools.simulate.promises import refuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.failure import RunOutcome
    from holdfast.domain.job import Attempt, Run
    from holdfast.domain.policy.model import Decision
    from holdfast.ports.store import Changes
    from tools.simulate.controllers import ControllerHost
    from tools.simulate.invariants.record import Record
    from tools.simulate.machines.machine import FaultyMachine

_SHORT_FOR_S = 30.0
_TRIED_FOR_S = 15.0
"""After so long without news of the last one, a node that is short gets another."""
_NO_RULE = frozenset({None, INFRASTRUCTURE.name, ON_UNKNOWN_END})
_BY_THE_PLATFORM = frozenset({EndedBy.LOST, EndedBy.CASCADE, EndedBy.SUSPENSION, EndedBy.DRAIN})


class _Try(NamedTuple):
    """What was placed on a node that was short."""

    run: Run
    who: str
    memory: int
    """Which one of all controllers' placed it; the next one knows what is short, and not what is being tried."""


class PlaceChecks:
    """What must hold of nodes that are short, and of ends that nobody knows."""

    def __init__(
        self,
        record: Record,
        machines: Sequence[FaultyMachine],
        controllers: Sequence[ControllerHost],
        *,
        clocks_agree: bool,
    ) -> None:
        """Remember what was committed, who refuses, and who places.

        Where clocks do not agree, nobody can say for how long a node has been short.
        """
        self._record = record
        self._machines = machines
        self._controllers = controllers
        self._clocks_agree = clocks_agree
        self._untried = UntriedChecks(record)
        self._known: set[str] = set()
        self._refused: dict[str, float] = {}
        """By node, when a controller last heard that something was refused."""
        self._tries: dict[str, list[_Try]] = {}

    def check(self, changes: Changes) -> None:
        """Check a commit that is part of the record already."""
        self._untried.check(changes)
        for run in changes.runs.values():
            if run.uid in self._known and (run.started_at is not None or run.outcome is not None):
                self._tries.pop(run.node, None)  # the first news of any of them lets the next one come
        for run in changes.runs.values():
            if run.uid not in self._known:
                self._known.add(run.uid)
                self._placed(run)
        for run in changes.runs.values():
            if run.outcome is not None and self._was_refused(run.uid, run.outcome):
                self._refused[run.node] = max(run.status_since, self._refused.get(run.node, 0.0))
        for attempt in changes.attempts.values():
            if attempt.job_id not in self._record.pods:
                self._costs_nothing(attempt)
                self._never_again(attempt)

    def _was_refused(self, uid: str, outcome: RunOutcome) -> bool:
        known = any(uid in machine.refused for machine in self._machines)
        return known and not outcome.started and bool(outcome.containers)

    def _placed(self, run: Run) -> None:
        since = self._refused.get(run.node)
        if not self._clocks_agree or since is None or run.status_since - since >= _SHORT_FOR_S:
            return
        tries, memory = self._tries.setdefault(run.node, []), sum(host.memories for host in self._controllers)
        who = run.uid if run.job_id in self._record.pods else run.job_id
        tries.append(_Try(run, who, memory))
        silent = {
            each.who
            for each in tries
            if each.memory == memory and run.status_since - each.run.status_since < _TRIED_FOR_S
        }
        if len(silent) > 1:
            refuse("short-stays-empty", f"{run.node} refused something at {since:.3f}, and gets {sorted(silent)}")

    def _ends(self, attempt: Attempt) -> list[tuple[str, RunOutcome]]:
        """List how the runs of an attempt ended, as far as that was not as it should."""
        runs = self._record.runs_of(attempt.job_id, attempt.number)
        found = [(run.uid, run.outcome) for run in runs if run.dispatch == attempt.dispatch and run.outcome is not None]
        return [(uid, outcome) for uid, outcome in found if not outcome.succeeded]

    def _costs_nothing(self, attempt: Attempt) -> None:
        decision = attempt.decision
        if decision is None:
            return
        ends = self._ends(attempt)
        if not any(self._was_refused(*end) for end in ends) or any(_unknown(outcome) for _, outcome in ends):
            return
        free = decision.code in {DecisionCode.SHORTAGE, DecisionCode.INTERRUPTED} and decision.counter is None
        if not free and decision.code is not DecisionCode.TOTAL_DEADLINE:
            refuse("short-costs-nothing", f"{attempt.key} met a shortage, and it is {decision}")

    def _never_again(self, attempt: Attempt) -> None:
        job = self._record.jobs[attempt.job_id]
        before = self._record.attempts[job.id].get(attempt.number - 1)
        if before is None or before.decision is None or job.id in self._record.released:
            return
        if load_spec(job.spec).on_unknown_end not in {UnknownEnd.HOLD, UnknownEnd.FAIL}:
            return
        ends = self._ends(before)
        by_itself = any(
            outcome.started and outcome.ended_by not in _BY_THE_PLATFORM and not self._was_refused(uid, outcome)
            for uid, outcome in ends
        )
        unknown = [uid for uid, outcome in ends if _unknown(outcome)]
        if unknown and not by_itself and not _by_a_rule(before.decision):
            refuse("never-again", f"{attempt.key} follows {unknown} after {before.decision}")


def _unknown(outcome: RunOutcome) -> bool:
    return outcome.started and outcome.ended_by is EndedBy.LOST and not outcome.containers


def _by_a_rule(decision: Decision) -> bool:
    """Whether a rule of a user's policy granted it."""
    return decision.policy not in _NO_RULE and decision.rule_index is not None and decision.action is not Action.HOLD
