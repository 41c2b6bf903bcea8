"""Checks which devices programs really have, and that the controller's books of them add up."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from holdfast.compiled.codec import load_spec
from holdfast.domain.devices import ANY, WHOLE_M
from holdfast.domain.events.operators import DeviceCordoned, DeviceUncordoned
from holdfast.domain.lifecycle import RUN_TERMINAL
from holdfast.domain.placement.fit import Shape, on_nodes
from tools.simulate.promises import refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.controller.state import ControllerState
    from holdfast.domain.devices import Device
    from holdfast.domain.job import Run
    from holdfast.domain.placement.fit import PlaceKey
    from holdfast.ports.catalogue import Catalogue
    from holdfast.ports.engine import NodeInfo, RunOrder
    from holdfast.ports.store import Changes
    from tools.simulate.invariants.record import Record
    from tools.simulate.machines.programs import Program, Programs


class DeviceChecks:
    """What must hold where GPUs and named resources are handed out."""

    def __init__(
        self, record: Record, programs: Programs, nodes: Mapping[PlaceKey, NodeInfo], cluster: Mapping[str, int]
    ) -> None:
        """Remember what was committed, what runs, every node, and what the whole cluster has, in thousandths."""
        self._record = record
        self._programs = programs
        self._devices = {key: {device.id: device for device in node.devices} for key, node in nodes.items()}
        self._cluster = cluster
        self.handed_out = 0
        """How many devices, or shares of one, programs were started with."""
        self._state: ControllerState | None = None
        self._placed: set[str] = set()
        self._cordoned: set[tuple[PlaceKey, str]] = set()
        self._committed: set[str] = set()

    def check(self, changes: Changes) -> None:
        """Check that a commit gives no device away that was cordoned before it, and is after it."""
        before = set(self._cordoned)
        for record in changes.events.values():
            if isinstance(record.event, DeviceCordoned | DeviceUncordoned):
                told = record.event
                change = self._cordoned.add if isinstance(told, DeviceCordoned) else self._cordoned.discard
                change(((told.executor, told.node), told.device))
        for uid, run in changes.runs.items():
            fresh = uid not in self._committed
            self._committed.add(uid)
            given = {((run.executor, run.node), device) for device in run.devices}
            if fresh and (closed := given & before & self._cordoned):
                refuse("cordoned-stays", f"{uid} is given {sorted(closed)}")

    def started(self, program: Program) -> None:
        """Check a program that has just started, and what runs beside it."""
        order = program.order
        self._as_asked(order, self._devices[program.machine, order.node])
        self.handed_out += len(order.gpus)
        used: Counter[str] = Counter()
        taken: Counter[str] = Counter()
        for each in self._programs.live():
            taken.update(dict(each.order.resources.named))
            if (each.machine, each.order.node) == (program.machine, order.node):
                used.update(dict.fromkeys(each.order.gpus, each.order.resources.share_m or WHOLE_M))
        for device in order.gpus:
            if used[device] > WHOLE_M:
                refuse("devices-apart", f"{order.uid} starts, and {used[device]} thousandths of {device} are in use")
        for name, has in self._cluster.items():
            if taken[name] > has:
                refuse("devices-apart", f"{order.uid} starts, and {taken[name]} of {name} are in use, there are {has}")

    def _as_asked(self, order: RunOrder, there: Mapping[str, Device]) -> None:
        """Check the devices in an order against its run, its job and its node, where any are handed out."""
        request, run = order.resources, self._record.runs[order.uid]
        if order.gpus != run.devices or len(set(order.gpus)) != len(order.gpus):
            refuse("devices-as-asked", f"{order.uid} is given {order.gpus}, {run.devices} are stored")
        wants = 1 if request.share_m else request.gpu
        if len(order.gpus) != wants and (there or order.gpus):
            refuse("devices-as-asked", f"{order.uid} is given {order.gpus}, it asks for {request}")
        spec = load_spec(self._record.jobs[order.job_id].spec)
        wanted = ANY if order.job_id in self._record.pods else spec.gpus
        for name in order.gpus:
            device = there.get(name)
            if device is None or device.health or not wanted.admits(device):
                refuse("devices-as-asked", f"{order.uid} is given {name}, which is {device}; it asks for 1 gpu{wanted}")

    def ticked(self, state: ControllerState) -> None:
        """Check the controller's books after a tick: exactly what unfinished runs have is not free."""
        ledger = state.capacity.devices
        owed = {
            uid: ((run.executor, run.node), run.devices, run.request.share_m or WHOLE_M)
            for active in state.active.values()
            for uid, run in active.runs.items()
            if run.devices and run.status not in RUN_TERMINAL
        }
        held = {uid: each for uid, each in ledger.held.items() if not uid.endswith("/kept")}
        if held != owed:
            refuse("capacity-adds-up", f"devices are held by {held}, unfinished runs have {owed}")
        free = {(key, device): WHOLE_M for key, devices in ledger.free.items() for device in devices}
        for key, devices, amount in ledger.held.values():
            for device in devices:
                if (key, device) in free:
                    free[key, device] -= amount
        said = {(key, device): left for key, devices in ledger.free.items() for device, left in devices.items()}
        if said != free or any(left < 0 for left in free.values()):
            refuse("capacity-adds-up", f"of devices {said} is said to be free, and {free} is")

    def placed(self, state: ControllerState, catalogue: Catalogue) -> None:
        """Check what a tick has placed; what another controller has, was placed by what that one knew."""
        runs = {uid: (active, run) for active in state.active.values() for uid, run in active.runs.items()}
        fresh = runs.keys() - self._placed if self._state is state and not state.changes else set()
        self._state = state
        self._placed |= runs.keys()
        for active, run in (runs[uid] for uid in sorted(fresh)):
            place = state.capacity.places.get((run.executor, run.node))
            there = () if place is None else place.devices
            if given := [each for each in there if each.trouble and each.id in run.devices]:
                refuse("cordoned-stays", f"{run.uid} is given {given}")
            if not active.pods and active.job.gang == 1 and run.job_id not in self._record.released:
                self._elsewhere(run, state, catalogue)

    def _elsewhere(self, run: Run, state: ControllerState, catalogue: Catalogue) -> None:
        """Check that a retry by itself is not on devices that it avoids, where others would do."""
        before = self._record.attempts[run.job_id].get(run.attempt - 1)
        avoided = set(() if before is None or before.decision is None else before.decision.avoid_devices)
        given = avoided & {f"{device}@{run.node}" for device in run.devices}
        if given and self._others(run, avoided, state, catalogue):
            refuse("devices-avoided", f"{run.uid} is given {sorted(given)}, on which it failed before")

    def _others(self, run: Run, avoided: set[str], state: ControllerState, catalogue: Catalogue) -> bool:
        """Whether a run would fit a node by itself, without the devices that it avoids."""
        spec = load_spec(self._record.jobs[run.job_id].spec)
        request = on_nodes(Shape(run.request), self._cluster).request
        for (_, node), place in state.capacity.places.items():
            free = [each for each in place.devices if not each.trouble and f"{each.id}@{node}" not in avoided]
            enough = sum(map(spec.gpus.admits, free)) >= (1 if request.share_m else request.gpu)
            closed = node in catalogue.cordons or place.short is not None
            open_to_it = not closed and spec.node_selector.items() <= place.labels.items()
            if enough and open_to_it and request.fits(place.capacity):
                return True
        return False
