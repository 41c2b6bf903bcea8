"""Creates every kind of workload with what it needs."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.controller.workloads.arrays import RULES as ARRAYS
from holdfast.controller.workloads.arrays import Arrays
from holdfast.controller.workloads.gangs import Gangs
from holdfast.controller.workloads.jobsets import JobSets
from holdfast.controller.workloads.kubejobs import KubeJobs
from holdfast.controller.workloads.owners import Owners, show
from holdfast.controller.workloads.pods import Pods
from holdfast.domain.record import Struct
from holdfast.domain.terms import kinds
from holdfast.domain.workloads.kubejob.model import POD_BACKOFF
from holdfast.domain.workloads.kubejob.pods import CRASH_BACKOFF

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.controller.kind import JobKind, OwnerKind, Pace
    from holdfast.controller.policy_catalog import PolicyJudge
    from holdfast.controller.state import ControllerState
    from holdfast.controller.workloads.memory import SetWork
    from holdfast.controller.workloads.owners import OwnerRules
    from holdfast.domain.policy.model import Backoff
    from holdfast.ports.store import ControllerStore


class PodSettings(Struct, frozen=True):
    """Delays of job sets and Kubernetes Jobs, where manifests specify none."""

    backoff: Backoff = POD_BACKOFF
    """The back-off before a Job replaces failed pods."""
    crash_backoff: Backoff = CRASH_BACKOFF
    """The back-off before a program starts again in its pod."""
    patience_s: float = 90.0
    """How long after its grace period a stopped program may take to be confirmed gone, with its executor's lease."""


class Wiring(Struct, frozen=True, kw_only=True):
    """What kinds are created from."""

    state: ControllerState
    store: ControllerStore
    judging: PolicyJudge
    pods: PodSettings
    alive: Callable[[str], bool]
    """Whether an executor is known and within its lease."""
    lease_s: float | None
    """The lease of executors, in seconds."""
    gangs: Pace
    kube_jobs: Pace


class Kinds(NamedTuple):
    """All kinds, in the order of reconciliation: children before their owners."""

    jobs: tuple[JobKind, ...]
    """Kinds whose workloads are jobs."""
    owners: tuple[OwnerKind, ...]
    """Kinds whose workloads own others."""


def all_kinds(wiring: Wiring) -> Kinds:
    """Create all kinds."""
    state, catalog, settings = wiring.state, wiring.judging.catalog, wiring.pods
    gangs = Gangs(state, wiring.store, wiring.judging, alive=wiring.alive, lease_s=wiring.lease_s, pace=wiring.gangs)
    works: dict[str, SetWork] = {}
    pods = Pods(
        state,
        wiring.judging,
        works,
        backoff=settings.backoff,
        crash_backoff=settings.crash_backoff,
        patience_s=settings.patience_s,
    )
    jobs = KubeJobs(state, wiring.store, pods, pace=wiring.kube_jobs)
    sets = JobSets(state, jobs, pods, wiring.store, works=works, catalog=catalog)
    others = (Owners(rules, state, wiring.store) for rules in _rules_in_packages())
    owners: tuple[Owners[Any, Any], ...] = (sets, Arrays(ARRAYS, state, wiring.store), *others)
    jobs.changed = gangs.changed = partial(show, owners)
    return Kinds(jobs=(gangs, jobs), owners=owners)


def _rules_in_packages() -> Iterator[OwnerRules[Any, Any]]:
    """Create the kinds of owners that need only their rules."""
    for kind in kinds.KINDS.values():
        if kind.package:
            yield import_module(f"{kind.package}.rules").RULES
