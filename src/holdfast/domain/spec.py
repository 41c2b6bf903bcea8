"""What a user asked for: the job's specification, already validated.

Decides which fields a job has and their defaults; leaves reading manifests to ``dialects``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.podjob.model import PodJobSpec
    from holdfast.domain.policy.model import RetryPolicy

DEFAULT_QUEUE = "default"
DEFAULT_GRACE_S = 10.0


@dataclass(frozen=True, slots=True, order=True)
class Resources:
    """An amount of capacity, asked for by one run or offered by one node."""

    cpu_m: int = 1000
    """Millicores."""
    memory: int = 0
    """Bytes; as a request 0 means no limit and none reserved."""
    gpu: int = 0

    def fits(self, free: Resources) -> bool:
        """Whether this request fits into what is free."""
        return self.cpu_m <= free.cpu_m and self.memory <= free.memory and self.gpu <= free.gpu

    def __add__(self, other: Resources) -> Resources:
        """Sum, per dimension."""
        return Resources(self.cpu_m + other.cpu_m, self.memory + other.memory, self.gpu + other.gpu)

    def __sub__(self, other: Resources) -> Resources:
        """Difference, per dimension; may be negative when a node shrank under its load."""
        return Resources(self.cpu_m - other.cpu_m, self.memory - other.memory, self.gpu - other.gpu)


@dataclass(frozen=True, slots=True)
class KubeJob:
    """A job whose runs are pods, each replaced by itself: a ``batch/v1`` Job."""

    spec: PodJobSpec
    raw: Mapping[str, Any]
    """The Job's ``spec`` as written; its ``template`` is the pod template."""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A validated job specification; defaults are those of the native manifest."""

    name: str
    command: tuple[str, ...]
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    """Higher runs first."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    working_dir: str | None = None
    """Where the program starts; ``None`` is the run's own work directory."""
    resources: Resources = Resources()
    """Of each run."""
    gang: int = 1
    """Ranks that start, fail and restart together."""
    ports: tuple[str, ...] = ()
    """Names of ports each run gets a free number for."""
    deadline_s: float | None = None
    """Per attempt, from the start of its programs."""
    total_deadline_s: float | None = None
    """Over all attempts, from submission."""
    scheduling_timeout_s: float | None = None
    """How long each attempt may wait for a place; back-off does not count."""
    grace_s: float = DEFAULT_GRACE_S
    """From SIGTERM to SIGKILL."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    retry_policies: tuple[str, ...] = ()
    """Named policies, added after the queue's."""
    inline_policies: tuple[RetryPolicy, ...] = ()
    """Policies written in the job itself, after the named ones."""
    kube: KubeJob | None = None
    """Set when its runs are pods of a Kubernetes Job of its own; jobs of a job set have theirs in the set."""
