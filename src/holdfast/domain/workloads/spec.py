"""The validated specification of a job, and its defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.domain.devices import ANY, GpuSelector
from holdfast.domain.job import Resources
from holdfast.domain.notifier import Notify
from holdfast.domain.policy.model import BuiltIn, RetryPolicy
from holdfast.domain.record import Struct, field
from holdfast.domain.sessions.model import SessionSpec
from holdfast.domain.terms.settings import Streams, UnknownEnd
from holdfast.domain.terms.workload_kinds import GANG, KUBEJOB
from holdfast.domain.workloads.dependencies import Dependency
from holdfast.domain.workloads.family import ChildrenEnd
from holdfast.domain.workloads.kubejob.model import KubeJobSpec
from holdfast.domain.workloads.kubejob.program import Program
from holdfast.domain.workloads.preparing import Input, Preparation
from holdfast.domain.workloads.watching import EarlyWarning, StallLimits

DEFAULT_QUEUE = "default"
DEFAULT_GRACE_S = 10.0


class KubeJob(Struct, frozen=True):
    """A job whose runs are pods, each replaced individually: a ``batch/v1`` Job."""

    spec: KubeJobSpec
    program: Program
    raw: Mapping[str, Any]
    """The Job's ``spec`` as written; its ``template`` is the pod template."""


def pod_name(pattern: str, job_id: str, attempt: int) -> str:
    """Return what the pod of an attempt is called, from a pattern with ``{id}``; a retry appends its number."""
    name = pattern.replace("{id}", job_id)
    return name if attempt <= 1 else f"{name}-{attempt - 1}"


class PodProgram(Struct, frozen=True):
    """What each run runs where a door was sent a pod: its containers, and ``$(NAME)`` as Kubernetes expands it."""

    program: Program
    written: Mapping[str, Any]
    """The job as its door was sent it."""
    name: str = ""
    """What the pod of a run is called; ``{id}`` is the job's, and a retry appends its number."""

    def pod_name(self, job_id: str, attempt: int) -> str:
        """Return what the pod of an attempt is called; attempts count from 1 (Armada's document, "Pod Naming")."""
        return pod_name(self.name, job_id, attempt)


class JobSpec(Struct, frozen=True):
    """A validated job specification; defaults are those of the native manifest."""

    name: str
    command: tuple[str, ...]
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    """Higher runs first."""
    group: str = ""
    """Free text by which it is found with others; a slash makes one that is below another."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    """Variables whose values are kept elsewhere, with the names they have there."""
    working_dir: str | None = None
    """Where the program starts; ``None`` is the run's own work directory."""
    resources: Resources = Resources()
    """Of each run."""
    gpus: GpuSelector = ANY
    """Which GPUs will do."""
    gang: int = 1
    """Ranks that start, fail and restart together."""
    ports: tuple[str, ...] = ()
    """Names of ports each run gets a free number for."""
    deadline_s: float | None = None
    """Per attempt, from the start of its programs."""
    total_deadline_s: float | None = None
    """Over all attempts, from submission, or from when all had happened that it waits for."""
    scheduling_timeout_s: float | None = None
    """How long each attempt may wait for a place; back-off does not count."""
    grace_s: float = DEFAULT_GRACE_S
    """From SIGTERM to SIGKILL."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    retry_policies: tuple[str, ...] = ()
    """Named policies, added after the queue's."""
    inline_policies: tuple[RetryPolicy, ...] = ()
    """Policies written in the job itself, after the named ones."""
    logs: Streams = Streams.TOGETHER
    stall: StallLimits | None = None
    """How long a run may be silent; ``None`` is for ever."""
    after: tuple[Dependency, ...] = ()
    """What has to happen before it may start."""
    notify: tuple[Notify, ...] = ()
    """Who is told of what becomes of it, besides those its queue names; of an array, in the array."""
    warning: EarlyWarning | None = None
    """What a run gets ahead of its end."""
    checkpointed_exit_code: int | None = None
    """The exit code of a run that has saved what it has and is to be run again."""
    checkpoints_of: tuple[str, ...] = ()
    """Ids of jobs that have ended; the first of them that still has a checkpoint folder leaves it to this one."""
    on_unknown_end: UnknownEnd | None = None
    """What happens when nobody knows how a run ended; ``None`` leaves it to its array, then to its policies."""
    array_on_unknown_end: UnknownEnd | None = None
    """What its array says about that."""
    inputs: tuple[Input, ...] = ()
    """What is put into the work directory of each run, at each start."""
    prepare: Preparation | None = None
    """What is run before its program, at each start."""
    keeps_work: bool = True
    """Whether the work directory of a run stays once that has ended, until the job is deleted."""
    children: ChildrenEnd = ChildrenEnd.WITH_JOB
    """When those jobs end that it launches as its children."""
    no_retry: bool = False
    """Whether no failure of it is retried, whatever policies say."""
    builtin: BuiltIn | None = None
    """How much of the built-in policy applies to it; ``None`` leaves it to the operator, or to its door."""
    pod: PodProgram | None = None
    """What its runs run where that is a pod; ``command``, ``env`` and ``resources`` show its main container then."""
    identity: str = ""
    """The group of what its runs may submit by a token of their own; empty: they are given none."""
    starts_at: float | None = None
    """It waits at least until then, as seconds since the epoch."""
    session: SessionSpec | None = None
    """Set when it is a session of Backend.AI's users."""
    kube: KubeJob | None = None
    """Set when its runs are pods of a Kubernetes Job of its own; jobs of a job set have theirs in the set."""

    @property
    def kind(self) -> str:
        """The kind of job this makes, unless it is made for a job set."""
        return GANG if self.kube is None else KUBEJOB
