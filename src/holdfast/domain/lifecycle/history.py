"""Records the steps of entities, merging repeated ones into one row (BEP-1030, upstream's merge rule)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.domain.lifecycle.table import EntityKind, Outcome
from holdfast.domain.record import Struct, evolve

if TYPE_CHECKING:
    from collections.abc import Sequence


class SubStep(Struct, frozen=True):
    """A part of a step that is recorded separately, such as one run of an attempt."""

    name: str
    outcome: Outcome
    error_code: str = ""
    message: str = ""


class Step(NamedTuple):
    """The outcome of a phase for an entity."""

    phase: str
    outcome: Outcome
    now: float
    code: str = ""
    message: str = ""
    steps: tuple[SubStep, ...] = ()


class HistoryRow(Struct, frozen=True):
    """One or more equal steps of an entity through a phase."""

    kind: EntityKind
    id: str
    seq: int
    """The order within the entity's history, from 0."""
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
        """The job that the entity belongs to."""
        return self.id.partition("/")[0]

    @property
    def attempt(self) -> int:
        """The number of that attempt."""
        return int(self.id.rpartition("/")[2])


def attempt_id(job_id: str, number: int) -> str:
    """Return the id of an attempt in the history."""
    return f"{job_id}/{number}"


def merge_row(last: HistoryRow | None, row: HistoryRow) -> HistoryRow:
    """Return the row to write: the last one with a higher count if the step repeats it, else the new one after it.

    A step repeats the last one if it has the same phase, error code and target, and both are tries or both skips. A
    merged row keeps its creation time and, for tries, its first message; it takes the new outcome and update time. A
    skip for the same reason as the last returns the last row itself, so that waiting costs no write.
    """
    if last is None:
        return row
    skipped = row.outcome is Outcome.SKIPPED
    same = last.phase == row.phase and last.error_code == row.error_code and last.to_status == row.to_status
    if not same or (last.outcome is Outcome.SKIPPED) is not skipped:
        return row if row.seq == last.seq + 1 else evolve(row, seq=last.seq + 1)
    if not skipped:
        return evolve(last, attempts=last.attempts + 1, outcome=row.outcome, updated_at=row.updated_at)
    if row.message == last.message:
        return last
    return evolve(last, attempts=last.attempts + 1, message=row.message, updated_at=row.updated_at)


def rows_for_steps(
    last: HistoryRow | None, steps: Sequence[tuple[Step, str]], kind: EntityKind, key: str, status: str
) -> list[HistoryRow]:
    """Return the rows to write for the steps of an entity, each with its target status, starting from ``status``."""
    rows = dict[int, HistoryRow]()
    for (phase, outcome, now, code, message, parts), to in steps:
        seq = 0 if last is None else last.seq + 1
        row = HistoryRow(kind, key, seq, phase, status, to, outcome, now, now, code, message, 1, parts)
        row = merge_row(last, row)
        if row is not last:
            last = rows[row.seq] = row
        status = to
    return list(rows.values())
