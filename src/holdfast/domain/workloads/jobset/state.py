"""What is remembered of a job set between two looks at its jobs, how those jobs look, and what is to be done.

Times are seconds since the epoch, UTC.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.policy.model import Considered, LimitUse, SetAction


def backoff_keys(group: str, name: str) -> tuple[str, str, str]:
    """Return the keys a job's back-off may be kept under: its set's, its replicated job's and its own."""
    return "", f"group/{group}", f"job/{name}"


class ChildPhase(StrEnum):
    """The phase of a child job."""

    ACTIVE = "active"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """One child job as last observed."""

    name: str
    group: str
    """Its replicated job; a job without one matches no rule."""
    index: int = 0
    global_index: int = 0
    restart: int = 0
    """The set's restarts when it was created."""
    job_restart: int = 0
    """Its own restarts when it was created."""
    phase: ChildPhase = ChildPhase.ACTIVE
    reason: str = ""
    """Why it failed."""
    message: str = ""
    failed_at: float = 0.0
    certain: bool = False
    """It is certain to fail and its last pods are going (``FailureTarget``)."""
    active_pods: int = 0
    ready_pods: int = 0
    succeeded_pods: int = 0
    suspended: bool = False
    size: tuple[int, int | None] | None = None
    """Its parallelism and completions, where they may differ from the template's."""
    deleting_since: float | None = None
    """When its deletion was ordered; it still exists."""

    @property
    def attempt(self) -> tuple[int, int]:
        """Which attempt at this job it is; each is judged once."""
        return (self.restart, self.job_restart)


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a set; never created with status False, only set to it."""

    type: str
    status: bool
    reason: str
    message: str
    since: float


class Terminal(StrEnum):
    """How a set has ended."""

    NONE = ""
    COMPLETED = "Completed"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """The jobs of one replicated job, counted."""

    name: str
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    active: int = 0
    suspended: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSetState:
    """What is remembered of a set."""

    restarts: int = 0
    """Of the whole set, counted or not."""
    restarts_counted: int = 0
    """Those that used up ``maxRestarts``."""
    job_restarts: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Restarts of single jobs, by replicated job and index; they survive restarts of the set."""
    job_restarts_counted: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    group_restarts: Mapping[str, int] = field(default_factory=dict)
    """Restarts of whole replicated jobs."""
    group_restarts_counted: Mapping[str, int] = field(default_factory=dict)
    rule_restarts: Mapping[str, int] = field(default_factory=dict)
    """Restarts granted by each rule, counted or not."""
    blamed: Mapping[str, int] = field(default_factory=dict)
    """Counted restarts that jobs of each replicated job caused."""
    counted_at: tuple[float, ...] = ()
    """When the counted restarts were, as far back as the policy's window goes."""
    forgiven: int = 0
    """Counted restarts a healthy period has given back."""
    left_failed: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Jobs that ``FailJob`` left failed, with the attempt that was judged."""
    terminal: Terminal = Terminal.NONE
    conditions: tuple[Condition, ...] = ()
    groups: tuple[GroupStatus, ...] = ()
    started_at: float | None = None
    ended_at: float | None = None
    healthy_since: float | None = None
    """Since when all of its jobs have been ready."""
    not_before: Mapping[str, float] = field(default_factory=dict)
    """Back-off: the whole set (``""``), a replicated job or a job is not created before; see ``backoff_keys``."""
    in_place_previous: int | None = None
    in_place_current: int | None = None

    @property
    def counted(self) -> int:
        """All counted restarts, of the set, its replicated jobs and its jobs."""
        jobs = sum(sum(by_index.values()) for by_index in self.job_restarts_counted.values())
        return self.restarts_counted + sum(self.group_restarts_counted.values()) + jobs

    def restarts_of(self, group: str, index: int) -> int:
        """Return a job's restarts apart from its set's: its own and its replicated job's."""
        own = self.job_restarts.get(group)
        return self.group_restarts.get(group, 0) + (own.get(index, 0) if own else 0)

    def condition(self, type_: str) -> Condition | None:
        """Return a condition, whether it holds or not."""
        return next((one for one in self.conditions if one.type == type_), None)

    def holds(self, type_: str) -> bool:
        """Whether a condition holds."""
        found = self.condition(type_)
        return found is not None and found.status


@dataclass(frozen=True, slots=True)
class Event:
    """An event for people to read."""

    type: str
    """``Normal`` or ``Warning``."""
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class CreateJob:
    """Create a job."""

    name: str
    group: str
    index: int
    global_index: int
    restart: int
    job_restart: int
    suspended: bool = False


@dataclass(frozen=True, slots=True)
class DeleteJob:
    """Delete a job and all of its pods; ``force`` waits for none of them."""

    name: str
    force: bool = False


@dataclass(frozen=True, slots=True)
class SuspendJob:
    """Stop a job's pods and keep the job."""

    name: str


@dataclass(frozen=True, slots=True)
class ResumeJob:
    """Let a job's pods start, with the set's current template."""

    name: str
    group: str


@dataclass(frozen=True, slots=True)
class ResizeJob:
    """Give a running job its template's current parallelism and completions."""

    name: str
    parallelism: int
    completions: int | None


@dataclass(frozen=True, slots=True)
class DeleteJobSet:
    """Forget the whole set: its time to live is over."""


Order: TypeAlias = CreateJob | DeleteJob | SuspendJob | ResumeJob | ResizeJob | DeleteJobSet


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDecision:
    """What was decided about one failed job and why."""

    job: str
    attempt: tuple[int, int]
    action: SetAction | None
    """What the rule asked for; ``None`` when there is no failure policy at all."""
    granted: bool
    """Whether it was done; a spent limit fails the set instead."""
    reason: str
    """Of the event or condition, word for word upstream's."""
    message: str
    rule: str | None = None
    rule_index: int | None = None
    """``None``: no rule matched, the default action applies."""
    limits: tuple[LimitUse, ...] = ()
    delay_s: float = 0.0
    considered: tuple[Considered, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one look at a set."""

    state: JobSetState
    orders: tuple[Order, ...] = ()
    events: tuple[Event, ...] = ()
    decisions: tuple[SetDecision, ...] = ()
    wake_at: float | None = None
    """When to look again although nothing happens."""
