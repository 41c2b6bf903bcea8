"""The engine port: what starts, signals and observes runs for an executor.

An engine keeps a finished run's result until told to forget it, across its own restart too if it can. It says what it
is capable of, and is never given a run that needs more; where it has no images or volumes, they count for nothing.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.domain.containers import ContainerRole, EngineInfo, Mount, Port, Volume
from holdfast.domain.devices import Device  # noqa: TC001 - the codec of messages looks it up
from holdfast.domain.job import Resources
from holdfast.domain.record import Struct, field
from holdfast.domain.workloads.preparing import Input, Preparation  # noqa: TC001 - the codec of the exchange looks it up
from holdfast.domain.workloads.spec import DEFAULT_GRACE_S
from holdfast.domain.workloads.watching import EarlyWarning, StallLimits  # noqa: TC001 - the codec of the exchange looks it up

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.domain.failure import RunOutcome
    from holdfast.domain.placement.pressure import Pressure


class Container(Struct, frozen=True, kw_only=True):
    """One program of a run."""

    name: str = "main"
    role: ContainerRole = ContainerRole.MAIN
    image: str = ""
    command: tuple[str, ...] = ()
    is_arguments: bool = False
    """Whether ``command`` has only arguments, for the program its image starts."""
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    """Variables whose values the engine looks up, by these names."""
    working_dir: str | None = None
    resources: Resources = Resources()
    """What it alone asks for."""
    memory_limit: int | None = None
    """Bytes above which it is killed, 0 for no limit; ``None`` is what it requests."""
    ports: tuple[Port, ...] = ()
    mounts: tuple[Mount, ...] = ()


class RunOrder(Struct, frozen=True):
    """Everything an engine needs to start one run; uids are fresh per dispatch."""

    uid: str
    job_id: str
    job_name: str
    attempt: int
    """From 1."""
    rank: int
    size: int
    containers: tuple[Container, ...]
    """In the order they are started: init containers, sidecars, main ones. At least one is a main one."""
    resources: Resources = Resources()
    """Of the whole run; what its place is charged with."""
    node: str = ""
    deadline_s: float | None = None
    """From the start of its first program; the engine enforces it and reports ``DeadlineExceeded``."""
    grace_s: float = DEFAULT_GRACE_S
    stall: StallLimits | None = None
    """How long it may be silent; the engine enforces it and reports ``Stalled``."""
    warning: EarlyWarning | None = None
    """Which warning it gets ahead of its deadline, and before it is stopped for one of the reasons in ``LEADING``."""
    checkpointed_exit_code: int | None = None
    """The code by which it says that it has saved what it has."""
    inputs: tuple[Input, ...] = ()
    """What it finds in its work directory; what cannot be put there is a launch that failed."""
    preparation: Preparation | None = None
    """What is run before its program, in its place; what fails there is a launch that failed, and its deadline counts
    from the program's own start."""
    keeps_work: bool = True
    """Whether its work directory stays once it has ended; where not, it is removed soon after."""
    identity: bool = False
    """Whether its program is told where the server is, with a token of its own, which the engine looks up."""
    ports: tuple[str, ...] = ()
    """Names of ports that get a free number on the node."""
    volumes: tuple[Volume, ...] = ()
    devices: Mapping[str, int] = field(default_factory=dict)
    """How many of each, by the name of the resource, beside GPUs."""
    gpus: tuple[str, ...] = ()
    """Ids of the GPUs it is given; it sees no others of its node's ``NodeInfo.devices``."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    """Labels a node must have, for an engine that places runs itself; others get a ``node`` that has them."""
    avoid_node: str | None = None
    """The node to stay away from, likewise, unless there is no other."""
    avoid_nodes: tuple[str, ...] = ()
    """Nodes that will not do, likewise, whatever else there is."""
    separate_logs: bool = False
    """Whether stdout and stderr are kept apart, by an engine that can; others keep them in one log."""
    queue: str = ""
    """Where its job waited; secrets may be that queue's."""
    submitted_by: str = ""
    """Whose it is, for an engine that runs programs as their submitters."""
    submitter_uid: int | None = None
    """The number of that one's Unix account, if there was one."""
    checkpoints_of: tuple[str, ...] = ()
    """Ids of jobs that have ended. Where its own job has no checkpoint folder yet, the first of them that has one
    leaves it to that; an engine without such folders does nothing."""
    template: Mapping[str, Any] | None = None
    """The pod template as written, where there is one, for engines that run pods."""

    @property
    def main(self) -> Container:
        """Its first main container."""
        return next(container for container in self.containers if container.role is ContainerRole.MAIN)


