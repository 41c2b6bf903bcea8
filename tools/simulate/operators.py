"""The operators of a world: they close nodes and devices, and take the places of jobs. Devices fall ill, too."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Caller
from holdfast.domain.job import JobState
from holdfast.domain.record import evolve
from holdfast.errors import NotFound
from holdfast.ports.requests import Request, RequestKind
from holdfast.service.operations.devices import DeviceOperations
from holdfast.service.operations.nodes import Nodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.simulate.chance import Chance
    from tools.simulate.invariants.record import Record
    from tools.simulate.machines.machine import FaultyMachine
    from tools.simulate.scene import Scene

CORDONS_EVERY, FIRST_WITH_CORDONS = 13, 9
"""One seed of this many has nodes cordoned and drained, from this one on."""
PREEMPTIONS_EVERY, FIRST_WITH_PREEMPTIONS = 9, 5
"""One seed of this many has people who take the places of jobs and of all on a node, and change whose turn it is."""
_TIMES = (1, 5)
_ASKED = (3, 12)
_DRAINED = 0.6
_RUNNING = 0.8
_LONGEST_S = 40.0
OPERATOR = Caller(Principal("operator", roles=(Role.ADMIN,)), 0.0)


class Operators:
    """Everybody who looks after nodes."""

    def __init__(self, scene: Scene, chance: Chance, record: Record) -> None:
        """Begin without requests.

        Args:
            scene: Where they are.
            chance: Decides what becomes of which node.
            record: Knows the jobs, and is told whose places were asked for.
        """
        self._scene = scene
        self._chance = chance
        self._record = record

    def plan(self, seed: int, until: float) -> None:
        """Put on the agenda what will be done until then, if this world has such people."""
        chance, now = self._chance, self._scene.agenda.now()
        if seed % PREEMPTIONS_EVERY == FIRST_WITH_PREEMPTIONS:
            for _ in range(chance.randint(*_ASKED)):
                act = chance.choice((self._preempt, self._preempt_node, self._reprioritize))
                self._scene.agenda.at(chance.moment(now, until), self._scene.willing(act))
        if seed % CORDONS_EVERY != FIRST_WITH_CORDONS:
            return
        for _ in range(chance.randint(*_TIMES)):
            self._scene.agenda.at(chance.moment(now, until), self._scene.willing(self._close))

    def _preempt(self) -> None:
        """Take the place of a job, mostly of one that runs."""
        running = [job.id for job in self._record.jobs.values() if job.state is JobState.RUNNING]
        known = running if running and self._chance.happens(_RUNNING) else list(self._record.jobs)
        if known:
            self._ask(RequestKind.PREEMPT, [self._chance.choice(known)])

    def _preempt_node(self) -> None:
        """Take the places of all that runs on a node."""
        live = [run for runs in self._record.live_runs.values() for run in runs.values() if run.node]
        if live:
            node = self._chance.choice(sorted({run.node for run in live}))
            self._ask(RequestKind.PREEMPT, sorted({run.job_id for run in live if run.node == node}), node)

    def _reprioritize(self) -> None:
        if self._record.jobs:
            priority = str(self._chance.randint(-5, 5))
            self._ask(RequestKind.REPRIORITIZE, [self._chance.choice(list(self._record.jobs))], priority)

    def _ask(self, kind: RequestKind, targets: Sequence[str], payload: str = "") -> None:
        if kind is RequestKind.PREEMPT:
            self._record.places_asked.update(targets)
        self._scene.trace.say(f"asked to {kind} {', '.join(targets)} {payload}".rstrip())
        asked = Request(kind, tuple(targets), self._scene.agenda.now(), actor="operator", payload=payload)
        self._scene.store().append(asked)

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
            DeviceOperations(self._scene.store(), self._scene.agenda).cordon(OPERATOR, name, "it is hot")
            later = self._scene.willing(partial(self._uncordon, name))
            self._scene.agenda.after(self._chance.moment(1.0, _LONGEST_S), later)

    def _uncordon(self, name: str) -> None:
        self._scene.trace.say(f"asked to uncordon {name}")
        DeviceOperations(self._scene.store(), self._scene.agenda).uncordon(OPERATOR, name)

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
