"""Reads the filters of job lists."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from holdfast.domain.job import JobState
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.errors import InvalidRequest, NotFound, Problem
from holdfast.ports.store import JobFilter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.ports.store import Store

_STATES = {state.lower(): state for state in JobState}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A caller's filter of a list of jobs; every field that is given must hold."""

    states: Sequence[str] = ()
    """Any of these; case is ignored."""
    queue: str | None = None
    name: str | None = None
    job_set: str | None = None
    """Name or id of the set they belong to."""
    labels: Sequence[str] = ()
    """Each as ``key=value``."""
    quarantined: bool = False
    """Only those that are quarantined."""


def read_filter(store: Store, wanted: Wanted) -> JobFilter:
    """Read the filter of a list of jobs; ``store`` has the set that is named.

    Raises:
        InvalidRequest: A state is unknown or a label is not ``key=value``; with all problems.
        NotFound: There is no such job set.
    """
    problems = [
        Problem("query.state", f"{one!r} is not a state", allowed=tuple(JobState))
        for one in wanted.states
        if one.lower() not in _STATES
    ]
    wrong = [one for one in wanted.labels if "=" not in one]
    problems += [Problem("query.label", f"{one!r} is not of the form key=value") for one in wrong]
    if problems:
        raise InvalidRequest(problems=problems)
    return JobFilter(
        states=frozenset(_STATES[one.lower()] for one in wanted.states) if wanted.states else None,
        queue=wanted.queue,
        name=wanted.name,
        job_set=None if wanted.job_set is None else _set_id(store, wanted.job_set),
        labels=tuple((key, value) for key, _, value in (one.partition("=") for one in wanted.labels)),
        quarantined=wanted.quarantined,
    )


def _set_id(store: Store, reference: str) -> str:
    """Find a set's id, also of one that is gone and whose jobs are still known by it."""
    try:
        return store.workload(JobSet, reference).id
    except NotFound:
        if store.jobs(JobFilter(job_set=reference), limit=1):
            return reference
        raise


def mark_of(where: JobFilter) -> str:
    """Return what tells lists apart, for their cursors."""
    labels = sorted(where.labels)
    parts = (sorted(where.states or ()), where.queue, where.name, where.job_set, labels, where.quarantined)
    return sha256(json.dumps(parts).encode()).hexdigest()[:12]