class RunPhase(StrEnum):
    """How far a run is, as its engine sees it."""

    PREPARING = "preparing"
    PULLING = "pulling"
    """Its images are being fetched."""
    PREPARED = "prepared"
    """Waits to be started."""
    STARTING = "starting"
    """From being told to start until all its main containers run."""
    RUNNING = "running"
    STOPPING = "stopping"
    FINISHED = "finished"


class Observation(Struct, frozen=True):
    """One run as its engine sees it now."""

    uid: str
    phase: RunPhase
    started_at: float | None = None
    """When the first of its programs started."""
    outcome: RunOutcome | None = None
    """Set exactly when ``phase`` is finished; has a result for each container that ended, but sidecars."""
    progress: str = ""
    node: str = ""
    """Where it landed, if the engine chose."""
    ready: bool = False
    """Whether all of its main containers serve; for an engine that does not probe them, whether they run."""
    addresses: tuple[str, ...] = ()
    """Where it can be reached on its ports."""
    ports: tuple[int, ...] = ()
    """The numbers of the ports that its order names, in that order; none once it is over."""


class StopReason(StrEnum):
    """Why the controller wants a run stopped; becomes ``RunOutcome.ended_by`` unless it ended by itself first."""

    USER = "user"
    CASCADE = "cascade"
    PREEMPTION = "preemption"
    SUSPENSION = "suspension"
    """A user holds the job, or suspends what it is part of."""
    DRAIN = "drain"
    """Its node is being drained."""
    EVICTION = "eviction"
    """Its machine runs out of memory or disk."""
    LOST = "lost"
    """The controller does not know this run any more."""
    DEADLINE = "deadline"
    """The job's total deadline is over."""


LEADING = frozenset({StopReason.PREEMPTION, StopReason.SUSPENSION, StopReason.DRAIN})
"""Reasons that leave a run the time its order asks for, from its warning until SIGTERM."""


class NodeInfo(Struct, frozen=True):
    """A place with capacity inside an engine."""

    name: str
    capacity: Resources
    labels: Mapping[str, str] = field(default_factory=dict)
    devices: tuple[Device, ...] = ()
    """Its GPUs, if the engine can give each run its own; the capacity counts all of them."""


class Engine(Protocol):
    """Runs things. Every method is quick and idempotent; nothing blocks on a run."""

    def info(self) -> EngineInfo:
        """Say what kind of engine it is and what it can do; never changes."""

    def nodes(self) -> Sequence[NodeInfo]:
        """List the places and their whole capacity; an engine that places runs itself has one."""

    def pressure(self) -> Pressure | None:
        """Say what its machine runs out of, as last looked at; ``None`` if of nothing, or if nobody looks."""

    def prepare(self, orders: Sequence[RunOrder]) -> None:
        """Begin to prepare runs, which are started later; known uids are ignored.

        Only engines with ``Capability.PREPARING`` are asked. A run that cannot be prepared is observed as finished.
        """

    def start(self, orders: Sequence[RunOrder]) -> None:
        """Begin to start runs; an order whose uid was started already is ignored.

        What was not prepared is prepared first, by an engine that does that at all.

        A run that cannot be started is observed as finished with ``LaunchFailed``; it never raises.
        """

    def stop(self, stops: Sequence[tuple[str, float, StopReason]]) -> None:
        """Stop runs by ``(uid, grace_s, reason)``: SIGTERM, then SIGKILL after the grace; unknown uids are ignored."""

    def observe(self) -> Mapping[str, Observation]:
        """Return every run not yet forgotten, by uid, without waiting.

        The mapping and its values are snapshots; an unchanged run is the same object as last time.
        """

    def forget(self, uids: Sequence[str]) -> None:
        """Drop finished runs whose results are safe with the controller; unknown or unfinished ones are ignored."""

    def on_change(self, wake: Callable[[], None]) -> None:
        """Register a hint to call, from any thread, when ``observe`` would show something new."""

    def trouble(self) -> str | None:
        """Say what keeps the engine from working now, if anything; quick, and from any thread."""

    def close(self) -> None:
        """Detach without touching the runs; closing twice is fine."""
