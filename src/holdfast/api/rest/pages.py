"""Cuts lists into pages, and reads which jobs a list is of.

Decides what a cursor holds (where to go on, and of which list); to callers it is opaque.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, NoReturn

from fastapi import Depends, Query

from holdfast.domain.job import JobState
from holdfast.errors import InvalidRequest, Problem
from holdfast.ports.store import JobFilter
from holdfast.service.query import LARGEST_PAGE

DEFAULT_PAGE = 100
LONGEST_TEXT = 255
MOST_FILTERS = 64
_LARGEST_SEQ = 1 << 62
_STATES = {state.lower(): state for state in JobState}

Word = Annotated[str | None, Query(max_length=LONGEST_TEXT)]


def job_filter(
    state: Annotated[
        list[str] | None, Query(max_length=MOST_FILTERS, description="Any of these; case is ignored.")
    ] = None,
    queue: Word = None,
    name: Word = None,
    label: Annotated[
        list[str] | None, Query(max_length=MOST_FILTERS, description="Each as `key=value`; all must hold.")
    ] = None,
) -> JobFilter:
    """Read which jobs a list is of.

    Raises:
        InvalidRequest: A state is unknown or a label is not ``key=value``; with all problems.
    """
    problems = [
        Problem("query.state", f"{one!r} is no state", allowed=tuple(JobState))
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
        if after is None:
            return None
        text = json.dumps([after, _mark(self.where)], separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def page_query(
    where: Where, limit: Annotated[int, Query(ge=1, le=LARGEST_PAGE)] = DEFAULT_PAGE, cursor: Word = None
) -> PageQuery:
    """Read which part of a list is wanted.

    Raises:
        InvalidRequest: The cursor is not one of this list's.
    """
    return PageQuery(where, limit, 0 if cursor is None else _after(cursor, where))


Paging = Annotated[PageQuery, Depends(page_query)]


def _after(cursor: str, where: JobFilter) -> int:
    after, mark = _decoded(cursor)
    if type(after) is not int or not 0 <= after < _LARGEST_SEQ:
        _refuse("is not a cursor that was handed out here")
    if mark != _mark(where):
        _refuse("belongs to a list with other filters")
    return after


def _decoded(cursor: str) -> tuple[object, object]:
    try:
        after, mark = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, TypeError):
        return None, None
    return after, mark


def _refuse(message: str) -> NoReturn:
    hint = "pass next_cursor as it was given, with the same filters; or leave it out to begin anew"
    raise InvalidRequest(problems=[Problem("query.cursor", message, hint=hint)])


def _mark(where: JobFilter) -> str:
    """Tell lists apart."""
    parts = (sorted(where.states or ()), where.queue, where.name, sorted(where.labels))
    return sha256(json.dumps(parts).encode()).hexdigest()[:12]
