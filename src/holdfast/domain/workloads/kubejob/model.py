"""The specification of a Kubernetes Job, its pods as observed, and its stored state.

These are the parts of ``batch/v1`` that decisions depend on. Times are seconds since the epoch, UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Never, TypeAlias

from holdfast.domain.policy.model import Backoff, Decision, ExitCodes
from holdfast.domain.record import Struct, field
from holdfast.domain.workloads.base import Result

if TYPE_CHECKING:
    from holdfast.domain.failure import ContainerResult

UNLIMITED = 2**31 - 1
DEFAULT_BACKOFF_LIMIT = 6
POD_BACKOFF = Backoff(initial_s=10.0, max_s=600.0, multiplier=2.0)
"""10 s doubling to 10 minutes, as the controller's code has it; its documentation still says six minutes."""


class CompletionMode(StrEnum):
    """What counts as complete."""

    NON_INDEXED = "NonIndexed"
    """The required number of pods has succeeded."""
    INDEXED = "Indexed"
    """One pod of each index has succeeded."""


class RestartPolicy(StrEnum):
    """What happens to a container that failed."""

    NEVER = "Never"
    """Its pod fails with it."""
    ON_FAILURE = "OnFailure"
    """It is started again in its pod."""


class PodReplacement(StrEnum):
    """When a terminating pod is replaced."""

    TERMINATING_OR_FAILED = "TerminatingOrFailed"
    """As soon as it is being deleted."""
    FAILED = "Failed"
    """Once it has gone."""


class PodAction(StrEnum):
    """What a rule of a podFailurePolicy says about a failed pod."""

    COUNT = "Count"
    """Count it against the back-off limits, as happens without a rule."""
    FAIL_INDEX = "FailIndex"
    """Fail its index immediately."""
    FAIL_JOB = "FailJob"
    """Fail the whole Job immediately."""
    IGNORE = "Ignore"
    """Replace it without counting it."""


class PodPhase(StrEnum):
    """The phase of a pod."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


POD_ENDED = frozenset({PodPhase.SUCCEEDED, PodPhase.FAILED})


class PodRule(Struct, frozen=True):
    """One rule of a podFailurePolicy; exactly one of ``exit_codes`` and ``conditions`` is set."""

    action: PodAction
    exit_codes: ExitCodes | None = None
    container_name: str | None = None
    conditions: frozenset[tuple[str, str]] = frozenset()
    """Types and statuses; any of these."""
    name: str = ""
    """KEP-4443: the reason of a Job it fails is ``PodFailurePolicy_<name>``."""
    reason: str = ""
    """KEP-262's ``setConditionReason``: the reason of a Job it fails, word for word."""

    @property
    def job_reason(self) -> str:
        """The reason of a Job this rule fails."""
        if self.reason:
            return self.reason
        return f"PodFailurePolicy_{self.name}" if self.name else "PodFailurePolicy"


class SuccessRule(Struct, frozen=True):
    """One rule of a successPolicy; at least one of the two is set."""

    indexes: frozenset[int] | None = None
    count: int | None = None


class KubeJobSpec(Struct, frozen=True, kw_only=True):
    """A validated Job specification; defaults are those of the Job API."""

    parallelism: int = 1
    completions: int | None = 1
    """``None`` is a work queue: complete when one pod has succeeded and all others have ended."""
    mode: CompletionMode = CompletionMode.NON_INDEXED
    backoff_limit: int = DEFAULT_BACKOFF_LIMIT
    backoff_limit_per_index: int | None = None
    max_failed_indexes: int | None = None
    failure_rules: tuple[PodRule, ...] | None = None
    """``None`` is no podFailurePolicy."""
    success_rules: tuple[SuccessRule, ...] = ()
    replacement: PodReplacement = PodReplacement.TERMINATING_OR_FAILED
    active_deadline_s: float | None = None
    ttl_s: float | None = None
    suspend: bool = False
    restart_policy: RestartPolicy = RestartPolicy.NEVER
    backoff: Backoff = POD_BACKOFF
    managed_by: str | None = None

    @property
    def indexed(self) -> bool:
        """Whether pods have indexes."""
        return self.mode is CompletionMode.INDEXED


class Pod(Struct, frozen=True, kw_only=True):
    """One pod as last observed."""

    name: str
    phase: PodPhase = PodPhase.RUNNING
    index: int | None = None
    ready: bool = False
    deleting: bool = False
    """It is being deleted and has not ended yet."""
    idle: bool = False
    """Nothing runs in it, so it is gone as soon as it is stopped."""
    containers: tuple[ContainerResult, ...] = ()
    conditions: frozenset[tuple[str, str]] = frozenset()
    """Types and statuses."""
    container_restarts: int = 0
    """Restarts of all its containers and init containers."""
    index_failures: int = 0
    """Counted failures of its index before it."""
    index_ignored: int = 0
    """Ignored failures of its index before it."""
    finished_at: float = 0.0
    """When it ended."""
    overdue: bool = False
    """Its engine ended it because of a deadline."""

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self.phase in POD_ENDED

    @property
    def active(self) -> bool:
        """Whether it is pending or running, and not being stopped."""
        return not self.deleting and self.phase not in POD_ENDED


class JobCondition(Struct, frozen=True):
    """One condition of a Job; terminal ones never change."""

    type: str
    status: bool
    reason: str
    message: str
    since: float


class BackoffRecord(Struct, frozen=True):
    """What delays the next pod."""

    failures: int = 0
    """Since the last success; ignored failures too."""
    last_failure_at: float = 0.0


class KubeJobState(Struct, frozen=True):
    """The stored state of a Job."""

    started_at: float | None = None
    """``None`` while suspended; set again on resume, which restarts the deadline."""
    active: int = 0
    ready: int = 0
    terminating: int = 0
    succeeded: int = 0
    failed: int = 0
    ignored: int = 0
    counted: frozenset[str] = frozenset()
    """Pods whose end is counted and that may still be observed."""
    stopped_at_end: frozenset[str] = frozenset()
    """Pods that still ran when the Job's end was decided, and have not ended yet."""
    completed_indexes: frozenset[int] = frozenset()
    failed_indexes: frozenset[int] = frozenset()
    index_failures: Mapping[int, tuple[int, int, float]] = field(default_factory=dict)
    """By index with its own back-off: counted and ignored failures so far, and the time of the last one."""
    conditions: tuple[JobCondition, ...] = ()
    backoff: BackoffRecord = BackoffRecord()
    finished_at: float | None = None

    def condition(self, type_: str) -> JobCondition | None:
        """Return a condition that holds."""
        for candidate in self.conditions:
            if candidate.type == type_ and candidate.status:
                return candidate
        return None

    @property
    def finished(self) -> JobCondition | None:
        """The terminal condition, once there is one."""
        for condition in self.conditions:
            if condition.status and condition.type in {"Failed", "Complete"}:
                return condition
        return None


class StartPod(Struct, frozen=True):
    """One pod to start."""

    index: int | None = None
    index_failures: int = 0
    index_ignored: int = 0


class StopPod(Struct, frozen=True):
    """One pod to stop."""

    name: str


class PodDecision(NamedTuple):
    """The decision about a failed pod."""

    pod: str
    """Its name."""
    decision: Decision


JobResult: TypeAlias = "Result[KubeJobState, StartPod | StopPod, Never, PodDecision]"
