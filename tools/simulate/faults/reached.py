"""Coverage of the faults: which states jobs, attempts and runs were in when one struck."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from holdfast.domain.job import JobState
from holdfast.domain.lifecycle import ATTEMPT_TERMINAL, RUN_TERMINAL, AttemptStatus, RunStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tools.simulate.invariants.record import Record

STATES = {
    "job": (JobState.QUEUED, JobState.RUNNING, JobState.BACKOFF, JobState.HELD),
    "attempt": (AttemptStatus.PENDING, AttemptStatus.CREATING, AttemptStatus.RUNNING, AttemptStatus.TERMINATING),
    "run": (RunStatus.CREATING, RunStatus.RUNNING, RunStatus.TERMINATING),
}
"""The states that are ever committed and not final; all others are passed through within a tick."""
COLUMNS = tuple((kind, str(state)) for kind, states in STATES.items() for state in states)

_SHORT = {"running": "runs", "backoff": "waits", "pending": "placed", "creating": "starts", "terminating": "stops"}
_MOST_IN_FULL = 10_000


class Reached:
    """Counts, by fault and state, how often a fault struck while something was in it."""

    def __init__(self, record: Record) -> None:
        """Begin with nothing struck."""
        self._record = record
        self.counts: Counter[tuple[str, str, str]] = Counter()
        """By fault, kind and state."""

    def struck(self, fault: str, where: str | None) -> None:
        """Take in a fault; where it struck one executor, only what is there counts."""
        self.counts.update((fault, kind, state) for kind, state in set(self._present(where)))

    def _present(self, where: str | None) -> Iterator[tuple[str, str]]:
        for job in self._record.unfinished():
            attempt = self._record.attempts[job.id].get(job.attempt)
            runs = self._record.live_runs.get(job.id, {}).values()
            here = [run for run in runs if where in {None, run.executor}]
            if where is not None and not here:
                continue
            yield "job", str(job.state)
            if attempt is not None and attempt.status not in ATTEMPT_TERMINAL:
                yield "attempt", str(attempt.status)
            yield from (("run", str(run.status)) for run in here if run.status not in RUN_TERMINAL)


def table(counts: Mapping[tuple[str, str, str], int]) -> list[str]:
    """Print what faults struck what, a line for each fault."""
    faults = sorted({fault for fault, _, _ in counts})
    width = max((len(fault) for fault in faults), default=0)
    groups = "".join(f"{kind:^{7 * len(states)}}" for kind, states in STATES.items())
    names = "".join(f"{_SHORT.get(state.lower(), state.lower()):>6} " for _, state in COLUMNS)
    lines = [f"{'':{width}}  {groups}".rstrip(), f"{'':{width}}  {names}".rstrip()]
    for fault in faults:
        cells = "".join(f"{_short(counts.get((fault, *column), 0)):>6} " for column in COLUMNS)
        lines.append(f"{fault:{width}}  {cells}".rstrip())
    return lines


def _short(count: int) -> str:
    if not count:
        return "."
    return f"{count:,}" if count < _MOST_IN_FULL else f"{count // 1000:,}k"
