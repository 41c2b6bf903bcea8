"""The operators of a world: they close nodes and devices, and open them again. Devices fall ill, too, and recover."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Caller
from holdfast.domain.record import evolve
from holdfast.errors import NotFound
from holdfast.service.operations.devices import Devices
from holdfast.service.operations.nodes import Nodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.simulate.chance import Chance
    from tools.simulate.machines.machine import FaultyMachine
    from tools.simulate.scene import Scene

CORDONS_EVERY, FIRST_WITH_CORDONS = 13, 9
"""One seed of this many has nodes cordoned and drained, from this one on."""
_TIMES = (1, 5)
_DRAINED = 0.6
_LONGEST_S = 40.0
OPERATOR = Caller(Principal("operator", roles=(Role.ADMIN,)), 0.0)


class Operators:
    """Everybody who looks after nodes."""

    def __init__(self, scene: Scene, chance: Chance) -> None:
        """Begin without requests.

        Args:
            scene: Where they are.
            chance: Decides what becomes of which node.
        """
        self._scene = scene
        self._chance = chance

    def plan(self, seed: int, until: float) -> None:
        """Put on the agenda what will be done until then, if this world has such people."""
        if seed % CORDONS_EVERY != FIRST_WITH_CORDONS:
            return
        chance, now = self._chance, self._scene.agenda.now()
        for _ in range(chance.randint(*_TIMES)):
            self._scene.agenda.at(chance.moment(now, until), self._scene.willing(self._close))

    def _close(self) -> None:
        """Cordon or drain a node, and let work onto it again later."""
        names = sorted({node.name for node in self._scene.store().nodes()})
        if not names:
            return
        name, drain = self._chance.choice(names), self._chance.happens(_DRAINED)
        self._scene.trace.say(f"asked to {'drain' if drain else 'cordon'} {name}")
        Nodes(self._scene.store(), self._scene.agenda).cordon(OPERATOR, name, "as you like it", drain=drain)
        later = self._scene.willing(partial(self._open, name))
        self._scene.agenda.after(self._chance.moment(1.0, _LONGEST_S), later)

    def _open(self, name: str) -> None:
        self._scene.trace.say(f"asked to uncordon {name}")
        try:
            Nodes(self._scene.store(), self._scene.agenda).uncordon(OPERATOR, name)
        except NotFound as error:
            self._scene.trace.say(str(error))

    def make_peace(self) -> None:
        """Let work onto every node."""
        for name in list(self._scene.store().catalogue().cordons):
            self._scene.store().delete_cordon(name)


class DeviceOperators:
    """Whoever cordons devices; and what makes them fall ill."""

    def __init__(self, scene: Scene, chance: Chance, machines: Sequence[FaultyMachine]) -> None:
        """Begin without requests.

        Args:
            scene: Where they are.
            chance: Decides what becomes of which device.
            machines: Where the devices are.
        """
        self._scene = scene
        self._chance = chance
        self._machines = machines
        self._cordoned: set[str] = set()

    def plan(self, until: float) -> None:
        """Put on the agenda what will become of devices until then."""
        chance, agenda = self._chance, self._scene.agenda
        now = agenda.now()
        for _ in range(chance.randint(*_TIMES)):
            agenda.at(chance.moment(now, until), self._scene.willing(self._cordon))
        for _ in range(chance.randint(*_TIMES)):
            agenda.at(chance.moment(now, until), self._fall_ill)

    def _cordon(self) -> None:
        """Cordon a device, and let it be given away again later."""
        names = [device.id for node in self._scene.store().nodes() for device in node.devices]
        if names:
            name = self._chance.choice(names)
            self._cordoned.add(name)
            self._scene.trace.say(f"asked to cordon {name}")
            Devices(self._scene.store(), self._scene.agenda).cordon(OPERATOR, name, "it is hot")
            later = self._scene.willing(partial(self._uncordon, name))
            self._scene.agenda.after(self._chance.moment(1.0, _LONGEST_S), later)

    def _uncordon(self, name: str) -> None:
        self._scene.trace.say(f"asked to uncordon {name}")
        Devices(self._scene.store(), self._scene.agenda).uncordon(OPERATOR, name)

    def _fall_ill(self) -> None:
        """Have an executor find something wrong with a device, and nothing any more later."""
        well = [
            (machine, node.name, device.id)
            for machine in self._machines
            for node in machine.all_nodes()
            for device in node.devices
            if not device.health
        ]
        if well:
            machine, node, name = self._chance.choice(well)
            self._report(machine, node, name, "Xid 79")
            recovers = partial(self._report, machine, node, name, "")
            self._scene.agenda.after(self._chance.moment(1.0, _LONGEST_S), recovers)

    def _report(self, machine: FaultyMachine, node: str, name: str, health: str) -> None:
        self._scene.trace.say(f"{name} is {health or 'well'}")
        there = next(each for each in machine.all_nodes() if each.name == node)
        devices = tuple(evolve(each, health=health) if each.id == name else each for each in there.devices)
        machine.report(evolve(there, devices=devices))

    def make_peace(self) -> None:
        """Have every device given away again."""
        for name in sorted(self._cordoned):
            self._uncordon(name)
