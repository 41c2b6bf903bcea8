"""Reads the filters of job lists."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, TypeVar

from holdfast.domain.job import JobState
from holdfast.errors import InvalidRequest, Problem
from holdfast.ports.store import JobFilter
from holdfast.service.naming import set_id_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.ports.store import Store

_STATES = {state.lower(): state for state in JobState}
T = TypeVar("T")


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
    states, labels = read_states(wanted.states, wanted.labels, _STATES)
    return JobFilter(
        states=states or None,
        queue=wanted.queue,
        name=wanted.name,
        job_set=None if wanted.job_set is None else set_id_of(store, wanted.job_set),
        labels=labels,
        quarantined=wanted.quarantined,
    )


def read_states(
    states: Sequence[str], labels: Sequence[str], known: Mapping[str, T]
) -> tuple[frozenset[T], tuple[tuple[str, str], ...]]:
    """Read the states and labels that are asked for; ``known`` has the states, by their names in lower case.

    Raises:
        InvalidRequest: A state is unknown or a label is not ``key=value``; with all problems.
    """
    problems = [
        Problem("query.state", f"{one!r} is not a state", allowed=tuple(map(str, known.values())))
        for one in states
        if one.lower() not in known
    ]
    wrong = [one for one in labels if "=" not in one]
    problems += [Problem("query.label", f"{one!r} is not of the form key=value") for one in wrong]
    if problems:
        raise InvalidRequest(problems=problems)
    pairs = (one.partition("=") for one in labels)
    return frozenset(known[one.lower()] for one in states), tuple((key, value) for key, _, value in pairs)


def mark_of(where: JobFilter) -> str:
    """Return what tells lists apart, for their cursors."""
    labels = sorted(where.labels)
    parts = (sorted(where.states or ()), where.queue, where.name, where.job_set, labels, where.quarantined)
    return sha256(json.dumps(parts).encode()).hexdigest()[:12]
