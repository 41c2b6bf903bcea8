"""What the pods of a job run, compiled from their template; ``$(NAME)`` is expanded as Kubernetes does.

A plan is what the pods of some jobs have in common: besides the program, the Job's rules, and what their set says about
restarts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import repeat
from typing import TYPE_CHECKING, Any

from holdfast.domain.containers import Capability, ContainerRole, Mount, Port, Volume
from holdfast.domain.job import Resources
from holdfast.domain.placement.fit import Shape
from holdfast.domain.record import Struct, evolve, field
from holdfast.domain.terms.resources import ONE_POD
from holdfast.domain.workloads.watching import EarlyWarning, StallLimits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.domain.containers import EngineInfo
    from holdfast.domain.job import Job
    from holdfast.domain.workloads.kubejob.model import KubeJobSpec
    from holdfast.domain.workloads.kubejob.records import KubeJobRecord, PodRecord

DEFAULT_GRACE_S = 30.0
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")


class Variable(Struct, frozen=True):
    """One variable of a program's environment."""

    name: str
    value: str
    """May refer to variables before it."""
    told: bool = False
    """Whether ``value`` names a variable each pod is given about itself, instead of being text."""


class ContainerSpec(Struct, frozen=True, kw_only=True):
    """One container of a pod."""

    container: str = "main"
    """Its name."""
    role: ContainerRole = ContainerRole.MAIN
    image: str = ""
    command: tuple[str, ...] = ()
    """May refer to every variable, and to those each pod is given."""
    is_arguments: bool = False
    """Whether ``command`` has only arguments, for the program its image starts."""
    env: tuple[Variable, ...] = ()
    """In order; the last of equal names counts."""
    working_dir: str | None = None
    resources: Resources = Resources()
    memory_limit: int = 0
    """Bytes it is ended above; 0 is no limit."""
    ports: tuple[Port, ...] = ()
    mounts: tuple[Mount, ...] = ()

    def for_pod(self, values: Mapping[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
        """Return command and environment in a pod given these variables; its own win."""
        own: dict[str, str] = {}
        for variable in self.env:
            own[variable.name] = values.get(variable.value, "") if variable.told else _expanded(variable.value, own)
        env = {**values, **own}
        return tuple(map(_expanded, self.command, repeat(env))), env


class Program(ContainerSpec, frozen=True, kw_only=True):
    """A pod: its first main container, and everything beside it. ``resources`` is what the pod requests."""

    grace_s: float = DEFAULT_GRACE_S
    deadline_s: float | None = None
    """From the start of each program."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    others: tuple[ContainerSpec, ...] = ()
    """Init containers and sidecars as they are written, then further main ones."""
    own: Resources | None = None
    """What the first main container alone asks for, where there are others."""
    volumes: tuple[Volume, ...] = ()
    devices: Mapping[str, int] = field(default_factory=dict)
    """How many of each the pod asks for, by the name of the resource, beside GPUs."""
    stall: StallLimits | None = None
    """How long its programs may be silent."""
    warning: EarlyWarning | None = None
    """Which warning they get ahead of their end."""

    @property
    def containers(self) -> tuple[ContainerSpec, ...]:
        """Every container, in the order they are started."""
        if not self.others:
            return (self,)
        before = [container for container in self.others if container.role is not ContainerRole.MAIN]
        return (*before, self, *(container for container in self.others if container.role is ContainerRole.MAIN))

    @property
    def needs(self) -> frozenset[Capability]:
        """What an engine must be capable of to run it; without images and volumes most pods can do."""
        roles = {container.role for container in self.others}
        capabilities = {Capability.CONTAINERS} if roles & {ContainerRole.MAIN, ContainerRole.SIDECAR} else set()
        capabilities |= {Capability.INIT_CONTAINERS} if ContainerRole.INIT in roles else set()
        capabilities |= {Capability.DEVICES} if self.devices else set()
        return frozenset(
            capabilities
            | ({Capability.IMAGES} if any(container.is_arguments for container in self.containers) else set())
        )

    def placed(self) -> Iterator[tuple[str, ContainerSpec]]:
        """Go through its containers with where each is in the pod's manifest."""
        yield "containers[0]", self
        inits = mains = 0
        for container in self.others:
            if container.role is ContainerRole.MAIN:
                mains += 1
                yield f"containers[{mains}]", container
            else:
                yield f"initContainers[{inits}]", container
                inits += 1

    def closest(self, engines: Sequence[EngineInfo]) -> EngineInfo:
        """Return the engine that can do most of what it needs, and then of what it has."""
        wants = {Capability.IMAGES} if self.image else set()
        wants |= {Capability.VOLUMES} if self.volumes else set()

        def able(engine: EngineInfo) -> tuple[int, int]:
            return len(self.needs & engine.capabilities), len(wants & engine.capabilities)

        return max(engines, key=able)

    def within(self, capabilities: frozenset[Capability]) -> Program:
        """Return it without what it needs and an engine of these capabilities does not have."""
        lacking = self.needs - capabilities
        if not lacking:
            return self
        without = {ContainerRole.INIT} if Capability.INIT_CONTAINERS in lacking else set()
        without |= {ContainerRole.MAIN, ContainerRole.SIDECAR} if Capability.CONTAINERS in lacking else set()
        others = tuple(container for container in self.others if container.role not in without)
        if Capability.IMAGES in lacking:
            others = tuple(evolve(container, is_arguments=False) for container in others)
        return evolve(
            self,
            is_arguments=self.is_arguments and Capability.IMAGES not in lacking,
            others=others,
            resources=self.resources if others or self.own is None else self.own,
            own=self.own if others else None,
            devices={} if Capability.DEVICES in lacking else self.devices,
        )

    def shown_env(self) -> dict[str, str]:
        """Return its environment as written, for people."""
        return {variable.name: f"$({variable.value})" if variable.told else variable.value for variable in self.env}

    def grown(self, limit: int, request: int) -> int:
        """Return a memory limit of one of its containers, once a policy lets the memory the pod asks for grow."""
        if request <= self.resources.memory or not self.resources.memory:
            return limit
        return limit * request // self.resources.memory


def _expanded(text: str, env: Mapping[str, str]) -> str:
    """Replace ``$(NAME)``: an unknown name stays as written, ``$$`` is a dollar."""
    if "$" not in text:
        return text

    def value(match: re.Match[str]) -> str:
        name = match[1]
        return "$" if name is None else env.get(name, match[0])

    return _REFERENCE.sub(value, text)


class PodPlan(Struct, frozen=True):
    """What the pods of some jobs have in common."""

    spec: KubeJobSpec
    program: Program
    policies: tuple[str, ...] = ()
    """Named policies that may restart a failed pod before its job sees the failure."""
    topology: str | None = None
    template: Mapping[str, Any] | None = None
    """The pod template as written."""
    in_place: bool = False
    """Whether its set restarts programs in place."""
    max_restarts: int = 0
    """Of its set."""
    needs: frozenset[Capability] = frozenset()
    """What an engine must be capable of to run them."""

    def shape(self, job: Job, record: PodRecord, *, domain: str = "") -> Shape:
        """Return the shape of a pod's next program; ``domain`` is the one its job has to itself."""
        selector = dict(self.program.node_selector)
        if self.topology is not None and domain:
            selector[self.topology] = domain
        labels, avoided = tuple(sorted(selector.items())), record.avoid_devices
        tried, request, near = frozenset(record.avoid_nodes), requested(job, record), record.avoid_node
        return Shape(request, 1, labels, near, self.needs, avoid_devices=avoided, avoid_nodes=tried)

    def current(self, record: KubeJobRecord) -> KubeJobSpec:
        """Return a Job's rules with its set's changes: its size, and whether it is suspended."""
        spec = self.spec
        if spec.suspend is not record.suspended:
            spec = evolve(spec, suspend=record.suspended)
        size = (record.parallelism, record.completions)
        if record.parallelism is not None and size != (spec.parallelism, spec.completions):
            spec = evolve(spec, parallelism=record.parallelism, completions=record.completions)
        return spec


def requested(job: Job, record: PodRecord) -> Resources:
    """Return what a pod's next program asks for, and that it is one of its node's pods."""
    return _as_pod(job.request if record.memory is None else evolve(job.request, memory=record.memory))


@lru_cache(maxsize=1024)
def _as_pod(request: Resources) -> Resources:
    return request + ONE_POD
