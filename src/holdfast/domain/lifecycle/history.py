"""The history of an entity: what is recorded of a step, and which steps are merged into one record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from holdfast.domain.evolve import evolve
from holdfast.domain.lifecycle.table import EntityKind, Outcome


@dataclass(frozen=True, slots=True)
class SubStep:
    """A part of a step worth recording by itself, such as one run of an attempt."""

    name: str
    outcome: Outcome
    error_code: str = ""
    message: str = ""


class Step(NamedTuple):
    """What happened to an entity in a phase."""

    phase: str
    outcome: Outcome
    now: float
    code: str = ""
    message: str = ""
    steps: tuple[SubStep, ...] = ()


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One step of an entity through a phase; equal neighbours are merged (BEP-1030, upstream's merge rule)."""

    kind: EntityKind
    id: str
    seq: int
    """Order within the entity's history, from 0; it only grows."""
    phase: str
    """The name of the handler, the promotion or the request."""
    from_status: str
    to_status: str
    outcome: Outcome
    created_at: float
    updated_at: float
    error_code: str = ""
    message: str = ""
    attempts: int = 1
    """How many equal steps this row stands for."""
    steps: tuple[SubStep, ...] = ()

    @property
    def key(self) -> tuple[str, str, int]:
        """Its identity."""
        return (self.kind, self.id, self.seq)

    @property
    def job_id(self) -> str:
        """The job whose attempt this is about."""
        return self.id.partition("/")[0]

    @property
    def attempt(self) -> int:
        """The number of that attempt."""
        return int(self.id.rpartition("/")[2])


def attempt_id(job_id: str, number: int) -> str:
    """Return an attempt's id in the history."""
    return f"{job_id}/{number}"


def followed_by(
    last: HistoryRow | None, identity: tuple[EntityKind, str], step: Step, before: str, after: str
) -> HistoryRow:
    """Return an entity's row for a step, after its last row."""
    seq = last.seq + 1 if last is not None else 0
    phase, outcome, now, code, message, steps = step
    return recorded(last, HistoryRow(*identity, seq, phase, before, after, outcome, now, now, code, message, 1, steps))


def merges(last: HistoryRow, row: HistoryRow) -> bool:
    """Whether a step repeats the last one: same phase, error code and target, both tries or both skips."""
    return (
        last.phase == row.phase
        and last.error_code == row.error_code
        and last.to_status == row.to_status
        and (last.outcome is Outcome.SKIPPED) == (row.outcome is Outcome.SKIPPED)
    )


def recorded(last: HistoryRow | None, row: HistoryRow) -> HistoryRow:
    """Return the row to write: the last one counted up when the step repeats it, else the new one after it.

    A merged row keeps the creation time, and of tries the first message; it takes the new outcome and update time. A
    skip for the same reason as the last is nothing new: it is the last row itself, so that waiting costs no write.
    """
    if last is None:
        return row
    if not merges(last, row):
        return row if row.seq == last.seq + 1 else evolve(row, seq=last.seq + 1)
    if row.outcome is not Outcome.SKIPPED:
        return evolve(last, attempts=last.attempts + 1, outcome=row.outcome, updated_at=row.updated_at)
    if row.message == last.message:
        return last
    return evolve(last, attempts=last.attempts + 1, message=row.message, updated_at=row.updated_at)
