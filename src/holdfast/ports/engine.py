"""The engine port: starts, signals and observes runs for an executor.

An engine keeps a finished run's result until told to forget it, if possible even across its own restart. It declares
its capabilities and never gets a run that needs more; an engine without images or volumes ignores them.
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
    """Whether ``command`` has only arguments for the program that its image starts."""
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    """Variables whose values the engine looks up, by secret names."""
    working_dir: str | None = None
    resources: Resources = Resources()
    """The container's own request."""
    memory_limit: int | None = None
    """Bytes above which it is killed, 0 for no limit; ``None`` for its request."""
    ports: tuple[Port, ...] = ()
    mounts: tuple[Mount, ...] = ()


class RunOrder(Struct, frozen=True):
    """Everything an engine needs to start one run; each dispatch has a new uid."""

    uid: str
    job_id: str
    job_name: str
    attempt: int
    """The attempt, from 1."""
    rank: int
    size: int
    containers: tuple[Container, ...]
    """In the order of their start: init containers, sidecars, main containers. There is at least one main container."""
    resources: Resources = Resources()
    """The request of the whole run, which its place is charged with."""
    node: str = ""
    deadline_s: float | None = None
    """Seconds from the start of its first program; the engine enforces it and reports ``DeadlineExceeded``."""
    grace_s: float = DEFAULT_GRACE_S
    stall: StallLimits | None = None
    """How long it may be silent; the engine enforces it and reports ``Stalled``."""
    warning: EarlyWarning | None = None
    """The warning ahead of its deadline, and of a stop for a reason in ``LEADING``."""
    checkpointed_exit_code: int | None = None
    """The exit code that means it has saved its state."""
    inputs: tuple[Input, ...] = ()
    """The content of its work directory; if that cannot be created, the launch has failed."""
    preparation: Preparation | None = None
    """A program to run before its own, in its place; if that fails, the launch has failed. The deadline counts from the
    start of its own program.
    """
    keeps_work: bool = True
    """Whether its work directory is kept after its end; otherwise it is deleted soon after."""
    identity: bool = False
    """Whether its program gets the server's address and a token of its own, which the engine looks up."""
    ports: tuple[str, ...] = ()
    """Names of ports; each gets a free port number of the node."""
    volumes: tuple[Volume, ...] = ()
    devices: Mapping[str, int] = field(default_factory=dict)
    """Amounts of named resources, besides GPUs."""
    gpus: tuple[str, ...] = ()
    """Ids of its GPUs; it sees no others of its node's ``NodeInfo.devices``."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    """Required node labels, for an engine that places runs itself; other engines get a matching ``node``."""
    avoid_node: str | None = None
    """The node to avoid, likewise, unless there is no other."""
    avoid_nodes: tuple[str, ...] = ()
    """Nodes that are excluded, likewise."""
    separate_logs: bool = False
    """Whether to keep stdout and stderr apart; an engine that cannot keeps them in one log."""
    queue: str = ""
    """The queue of its job; secrets may belong to it."""
    submitted_by: str = ""
    """The job's owner, for an engine that runs programs as their submitters."""
    submitter_uid: int | None = None
    """The uid of the owner's Unix account, if there is one."""
    checkpoints_of: tuple[str, ...] = ()
    """Ids of ended jobs. If its own job has no checkpoint folder yet, it takes over that of the first of them that has
    one; an engine without such folders ignores this.
    """
    template: Mapping[str, Any] | None = None
    """The pod template as written, if there is one, for engines that run pods."""

    @property
    def main(self) -> Container:
        """Its first main container."""
        return next(container for container in self.containers if container.role is ContainerRole.MAIN)


class RunPhase(StrEnum):
    """The phase of a run, as its engine sees it."""

    PREPARING = "preparing"
    PULLING = "pulling"
    """Its images are being fetched."""
    PREPARED = "prepared"
    """It waits to be started."""
    STARTING = "starting"
    """It was told to start, and not all its main containers run yet."""
    RUNNING = "running"
    STOPPING = "stopping"
    FINISHED = "finished"


class Observation(Struct, frozen=True):
    """One run, as its engine sees it now."""

    uid: str
    phase: RunPhase
    started_at: float | None = None
    """When the first of its programs started."""
    outcome: RunOutcome | None = None
    """Set exactly if ``phase`` is finished; has a result for each ended container except sidecars."""
    progress: str = ""
    node: str = ""
    """The node, if the engine chose it."""
    ready: bool = False
    """Whether all its main containers are ready; without probes, whether they run."""
    addresses: tuple[str, ...] = ()
    """The host of its ports."""
    ports: tuple[int, ...] = ()
    """The numbers of its order's ports, in that order; empty once it is over."""


class StopReason(StrEnum):
    """Why the controller stops a run; becomes ``RunOutcome.ended_by`` unless the run ended by itself first."""

    USER = "user"
    CASCADE = "cascade"
    PREEMPTION = "preemption"
    SUSPENSION = "suspension"
    """A user holds the job, or suspends its owner."""
    DRAIN = "drain"
    """Its node is being drained."""
    EVICTION = "eviction"
    """Its machine is short of memory or disk."""
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
    """Its GPUs, if the engine can assign them to runs; the capacity counts all of them."""


class Engine(Protocol):
    """Runs programs. Every method is quick and idempotent; nothing waits for a run."""

    def info(self) -> EngineInfo:
        """Return the engine's kind and capabilities; never changes."""

    def nodes(self) -> Sequence[NodeInfo]:
        """List the places with their whole capacity; an engine that places runs itself has one."""

    def pressure(self) -> Pressure | None:
        """Return the pressure on its machine as last observed; ``None`` if there is none or nobody looks."""

    def prepare(self, orders: Sequence[RunOrder]) -> None:
        """Begin to prepare runs that are started later; known uids are ignored.

        Only engines with ``Capability.PREPARING`` are asked. A run that cannot be prepared is observed as finished.
        """

    def start(self, orders: Sequence[RunOrder]) -> None:
        """Begin to start runs; known uids are ignored.

        An engine that prepares runs does so first if needed. A run that cannot be started is observed as finished with
        ``LaunchFailed``; this never raises.
        """

    def stop(self, stops: Sequence[tuple[str, float, StopReason]]) -> None:
        """Stop runs by ``(uid, grace_s, reason)``: SIGTERM, then SIGKILL after the grace; unknown uids are ignored."""

    def observe(self) -> Mapping[str, Observation]:
        """Return every run that was not forgotten yet, by uid, without waiting.

        The mapping and its values are snapshots; an unchanged run is the same object as last time.
        """

    def forget(self, uids: Sequence[str]) -> None:
        """Drop finished runs whose results the controller has stored; unknown or unfinished ones are ignored."""

    def on_change(self, wake: Callable[[], None]) -> None:
        """Register a callback for when ``observe`` would return something new; it is called from any thread."""

    def trouble(self) -> str | None:
        """Say what keeps the engine from working now, if anything; quick, and from any thread."""

    def close(self) -> None:
        """Detach without touching the runs; closing twice is fine."""
