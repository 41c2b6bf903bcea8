"""The engine port: what starts, signals and observes runs for an executor.

An engine keeps a finished run's result until told to forget it, across its own restart too if it can.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from holdfast.domain.resources import Resources
from holdfast.domain.workloads.spec import DEFAULT_GRACE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.domain.failure import RunOutcome


@dataclass(frozen=True, slots=True)
class RunOrder:
    """Everything an engine needs to start one run; uids are fresh per dispatch."""

    uid: str
    job_id: str
    job_name: str
    attempt: int
    """From 1."""
    rank: int
    size: int
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    working_dir: str | None = None
    resources: Resources = Resources()
    memory_limit: int | None = None
    """Bytes above which it is killed, 0 for no limit; ``None`` is what it requests."""
    node: str = ""
    deadline_s: float | None = None
    """From the start of the program; the engine enforces it and reports ``DeadlineExceeded``."""
    grace_s: float = DEFAULT_GRACE_S
    ports: tuple[str, ...] = ()


class RunPhase(StrEnum):
    """How far a run is, as its engine sees it."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class Observation:
    """One run as its engine sees it now."""

    uid: str
    phase: RunPhase
    started_at: float | None = None
    outcome: RunOutcome | None = None
    """Set exactly when ``phase`` is finished."""
    progress: str = ""


class StopReason(StrEnum):
    """Why the controller wants a run stopped; becomes ``RunOutcome.ended_by`` unless it ended by itself first."""

    USER = "user"
    CASCADE = "cascade"
    PREEMPTION = "preemption"
    LOST = "lost"
    """The controller does not know this run any more."""
    DEADLINE = "deadline"
    """The job's total deadline is over."""


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A place with capacity inside an engine."""

    name: str
    capacity: Resources
    labels: Mapping[str, str] = field(default_factory=dict)


class Engine(Protocol):
    """Runs things. Every method is quick and idempotent; nothing blocks on a run."""

    def nodes(self) -> Sequence[NodeInfo]:
        """List the places and their whole capacity."""
        ...

    def start(self, orders: Sequence[RunOrder]) -> None:
        """Begin to start runs; an order whose uid is known already is ignored.

        A run that cannot be started is observed as finished with ``LaunchFailed``; it never raises.
        """
        ...

    def stop(self, stops: Sequence[tuple[str, float, StopReason]]) -> None:
        """Stop runs by ``(uid, grace_s, reason)``: SIGTERM, then SIGKILL after the grace; unknown uids are ignored."""
        ...

    def observe(self) -> Mapping[str, Observation]:
        """Return every run not yet forgotten, by uid, without waiting.

        The mapping and its values are snapshots; an unchanged run is the same object as last time.
        """
        ...

    def forget(self, uids: Sequence[str]) -> None:
        """Drop finished runs whose results are safe with the controller; unknown or unfinished ones are ignored."""
        ...

    def on_change(self, wake: Callable[[], None]) -> None:
        """Register a hint to call, from any thread, when ``observe`` would show something new."""
        ...

    def trouble(self) -> str | None:
        """Say what keeps the engine from working now, if anything; quick, and from any thread."""
        ...

    def close(self) -> None:
        """Detach without touching the runs; closing twice is fine."""
        ...
