"""Cordoned devices: faulty ones, as runs have shown, and those that a person has cordoned.

A cordon is stored with the device in the record of its node, so that readers see it and it survives a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.device_faults import faulty_devices
from holdfast.domain.devices import DeviceCordon
from holdfast.domain.events.operators import DeviceCordoned, DeviceUncordoned
from holdfast.domain.events.registry import EventRecord
from holdfast.domain.record import evolve
from holdfast.ports.requests import RequestKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.controller.state import ControllerState
    from holdfast.domain.job import Job, Node, Run
    from holdfast.domain.placement.fit import PlaceKey
    from holdfast.ports.requests import Request


class Cordons:
    """The cordons of all devices."""

    def __init__(self, state: ControllerState) -> None:
        self._state = state
        self._cordons: dict[PlaceKey, dict[str, DeviceCordon]] = {}

    def restore(self, stored: Iterable[Node]) -> None:
        """Restore the cordons from before this controller."""
        for node in stored:
            if node.devices:
                self._cordons[node.executor, node.name] = {
                    device.id: device.cordon for device in node.devices if device.cordon is not None
                }

    def on(self, node: Node) -> Node:
        """Return a reported node with the cordons of its devices."""
        cordons = self._cordons.setdefault((node.executor, node.name), {})
        return evolve(node, devices=tuple(evolve(device, cordon=cordons.get(device.id)) for device in node.devices))

    def judge(self, run: Run, job: Job, now: float) -> None:
        """Cordon a device that a failed run has shown to be faulty."""
        node = self._state.nodes.get((run.executor, run.node))
        if node is None or run.outcome is None:
            return
        held = [device for device in node.devices if device.id in run.devices]
        faulty, line = faulty_devices(run.outcome, held)
        for device in faulty:
            if device.cordon is None:
                self._put(node, device.id, DeviceCordon(line, now, job.name), now, run.job_id)

    def ask(self, request: Request, now: float) -> None:
        """Act on a person's request, whose targets are devices as ``EXECUTOR NODE DEVICE``."""
        for target in request.targets:
            executor, name, device = target.split(" ")
            node = self._state.nodes.get((executor, name))
            found_device = (
                next((candidate for candidate in node.devices if candidate.id == device), None)
                if node is not None
                else None
            )
            if node is None or found_device is None:
                continue
            if request.kind is RequestKind.CORDON:
                self._put(node, device, DeviceCordon(request.reason, now, by=request.actor), now)
            elif found_device.cordon is not None:
                self._put(node, device, None, now)

    def _put(self, node: Node, device: str, cordon: DeviceCordon | None, now: float, job_id: str = "") -> None:
        key = (node.executor, node.name)
        cordons = self._cordons.setdefault(key, {})
        if cordon is None:
            cordons.pop(device, None)
            event: DeviceCordoned | DeviceUncordoned = DeviceUncordoned(node.executor, node.name, device)
        else:
            cordons[device] = cordon
            event = DeviceCordoned(node.executor, node.name, device, cordon.reason, job_id, cordon.by)
        self._state.emit(EventRecord(None, now, event))
        self._state.change_node(self.on(self._state.nodes[key]))
