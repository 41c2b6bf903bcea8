"""The program of pods, compiled from their template; ``$(NAME)`` is expanded as in Kubernetes.

A plan is what the pods of some jobs have in common: the program, the Job's rules, and the restart settings of their
set.
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
    """May refer to every variable, including those that each pod is given."""
    is_arguments: bool = False
    """Whether ``command`` has only arguments for the program that the image starts."""
    env: tuple[Variable, ...] = ()
    """In order; the last of several with one name counts."""
    working_dir: str | None = None
    resources: Resources = Resources()
    memory_limit: int = 0
    """In bytes; 0 is no limit."""
    ports: tuple[Port, ...] = ()
    mounts: tuple[Mount, ...] = ()

    def for_pod(self, values: Mapping[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
        """Return the command and environment in a pod with these variables; the container's own take precedence."""
        own: dict[str, str] = {}
        for variable in self.env:
            own[variable.name] = values.get(variable.value, "") if variable.told else _expanded(variable.value, own)
        env = {**values, **own}
        return tuple(map(_expanded, self.command, repeat(env))), env


class Program(ContainerSpec, frozen=True, kw_only=True):
    """A pod: its first main container and everything else. ``resources`` is the request of the whole pod."""

    grace_s: float = DEFAULT_GRACE_S
    deadline_s: float | None = None
    """From the start of each program."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    others: tuple[ContainerSpec, ...] = ()
    """Init containers and sidecars as written, then further main containers."""
    own: Resources | None = None
    """The request of the first main container alone, if there are others."""
    volumes: tuple[Volume, ...] = ()
    devices: Mapping[str, int] = field(default_factory=dict)
    """How many devices other than GPUs the pod requests, by resource name."""
    stall: StallLimits | None = None
    """How long its programs may be silent."""
    warning: EarlyWarning | None = None
    """The warning that they get ahead of their end."""

    @property
    def containers(self) -> tuple[ContainerSpec, ...]:
        """All containers, in the order in which they start."""
        if not self.others:
            return (self,)
        before = [container for container in self.others if container.role is not ContainerRole.MAIN]
        return (*before, self, *(container for container in self.others if container.role is ContainerRole.MAIN))

    @property
    def needs(self) -> frozenset[Capability]:
        """The capabilities an engine must have; most pods can do without images and volumes."""
        roles = {container.role for container in self.others}
        capabilities = {Capability.CONTAINERS} if roles & {ContainerRole.MAIN, ContainerRole.SIDECAR} else set()
        capabilities |= {Capability.INIT_CONTAINERS} if ContainerRole.INIT in roles else set()
        capabilities |= {Capability.DEVICES} if self.devices else set()
        return frozenset(
            capabilities
            | ({Capability.IMAGES} if any(container.is_arguments for container in self.containers) else set())
        )

    def placed(self) -> Iterator[tuple[str, ContainerSpec]]:
        """Yield its containers with the path of each in the pod's manifest."""
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
        """Return the engine with most of the capabilities that it needs, and then of those that it can use."""
        wants = {Capability.IMAGES} if self.image else set()
        wants |= {Capability.VOLUMES} if self.volumes else set()

        def able(engine: EngineInfo) -> tuple[int, int]:
            return len(self.needs & engine.capabilities), len(wants & engine.capabilities)

        return max(engines, key=able)

    def within(self, capabilities: frozenset[Capability]) -> Program:
        """Return it without what needs capabilities other than these."""
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
        """Scale a container's memory limit with the pod's memory request, which a policy has let grow."""
        if request <= self.resources.memory or not self.resources.memory:
            return limit
        return limit * request // self.resources.memory


def _expanded(text: str, env: Mapping[str, str]) -> str:
    """Expand ``$(NAME)``; an unknown name stays as written, and ``$$`` is a dollar sign."""
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
    """Its set's ``maxRestarts``."""
    needs: frozenset[Capability] = frozenset()
    """The capabilities an engine must have to run them."""

    def shape(self, job: Job, record: PodRecord, *, domain: str = "") -> Shape:
        """Return the shape of a pod's next program; ``domain`` is the topology domain of its job."""
        selector = dict(self.program.node_selector)
        if self.topology is not None and domain:
            selector[self.topology] = domain
        labels, avoided = tuple(sorted(selector.items())), record.avoid_devices
        tried, request, near = frozenset(record.avoid_nodes), requested(job, record), record.avoid_node
        return Shape(request, 1, labels, near, self.needs, avoid_devices=avoided, avoid_nodes=tried)

    def current(self, record: KubeJobRecord) -> KubeJobSpec:
        """Return a Job's specification with its set's changes: its size, and whether it is suspended."""
        spec = self.spec
        if spec.suspend is not record.suspended:
            spec = evolve(spec, suspend=record.suspended)
        size = (record.parallelism, record.completions)
        if record.parallelism is not None and size != (spec.parallelism, spec.completions):
            spec = evolve(spec, parallelism=record.parallelism, completions=record.completions)
        return spec


def requested(job: Job, record: PodRecord) -> Resources:
    """Return the request of a pod's next program, including one of its node's pods."""
    return _as_pod(job.request if record.memory is None else evolve(job.request, memory=record.memory))


@lru_cache(maxsize=1024)
def _as_pod(request: Resources) -> Resources:
    return request + ONE_POD
