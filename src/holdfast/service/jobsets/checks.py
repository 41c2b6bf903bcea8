"""Checks a valid job set against the catalogue and the limits of its queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.dialects.jobset.loading import child_spec
from holdfast.dialects.jobset.runnable import TEMPLATE
from holdfast.dialects.native.envelope import API_VERSION
from holdfast.domain.audit import Subject
from holdfast.domain.record import evolve
from holdfast.errors import InvalidManifest, Problem, Refused
from holdfast.service.admission.limits import check, closed_to
from holdfast.service.kube_paths import QUEUE, in_kubernetes
from holdfast.service.naming import unknown_notifiers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from holdfast.domain.audit import Caller
    from holdfast.domain.workloads.jobset.model import JobSetSpec
    from holdfast.errors import HoldfastError
    from holdfast.ports.catalogue import Catalogue

MOST_JOBS = 100_000
"""In one set."""


def check_set(
    spec: JobSetSpec, catalogue: Catalogue, written: Mapping[str, Any], caller: Caller | None = None
) -> HoldfastError | None:
    """Return the error that keeps a set from being accepted, if any.

    Args:
        spec: The set.
        catalogue: The queues, policies and notifiers.
        written: Its manifest, whose format determines the paths of problems.
        caller: The caller, whose rights to the queue are checked.
    """
    native = written.get("apiVersion") == API_VERSION
    places = f"spec.{'jobs' if native else 'replicatedJobs'}"
    if spec.replicas > MOST_JOBS:
        problem = Problem(places, f"asks for {spec.replicas} jobs", (f"at most {MOST_JOBS} in one set",))
        return InvalidManifest(f"job set {spec.name!r} is not valid", problems=[problem])
    unknown = unknown_notifiers(spec.notify, catalogue.notifiers)
    invalid = dict.fromkeys(unknown if native else [in_kubernetes(problem, places) for problem in unknown])
    beyond: dict[Problem, None] = {}
    for place, group in enumerate(spec.replicated_jobs):
        error = check(child_spec(spec, group), catalogue, tuple)
        if error is not None:
            problems_moved = _moved(error.problems, f"{places}[{place}]", native=native)
            (beyond if isinstance(error, Refused) else invalid).update(dict.fromkeys(problems_moved))
    if invalid:
        return InvalidManifest(f"job set {spec.name!r} is not valid", problems=invalid)
    if caller is not None and (
        closed := closed_to(caller.principal, Subject.JOB_SET, catalogue.queues[spec.queue_name], spec.group)
    ):
        return closed
    if beyond:
        return Refused(f"the queue could never run job set {spec.name!r}", problems=beyond)
    return None


def _moved(problems: Iterable[Problem], group: str, *, native: bool) -> Iterable[Problem]:
    """Move the problems of a job to its place in the set's manifest."""
    for problem in problems:
        if not native:
            yield in_kubernetes(problem, f"{group}.{TEMPLATE}")
        elif problem.path == QUEUE:
            yield problem
        else:
            yield evolve(problem, path=f"{group}{problem.path.removeprefix('spec')}")
