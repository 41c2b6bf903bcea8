"""Checks that retries which are kept off the nodes that were tried stay off all of them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from holdfast.domain.events.jobs import JobRetried
from tools.simulate.promises import refuse

if TYPE_CHECKING:
    from holdfast.domain.job import Run
    from holdfast.ports.store import Changes
    from tools.simulate.invariants.record import Record


class UntriedChecks:
    """What must hold of nodes that were tried; they are counted here once more, from the runs alone."""

    def __init__(self, record: Record) -> None:
        """Remember what was committed."""
        self._record = record
        self._known: set[str] = set()
        self._began: defaultdict[str, dict[str, int]] = defaultdict(dict)
        """By job, the nodes on which a program of it may have run since it was last retried by hand, each with the
        first attempt that did."""

    def check(self, changes: Changes) -> None:
        """Check a commit that is part of the record already."""
        for record in changes.events.values():
            if isinstance(record.event, JobRetried):
                self._began.pop(record.job_id or "", None)
        for run in changes.runs.values():
            if run.job_id not in self._record.pods:
                self._ran_or_runs(run)
        for (job_id, number), attempt in changes.attempts.items():
            decision = attempt.decision
            if decision is None or not decision.avoid_nodes or job_id in self._record.pods:
                continue
            # After refused commits, one commit may contain this decision and runs of the attempt that it granted.
            began = {node for node, first in self._began[job_id].items() if first <= number}
            if left_out := began.difference(decision.avoid_nodes):
                refuse(
                    "tried-once", f"attempt {number + 1} of {job_id} may run on {sorted(left_out)} again: {decision}"
                )

    def _ran_or_runs(self, run: Run) -> None:
        kept_off = self._record.jobs[run.job_id].avoid_nodes
        if run.uid not in self._known and run.node in kept_off:
            refuse("tried-once", f"{run.uid} is placed on {run.node}, and is kept off {kept_off}")
        self._known.add(run.uid)
        if run.may_have_run:
            self._began[run.job_id].setdefault(run.node, run.attempt)
