"""Reads which jobs a list is of, out of the words a caller has for it."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING

from holdfast.domain.job import JobState
from holdfast.errors import InvalidRequest, Problem
from holdfast.ports.store import JobFilter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.service.jobsets.sets import JobSets

_STATES = {state.lower(): state for state in JobState}


def read_filter(
    sets: JobSets,
    *,
    states: Sequence[str] = (),
    queue: str | None = None,
    name: str | None = None,
    job_set: str | None = None,
    labels: Sequence[str] = (),
) -> JobFilter:
    """Read which jobs a list is of.

    Args:
        sets: Know the set that is named.
        states: Any of these; case is ignored.
        queue: Its name.
        name: A job's name.
        job_set: Name or id of the set they belong to.
        labels: Each as ``key=value``; all must hold.

    Raises:
        InvalidRequest: A state is unknown or a label is not ``key=value``; with all problems.
        NotFound: There is no such job set.
    """
    problems = [
        Problem("query.state", f"{one!r} is not a state", allowed=tuple(JobState))
        for one in states
        if one.lower() not in _STATES
    ]
    problems += [Problem("query.label", f"{one!r} is not of the form key=value") for one in labels if "=" not in one]
    if problems:
        raise InvalidRequest(problems=problems)
    return JobFilter(
        states=frozenset(_STATES[one.lower()] for one in states) if states else None,
        queue=queue,
        name=name,
        job_set=None if job_set is None else sets.id_of(job_set),
        labels=tuple((key, value) for key, _, value in (one.partition("=") for one in labels)),
    )


def mark_of(where: JobFilter) -> str:
    """Tell lists apart, for their cursors."""
    parts = (sorted(where.states or ()), where.queue, where.name, where.job_set, sorted(where.labels))
    return sha256(json.dumps(parts).encode()).hexdigest()[:12]
