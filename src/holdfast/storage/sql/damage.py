"""Handles unreadable rows, damaged or written by a newer Holdfast, so that they keep no other row from being read.

Lists leave them out. A damaged job shows what is left of it, so that a person finds it; no decision relies on that.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.compiled.workloads import left_of_workload
from holdfast.domain.job import JobState
from holdfast.domain.terms.workload_kinds import GANG, JOB_KINDS
from holdfast.errors import HoldfastError, Internal
from holdfast.storage.sql.codec import common_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from sqlalchemy import Row

    from holdfast.domain.job import Job
    from holdfast.domain.workloads.base import Workload
    from holdfast.storage.sql.codec import Reader

T = TypeVar("T")
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, HoldfastError)
"""The exceptions that reading a damaged row can raise."""
_EMPTY = {"named": None, "counters": "{}", "met": None, "avoid_devices": None, "avoid_nodes": None, "tried": None}
_MOST_TOLD = 1000
_log = logging.getLogger(__name__)
_KNOWN = frozenset(state.value for state in JobState)


def sound(
    rows: Iterable[Row[*tuple[Any, ...]]],
    read: Callable[[Row[*tuple[Any, ...]]], T],
    damaged: Callable[[Row[*tuple[Any, ...]], Internal], object] = lambda row, why: None,  # noqa: ARG005 - left out
) -> Iterator[T]:
    """Read the rows that can be read; ``damaged`` is called with each other row and the reason."""
    for row in rows:
        try:
            record = read(row)
        except UNREADABLE as error:
            damaged(row, unreadable(error))
        else:
            yield record


class Damaged:
    """Logs each unreadable row of a table once, however often it is read."""

    def __init__(self, what: str) -> None:
        """Remember ``what`` a row of the table is called."""
        self._what = what
        self.reported: set[Any] = set()
        """The first columns of the rows logged."""

    def note(self, row: Row[*tuple[Any, ...]], why: Internal) -> None:
        """Log a row, unless that was done before."""
        if row[0] not in self.reported and len(self.reported) < _MOST_TOLD:
            self.reported.add(row[0])
            _log.error("%s %s cannot be read and is left out: %s", self._what, row[0], why.message)


def refuse(_: Row[*tuple[Any, ...]], why: Internal) -> None:
    """Refuse to read anything if one row is damaged."""
    raise why


def unreadable(error: Exception) -> Internal:
    """Return the error of an unreadable row."""
    if isinstance(error, Internal):
        return error
    message = f"a stored row cannot be read: {type(error).__name__}: {error}"
    return Internal(message, hint="the database is damaged; restore it from a backup")


def state_left(word: str) -> JobState:
    """Read the state of a damaged job: held if the state is unreadable, too."""
    return JobState(word) if word in _KNOWN else JobState.HELD


def left_of_job(read: Reader, row: Row[*tuple[Any, ...]]) -> Job:
    """Read a job; of a damaged one whatever can still be read."""
    try:
        return read.job(row)
    except UNREADABLE:
        values = {**row._asdict(), **_EMPTY}
        values["state"] = state_left(values["state"]).value
        values["kind"] = values["kind"] if values["kind"] in JOB_KINDS else GANG
        return read.job(tuple(values.values()))


def left_of_owner(row: Sequence[Any]) -> Workload:
    """Build a workload from the columns that all kinds share; ``Internal`` if its kind is unknown."""
    return left_of_workload(row[1], common_of(row))
