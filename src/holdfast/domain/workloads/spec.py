"""The validated specification of a job, and its defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.domain.job import Resources
from holdfast.domain.policy.model import RetryPolicy
from holdfast.domain.workloads.kubejob.model import KubeJobSpec
from holdfast.domain.workloads.kubejob.program import Program

DEFAULT_QUEUE = "default"
DEFAULT_GRACE_S = 10.0


@dataclass(frozen=True, slots=True)
class KubeJob:
    """A job whose runs are pods, each replaced by itself: a ``batch/v1`` Job."""

    spec: KubeJobSpec
    program: Program
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
