"""A world whose nodes have GPUs, and other things with names, which jobs and pods ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.domain.devices import ANY, Device, GpuSelector
from holdfast.domain.policy.model import Action, AntiAffinity, RetryPolicy
from holdfast.domain.record import evolve
from tools.simulate.chance import Chance
from tools.simulate.invariants.devices import DeviceChecks
from tools.simulate.operators import DeviceOperators
from tools.simulate.policies import GIB
from tools.simulate.scene import Scene
from tools.simulate.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.controller.controller import Controller
    from holdfast.domain.job import Amounts
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.ports.engine import NodeInfo
    from holdfast.ports.store import Changes, Store
    from tools.simulate.machines.programs import Program

DEVICES_EVERY, FIRST_WITH_DEVICES = 7, 3
"""One seed of this many has devices, from this one on."""
_MODELS = (("NVIDIA A100-SXM4-40GB", 40 * GIB), ("NVIDIA L4", 24 * GIB))
_SICK = 0.1
_AVOIDS = 0.4
_ELSEWHERE = RetryPolicy("inline", retry_limit=6, default_action=Action.RETRY, anti_affinity=AntiAffinity.DEVICE)
_FEW = 2
_SELECTORS = (*(ANY,) * 4, GpuSelector("a100*"), GpuSelector(memory=20 * GIB))
_AMOUNTS = ((1, 0), (1, 0), (2, 0), (0, 250), (0, 500), (0, 700))
"""Whole ones, and thousandths of one."""
_LICENCE, _SCRATCH = "licence/matlab", "scratch"
_HAS: Amounts = ((_LICENCE, 2000),)
"""What the whole cluster has: enough for any gang."""


class DeviceWorld(World):
    """A world in which GPUs and named resources are handed out."""

    def __init__(self, seed: int, open_store: Callable[[], Store]) -> None:
        """Build a world from its seed."""
        super().__init__(seed, open_store)
        self._wishes = Chance(f"{seed}/devices")
        self._avoids = Chance(f"{seed}/avoids")
        scene = Scene(lambda: self._store, self.agenda, self.trace, self.people.willing)
        self._device_operators = DeviceOperators(scene, Chance(f"{seed}/device operators"), self.machines)
        nodes = {(machine.name, node.name): node for machine in self.machines for node in machine.all_nodes()}
        self.devices = DeviceChecks(self.record, self.programs, nodes, dict(_HAS))
        self._truth.cluster = self._end.cluster = dict(_HAS)
        self.people.resources = _HAS
        self.people.asks = self._also_ask
        self._set_people.asks = self._also_pods_ask

    def _node(self, name: str) -> NodeInfo:
        node, chance = super()._node(name), Chance(f"{self.seed}/devices/{name}")
        count = chance.choice((0, 1, 2, 4))
        devices = tuple(self._device(chance, f"GPU-{name}-{index}", index) for index in range(count))
        has = ((_SCRATCH, chance.choice((1000, 3000))),) if chance.happens(0.7) else ()
        capacity = evolve(node.capacity, gpu=len(devices), named=(*node.capacity.named, *has))
        return evolve(node, capacity=capacity, devices=devices)

    @staticmethod
    def _device(chance: Chance, name: str, index: int) -> Device:
        model, memory = chance.choice(_MODELS)
        return Device(name, index, model, memory, "nvidia", "fan is broken" if chance.happens(_SICK) else "")

    def _also_ask(self, spec: JobSpec) -> JobSpec:
        wishes, asked = self._wishes, spec.resources
        if wishes.happens(0.7):
            gpu, share_m = wishes.choice(_AMOUNTS)
            spec = evolve(spec, gpus=wishes.choice(_SELECTORS))
            asked = evolve(asked, gpu=gpu, share_m=share_m)
        names = [(_LICENCE, 500 if spec.gang > _FEW else 1000), (_SCRATCH, 1000)]
        named = tuple(name for name in names if wishes.happens(0.3))
        return evolve(self._avoiding(spec), resources=evolve(asked, named=named))

    def _avoiding(self, spec: JobSpec) -> JobSpec:
        """Have some jobs keep away from the devices on which they failed, and retry for long enough."""
        if not self._avoids.happens(_AVOIDS):
            return spec
        return evolve(spec, gang=1, retry_policies=(), inline_policies=(_ELSEWHERE,))

    def _also_pods_ask(self, document: dict[str, Any]) -> None:
        spec = document["spec"]
        for job in spec.get("jobs", ()):
            if self._wishes.happens(0.6):
                job["resources"] |= {"gpu": self._wishes.choice((1, 1, 2))}
        templates = [group["template"]["spec"]["template"] for group in spec.get("replicatedJobs", ())]
        for template in [*templates, *([spec["template"]] if "template" in spec else [])]:
            if self._wishes.happens(0.6):
                resources = template["spec"]["containers"][0]["resources"]
                resources["requests"] = {**resources.get("requests", {}), "nvidia.com/gpu": 1}

    def _ask_for_work(self, until: float) -> None:
        super()._ask_for_work(until)
        self._device_operators.plan(until)

    def _make_peace(self) -> None:
        self._device_operators.make_peace()
        super()._make_peace()

    def _committed(self, changes: Changes) -> None:
        super()._committed(changes)
        self.devices.check(changes)

    def _program_started(self, program: Program) -> None:
        super()._program_started(program)
        self.devices.started(program)

    def _ticked(self, controller: Controller) -> None:
        super()._ticked(controller)
        self.devices.ticked(controller.state)
        self.devices.placed(controller.state, self._catalogue)
