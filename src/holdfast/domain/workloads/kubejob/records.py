"""The durable record of a job whose runs are pods."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.domain.record import Struct, field
from holdfast.domain.terms.workload_kinds import KUBEJOB
from holdfast.domain.workloads.base import Workload
from holdfast.domain.workloads.kubejob.model import KubeJobState


class PodRecord(Struct, frozen=True):
    """What outlives a pod's individual programs, several of which can run in its place."""

    name: str
    """``<job name>-<rank>-<number>``, as messages name it; its identity within one attempt of its job."""
    rank: int
    """Its completion index, or its slot where pods have no indexes."""
    index_failures: int = 0
    index_ignored: int = 0
    restarts: int = 0
    """How often its program was restarted in it."""
    run: str = ""
    """Uid of its current or last run."""
    waiting: bool = False
    """Whether that run has ended and been counted, and its program is to restart."""
    place_given_up: bool = False
    """Whether the place of that run, which one that restarts in place keeps, was given back."""
    due: float | None = None
    """When its program starts again; ``None`` while one runs."""
    counters: Mapping[str, int] = field(default_factory=dict)
    """Retries that policies granted it, by ``<policy>/<rule>``."""
    avoid_node: str | None = None
    """The node its program avoids, when a policy says so."""
    avoid_devices: tuple[str, ...] = ()
    """The GPUs its program avoids, each as ``<id>@<node>``, when a policy says so."""
    avoid_nodes: tuple[str, ...] = ()
    """The nodes its program is kept off, when a policy says so."""
    tried: tuple[str, ...] = ()
    """Every node on which its program was tried, in order."""
    in_place: int = 0
    """How often it was restarted in place."""
    memory: int | None = None
    """What its next program asks for, in bytes, once a policy has let that grow."""
    taken: str = ""
    """Why its program was evicted, when its machine ran out of something."""
    held: str = ""
    """Why its next program waits for a person to release it, when a policy says so."""


class KubeJobRecord(Workload, frozen=True):
    """One job whose runs are pods; its id is the job's, and its owner the job set the job is part of."""

    restart: int = 0
    """Restarts of its set when its current attempt began."""
    job_restart: int = 0
    """Its own restarts when its current attempt began."""
    present: bool = True
    """Whether its attempt exists; ``False`` before it is created, and after it is deleted until it is recreated."""
    suspended: bool = False
    deleting_since: float | None = None
    domain: str = ""
    """The topology domain it has to itself, when it asks for one."""
    parallelism: int | None = None
    """What it was resized to, where that differs from its template."""
    completions: int | None = None
    failed_in_place: str = ""
    """How a program failed that its set may not restart in place any more, and why not."""
    state: KubeJobState = field(default_factory=KubeJobState)
    pods: tuple[PodRecord, ...] = ()
    """Pods that have not ended."""

    kind = KUBEJOB
    noun = "job made of pods"

    @property
    def last_runs(self) -> tuple[str, ...]:
        """The last run of each pod."""
        return tuple(pod.run for pod in self.pods if pod.run)
