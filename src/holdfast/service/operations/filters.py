"""Reads the filters of job lists."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, TypeVar

from holdfast.domain.access.group import Grouped
from holdfast.domain.job import JobState
from holdfast.domain.record import Struct, asdict
from holdfast.domain.workloads.array.model import Array
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.errors import InvalidRequest, Problem
from holdfast.ports.store import JobFilter
from holdfast.ports.workloads import WorkloadFilter

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from holdfast.service.operations.seeing import Seeing

T = TypeVar("T", bound=str)


class JobQuery(Struct, frozen=True, kw_only=True):
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
    array: str | None = None
    """Name or id of the array they are tasks of."""
    tasks: bool = True
    """Also the tasks of arrays."""
    ids: Sequence[str] | None = None
    """Only these; ``None`` is all."""
    group: str | None = None
    """Those of this group; with a slash at its end, also those below it."""
    user: str | None = None
    """Name of who submitted them."""


def read_filter(seeing: Seeing, wanted: JobQuery) -> JobFilter:
    """Read the filter of a list of jobs, for somebody.

    Raises:
        InvalidRequest: A state is unknown or a label is not ``key=value``; with all problems.
        NotFound: There is no such job set.
    """
    states, labels = read_states(wanted.states, wanted.labels, tuple(JobState))
    where = JobFilter(
        states=states or None,
        queue=wanted.queue,
        name=wanted.name,
        job_set=_owner_of(seeing, wanted),
        labels=labels,
        quarantined=wanted.quarantined,
        tasks=wanted.tasks or wanted.array is not None,
        ids=None if wanted.ids is None else frozenset(wanted.ids),
        submitted_by=wanted.user,
        group=None if wanted.group is None else Grouped.read(wanted.group),
    )
    return seeing.listed(where)


def _owner_of(seeing: Seeing, wanted: JobQuery) -> str | None:
    """Find what the jobs must belong to."""
    if wanted.array is not None and wanted.job_set is not None:
        msg = "a job belongs to a job set or to an array"
        raise InvalidRequest(msg, problems=[Problem("query.array", "cannot be set together with job_set")])
    if wanted.array is not None:
        return seeing.owner(Array, wanted.array)
    return None if wanted.job_set is None else seeing.owner(JobSet, wanted.job_set)


def read_states(
    states: Sequence[str], labels: Sequence[str], known: Sequence[T]
) -> tuple[frozenset[T], tuple[tuple[str, str], ...]]:
    """Read the states and labels that are asked for, of the states that are known; case is ignored.

    Raises:
        InvalidRequest: A state is unknown or a label is not ``key=value``; with all problems.
    """
    named = {state.lower(): state for state in known}
    problems = [
        Problem("query.state", f"{one!r} is not a state", allowed=tuple(map(str, known)))
        for one in states
        if one.lower() not in named
    ]
    wrong = [one for one in labels if "=" not in one]
    problems += [Problem("query.label", f"{one!r} is not of the form key=value") for one in wrong]
    if problems:
        raise InvalidRequest(problems=problems)
    pairs = (one.partition("=") for one in labels)
    return frozenset(named[one.lower()] for one in states), tuple((key, value) for key, _, value in pairs)


def mark_of(where: JobFilter) -> str:
    """Return what tells lists apart, for their cursors."""
    labels = sorted(where.labels)
    parts: tuple[object, ...] = (
        sorted(where.states or ()),
        where.queue,
        where.name,
        where.job_set,
        labels,
        where.quarantined,
        where.reasoned,
        where.tasks,
        where.submitted_by,
        where.group,
        where.named,
    )
    if where.ids is not None:
        parts = (*parts, sorted(where.ids))
    return sha256(json.dumps(parts, default=asdict).encode()).hexdigest()[:12]


def workload_filter(user: str | None, group: str | None) -> WorkloadFilter:
    """Read the filter of a list of arrays or of job sets."""
    return WorkloadFilter(user, None if group is None else Grouped.read(group))


def mark_of_workloads(where: WorkloadFilter, states: Collection[str], labels: Collection[tuple[str, str]]) -> str:
    """Return what tells lists of arrays or of job sets apart, for their cursors, whose length is limited."""
    parts = (asdict(where), sorted(states), sorted(labels))
    return sha256(json.dumps(parts, default=asdict).encode()).hexdigest()[:12]
