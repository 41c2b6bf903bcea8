"""Reads the filters of job lists."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.domain.access.group import Grouped
from holdfast.domain.job import JobState
from holdfast.domain.record import Struct, asdict, evolve
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
    """A caller's filter of a list of jobs; all given fields must match."""

    states: Sequence[str] = ()
    """Any of these states; case is ignored."""
    queue: str | None = None
    name: str | None = None
    job_set: str | None = None
    """Name or id of their job set."""
    labels: Sequence[str] = ()
    """Each as ``key=value``."""
    quarantined: bool = False
    """Only those that are quarantined."""
    array: str | None = None
    """Name or id of their array."""
    tasks: bool = True
    """Also the tasks of arrays."""
    ids: Sequence[str] | None = None
    """Only these jobs; ``None``: all."""
    group: str | None = None
    """Jobs of this group; with a slash at its end, also those below it."""
    user: str | None = None
    """Name of their submitter."""


def read_filter(seeing: Seeing, query: JobQuery) -> JobFilter:
    """Read the filter of a list of jobs, limited to what a caller may see.

    Raises:
        InvalidRequest: A state is unknown or a label is not ``key=value``; with all problems.
        NotFound: The array or the job set does not exist.
    """
    states, labels = read_states(query.states, query.labels, tuple(JobState))
    where = JobFilter(
        states=states or None,
        queue=query.queue,
        name=query.name,
        job_set=_owner_of(seeing, query),
        labels=labels,
        quarantined=query.quarantined,
        tasks=query.tasks or query.array is not None,
        ids=None if query.ids is None else frozenset(query.ids),
        submitted_by=query.user,
        group=None if query.group is None else Grouped.read(query.group),
    )
    return seeing.listed(where)


def _owner_of(seeing: Seeing, query: JobQuery) -> str | None:
    """Return the id of the array or the job set that the jobs must belong to."""
    if query.array is not None and query.job_set is not None:
        msg = "a job belongs to a job set or to an array"
        raise InvalidRequest(msg, problems=[Problem("query.array", "cannot be set together with job_set")])
    if query.array is not None:
        return seeing.owner(Array, query.array)
    return None if query.job_set is None else seeing.owner(JobSet, query.job_set)


def read_states(
    states: Sequence[str], labels: Sequence[str], known_states: Sequence[T]
) -> tuple[frozenset[T], tuple[tuple[str, str], ...]]:
    """Read the states and labels of a filter; the case of states is ignored.

    Raises:
        InvalidRequest: A state is unknown or a label is not ``key=value``; with all problems.
    """
    named = {state.lower(): state for state in known_states}
    problems = [
        Problem("query.state", f"{text!r} is not a state", allowed=tuple(map(str, known_states)))
        for text in states
        if text.lower() not in named
    ]
    wrong = [text for text in labels if "=" not in text]
    problems += [Problem("query.label", f"{text!r} is not of the form key=value") for text in wrong]
    if problems:
        raise InvalidRequest(problems=problems)
    pairs = (text.partition("=") for text in labels)
    return frozenset(named[text.lower()] for text in states), tuple((key, value) for key, _, value in pairs)


def mark_of(where: JobFilter) -> str:
    """Return a digest of a filter, which ties cursors to their list."""
    return _mark(evolve(where, labels=tuple(sorted(where.labels)), seen=None))


def workload_filter(user: str | None, group: str | None) -> WorkloadFilter:
    """Read the filter of a list of arrays or of job sets."""
    return WorkloadFilter(user, None if group is None else Grouped.read(group))


def mark_of_workloads(where: WorkloadFilter, states: Collection[str], labels: Collection[tuple[str, str]]) -> str:
    """Return a digest of a filter of arrays or job sets, which ties cursors to their list."""
    return _mark((where, sorted(states), sorted(labels)))


def _mark(parts: object) -> str:
    return sha256(json.dumps(parts, default=_plain).encode()).hexdigest()[:12]


def _plain(value: Any) -> object:  # noqa: ANN401 - a record or a set
    return sorted(value) if isinstance(value, frozenset) else asdict(value)
