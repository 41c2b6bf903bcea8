"""A job set as it will be once the controller has acted on everything accepted so far.

A new request is compared with all that was accepted before it, never with what happens to be in force. The order of
acceptance is the order of a set's versions.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, assert_never

from holdfast.compiled.codec import load_change
from holdfast.domain.record import evolve
from holdfast.errors import VersionConflict
from holdfast.ports.requests import RequestKind

if TYPE_CHECKING:
    from holdfast.domain.workloads.jobset.state import JobSet
    from holdfast.ports.requests import Request
    from holdfast.ports.workloads import AskedOf
    from holdfast.service.turns import Versions

_KIND = "job set"


def as_accepted(asked: AskedOf[JobSet]) -> JobSet:
    """Return a set as it is once all that was asked of it is done; how its jobs stand is left as it is."""
    return reduce(_done, asked.requests, asked.workload)


def accepted(job_set: JobSet, request: Request) -> JobSet:
    """Return a set as it is accepted to become with one more request."""
    return evolve(_done(job_set, request), version=job_set.version + 1)


def _done(row: JobSet, request: Request) -> JobSet:
    """Do to a set what the controller does with a request, as far as it is written in the manifest."""
    if row.deleting:
        return row
    match request.kind:
        case RequestKind.HOLD | RequestKind.RELEASE if row.state.terminal:
            return row
        case RequestKind.UPDATE | RequestKind.HOLD | RequestKind.RELEASE:
            change = load_change(request.payload)
            return evolve(row, manifest=change.manifest, spec=change.spec, generation=row.generation + 1)
        case RequestKind.DELETE:
            return evolve(row, deleting=True)
        case RequestKind.SUBMIT | RequestKind.RESTART | RequestKind.CANCEL | RequestKind.RETRY:
            return row
        case RequestKind.PREEMPT | RequestKind.REPRIORITIZE | RequestKind.CORDON | RequestKind.UNCORDON:
            return row
        case _:
            assert_never(request.kind)


def require_match(job_set: JobSet, versions: Versions) -> None:
    """Check that a set has one of the versions its caller knows.

    Raises:
        VersionConflict: It has another.
    """
    if versions is not None and job_set.resource_version not in versions:
        raise VersionConflict.of(_KIND, job_set.name, current=job_set.resource_version)
