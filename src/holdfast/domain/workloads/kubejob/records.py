"""The durable record of a job whose runs are pods."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.domain.record import Struct, field
from holdfast.domain.terms.workload_kinds import KUBEJOB
from holdfast.domain.workloads.base import Workload
from holdfast.domain.workloads.kubejob.model import KubeJobState


class PodRecord(Struct, frozen=True):
    """What outlives a pod's individual programs, several of which may run in it, one after the other."""

    name: str
    """``<job name>-<rank>-<number>``, as messages name it; its identity within one attempt of its job."""
    rank: int
    """Its completion index, or its slot if pods have no indexes."""
    index_failures: int = 0
    index_ignored: int = 0
    restarts: int = 0
    """How often its program was restarted in the pod."""
    run: str = ""
    """Uid of its current or last run."""
    waiting: bool = False
    """Whether that run has ended and been counted, and its program is to restart."""
    place_given_up: bool = False
    """Whether the place of that run, which a restart in place would keep, was released."""
    due: float | None = None
    """When its program restarts; ``None`` while one runs."""
    counters: Mapping[str, int] = field(default_factory=dict)
    """Retries that policies granted it, by ``<policy>/<rule>``."""
    avoid_node: str | None = None
    """The node that its program avoids by a policy."""
    avoid_devices: tuple[str, ...] = ()
    """The GPUs that its program avoids by a policy, each as ``<id>@<node>``."""
    avoid_nodes: tuple[str, ...] = ()
    """The nodes that its program must not use, by a policy."""
    tried: tuple[str, ...] = ()
    """Every node on which its program was tried, in order."""
    in_place: int = 0
    """How often it was restarted in place."""
    memory: int | None = None
    """The next program's memory request in bytes, after a policy has let it grow."""
    taken: str = ""
    """Why its program was evicted, when its machine ran out of something."""
    held: str = ""
    """Why its next program is held by a policy until a person releases it."""


class KubeJobRecord(Workload, frozen=True):
    """A job whose runs are pods; its id is the job's, and its owner the job set that the job belongs to."""

    restart: int = 0
    """Restarts of its set when its current attempt began."""
    job_restart: int = 0
    """Its own restarts when its current attempt began."""
    present: bool = True
    """Whether its attempt exists; ``False`` before it is created, and after it is deleted until it is recreated."""
    suspended: bool = False
    deleting_since: float | None = None
    domain: str = ""
    """The topology domain that it has exclusively, if it requests one."""
    parallelism: int | None = None
    """What it was resized to, if that differs from its template."""
    completions: int | None = None
    failed_in_place: str = ""
    """How a program failed that its set may no longer restart in place, and why not."""
    state: KubeJobState = field(default_factory=KubeJobState)
    pods: tuple[PodRecord, ...] = ()
    """Pods that have not ended."""

    kind = KUBEJOB
    noun = "job made of pods"

    @property
    def last_runs(self) -> tuple[str, ...]:
        """The last run of each pod."""
        return tuple(pod.run for pod in self.pods if pod.run)
