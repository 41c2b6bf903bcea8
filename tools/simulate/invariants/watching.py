"""Checks that silent runs are ended, talking ones are not, and nobody is ended without the warning it asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.compiled.codec import load_spec
from holdfast.domain.failure import EndedBy
from tools.simulate.promises import refuse
from tools.simulate.watched import NAMED, watched_script

if TYPE_CHECKING:
    from holdfast.domain.failure import RunOutcome
    from holdfast.domain.workloads.spec import JobSpec
    from tools.simulate.invariants.record import Record
    from tools.simulate.machines.programs import Program

_WARNED = frozenset({EndedBy.DEADLINE, EndedBy.PREEMPTION})
_ROUNDING_S = 0.01


class WatchChecks:
    """What must hold when a program ends whose job has it watched."""

    def __init__(self, record: Record) -> None:
        """Remember where the specifications are."""
        self._record = record

    def ended(self, program: Program, outcome: RunOutcome) -> None:
        """Check one end against what was asked for, and against what the program did."""
        job = self._record.jobs.get(program.order.job_id)
        if job is None or not job.name.startswith(NAMED):
            return
        spec, ran_s = load_spec(job.spec), outcome.ended_at - program.started_at
        self._silence(program, spec, outcome, ran_s)
        if spec.warning is None or outcome.ended_by not in _WARNED:
            return
        if outcome.warned_at is None or outcome.warned_at > outcome.ended_at:
            refuse(
                "warned-first", f"{program.order.uid} was ended by {outcome.ended_by}, warned at {outcome.warned_at}"
            )

    @staticmethod
    def _silence(program: Program, spec: JobSpec, outcome: RunOutcome, ran_s: float) -> None:
        silent_s, uid = watched_script(program.order).silent_after_s, program.order.uid
        if spec.stall is None:
            return
        limit_s = min(limit for limit, _ in spec.stall.in_words().values())
        stalled = outcome.ended_by is EndedBy.STALL
        if stalled and (silent_s is None or ran_s < silent_s + limit_s - _ROUNDING_S):
            refuse("silence-ends", f"{uid} was ended as stalled after {ran_s:.3f} s, silent after {silent_s}")
        if silent_s is not None and ran_s > silent_s + limit_s + spec.grace_s + _ROUNDING_S:
            refuse("silence-ends", f"{uid} was silent after {silent_s} s and ran for {ran_s:.3f}, limit {limit_s}")
