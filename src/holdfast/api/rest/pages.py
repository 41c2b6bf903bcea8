"""Cuts lists into pages, and reads which jobs a list is of; what a cursor holds is ``cursors``' to decide."""

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated

from fastapi import Depends, Query

from holdfast.api.rest.context import Use
from holdfast.api.rest.cursors import read_number, write_cursor
from holdfast.domain.job import JobState
from holdfast.errors import InvalidRequest, Problem
from holdfast.ports.store import JobFilter
from holdfast.service.query import LARGEST_PAGE

DEFAULT_PAGE = 100
LONGEST_TEXT = 255
MOST_FILTERS = 64
_STATES = {state.lower(): state for state in JobState}

Word = Annotated[str | None, Query(max_length=LONGEST_TEXT)]


def job_filter(
    use: Use,
    *,
    state: Annotated[
        list[str] | None, Query(max_length=MOST_FILTERS, description="Any of these; case is ignored.")
    ] = None,
    queue: Word = None,
    name: Word = None,
    job_set: Annotated[
        str | None, Query(max_length=LONGEST_TEXT, description="Name or id of the job set they belong to.")
    ] = None,
    label: Annotated[
        list[str] | None, Query(max_length=MOST_FILTERS, description="Each as `key=value`; all must hold.")
    ] = None,
) -> JobFilter:
    """Read which jobs a list is of.

    Raises:
        InvalidRequest: A state is unknown or a label is not ``key=value``; with all problems.
        NotFound: There is no such job set.
    """
    problems = [
        Problem("query.state", f"{one!r} is not a state", allowed=tuple(JobState))
        for one in state or ()
        if one.lower() not in _STATES
    ]
    problems += [
        Problem("query.label", f"{one!r} is not of the form key=value") for one in label or () if "=" not in one
    ]
    if problems:
        raise InvalidRequest(problems=problems)
    return JobFilter(
        states=frozenset(_STATES[one.lower()] for one in state) if state else None,
        queue=queue,
        name=name,
        job_set=None if job_set is None else use.job_sets.id_of(job_set),
        labels=tuple((key, value) for key, _, value in (one.partition("=") for one in label or ())),
    )


Where = Annotated[JobFilter, Depends(job_filter)]


@dataclass(frozen=True, slots=True)
class PageQuery:
    """Which part of a list is wanted."""

    where: JobFilter
    limit: int
    after: int

    def cursor(self, after: int | None) -> str | None:
        """Write the cursor of what follows ``after`` in this list."""
        return write_cursor(after, _mark(self.where))


def page_query(
    where: Where, limit: Annotated[int, Query(ge=1, le=LARGEST_PAGE)] = DEFAULT_PAGE, cursor: Word = None
) -> PageQuery:
    """Read which part of a list is wanted.

    Raises:
        InvalidRequest: The cursor is not one of this list's.
    """
    return PageQuery(where, limit, read_number(cursor, _mark(where)))


Paging = Annotated[PageQuery, Depends(page_query)]


def _mark(where: JobFilter) -> str:
    """Tell lists apart."""
    parts = (sorted(where.states or ()), where.queue, where.name, where.job_set, sorted(where.labels))
    return sha256(json.dumps(parts).encode()).hexdigest()[:12]
