"""Every kind of work, wired to what it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from holdfast.controller.workloads.attempts import PodAttempts
from holdfast.controller.workloads.gangs import Gangs
from holdfast.controller.workloads.jobsets import JobSets
from holdfast.controller.workloads.kubejobs import KubeJobs
from holdfast.controller.workloads.owners import Owners
from holdfast.controller.workloads.plans import Plans
from holdfast.controller.workloads.pods import CRASH_BACKOFF, Pods
from holdfast.domain.workloads.kubejob.model import POD_BACKOFF

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.controller.kind import JobKind, OwnerKind, Pace
    from holdfast.controller.policy_catalog import Judging
    from holdfast.controller.state import ControllerState
    from holdfast.domain.policy.model import Backoff
    from holdfast.ports.store import ControllerStore


@dataclass(frozen=True, slots=True)
class PodSettings:
    """Delays of job sets and Kubernetes Jobs, where their manifests do not say."""

    backoff: Backoff = POD_BACKOFF
    """Before a Job replaces failed pods."""
    crash_backoff: Backoff = CRASH_BACKOFF
    """Before a program starts again in its pod."""
    patience_s: float = 90.0
    """How long after its grace a stopped program may take to be confirmed gone, its executor's lease included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """What kinds are made from."""

    state: ControllerState
    store: ControllerStore
    judging: Judging
    pods: PodSettings
    alive: Callable[[str], bool]
    """Whether an executor is known and within its lease."""
    lease_s: float | None
    """Of executors."""
    gangs: Pace
    kube_jobs: Pace


class Kinds(NamedTuple):
    """Every kind of work, in the order of reconciling: children before their owners."""

    jobs: tuple[JobKind, ...]
    """Those whose workloads are jobs."""
    owners: tuple[OwnerKind, ...]
    """Those whose workloads are made of others."""


def all_kinds(wiring: Wiring) -> Kinds:
    """Make every kind."""
    gangs = Gangs(wiring.state, wiring.judging, alive=wiring.alive, lease_s=wiring.lease_s, pace=wiring.gangs)
    kube_jobs, job_sets = _kubernetes(wiring)
    return Kinds(jobs=(gangs, kube_jobs), owners=(job_sets,))


def _kubernetes(wiring: Wiring) -> tuple[KubeJobs, JobSets]:
    state, catalog, settings = wiring.state, wiring.judging.catalog, wiring.pods
    owners = Owners(state)
    plans = Plans(owners.sets, settings.backoff)
    pods = Pods(state, wiring.judging, owners, backoff=settings.crash_backoff)
    attempts = PodAttempts(
        state,
        awaits_domain=pods.awaiting_domain.__contains__,
        catalog=catalog,
        patience_s=settings.patience_s,
    )
    jobs = KubeJobs(state, plans, pods, attempts, wiring.judging.catalog, pace=wiring.kube_jobs)
    sets = JobSets(
        state,
        jobs,
        plans,
        owners,
        store=wiring.store,
        restarts_allowed=lambda: catalog.catalogue.settings.global_max_retries != 0,
    )
    return (jobs, sets)
