"""Assigns GPUs to runs, tracks what is free, and explains why a run gets none.

A run gets whole devices that no other run has, or a share of one. Amounts are thousandths of a device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.devices import WHOLE_M, Device, GpuSelector
from holdfast.domain.record import Struct
from holdfast.domain.terms.resources import ONE_POD
from holdfast.domain.units import format_amount

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from holdfast.domain.job import Resources, Run

POD_IN_WORDS = "1 pod"
_Place = tuple[str, str]
"""A place's key: (executor, node)."""


def choose_devices(
    devices: Sequence[Device], free: Mapping[str, int], request: Resources, selector: GpuSelector
) -> tuple[str, ...] | None:
    """Choose the devices of one run, or ``None`` if there are too few.

    A share goes where least is free, so that other devices stay whole; then the smallest sufficient memory is
    preferred, so that large devices stay free for runs that need them; then the order of the bus counts.
    """
    need_m = request.share_m or WHOLE_M
    count = request.gpu or 1
    candidates = [
        (free[device.id], device.memory, place, device.id)
        for place, device in enumerate(devices)
        if free.get(device.id, 0) >= need_m and selector.admits(device)
    ]
    if len(candidates) < count:
        return None
    return tuple([candidate[-1] for candidate in sorted(candidates)[:count]])


def runs_with_devices(
    devices: Sequence[Device], free: Mapping[str, int], request: Resources, selector: GpuSelector, most: int
) -> int:
    """Count how many equal runs can be given devices, up to ``most``."""
    left = dict(free)
    for count in range(most):
        chosen = choose_devices(devices, left, request, selector)
        if chosen is None:
            return count
        take_devices(left, chosen, request)
    return most


def take_devices(free: dict[str, int], chosen: Sequence[str], request: Resources) -> None:
    """Subtract a run's devices from what is free."""
    for device in chosen:
        free[device] -= request.share_m or WHOLE_M


def all_free(devices: Sequence[Device]) -> dict[str, int]:
    """Return what would be free if no device were used."""
    return {device.id: WHOLE_M for device in devices}


def all_well(devices: Sequence[Device]) -> dict[str, int]:
    """Return what could be assigned if no device were used."""
    return all_free([device for device in devices if not device.trouble])


class DeviceLedger:
    """Tracks how much of each place's devices is free, and which runs use the rest.

    Charging and releasing are idempotent by run uid, as for all capacity.
    """

    def __init__(self) -> None:
        self.free: dict[_Place, dict[str, int]] = {}
        """Thousandths, by place and by device; only places that have devices."""
        self._devices: dict[_Place, Sequence[Device]] = {}
        self.held: dict[str, tuple[_Place, tuple[str, ...], int]] = {}
        """By run uid: where, which devices, and how much of each."""

    def set_place(self, key: _Place, devices: Sequence[Device]) -> None:
        """Set the devices of a place; runs there stay charged."""
        self.drop_place(key)
        if not devices:
            return
        self._devices[key] = devices
        free = self.free[key] = all_free(devices)
        for held, ids, amount in self.held.values():
            for device in ids if held == key else ():
                if device in free:
                    free[device] -= amount

    def drop_place(self, key: _Place) -> None:
        """Forget a place; runs there stay charged."""
        self.free.pop(key, None)
        self._devices.pop(key, None)

    def charge(self, run: Run) -> None:
        """Charge a run with its devices."""
        key, amount = (run.executor, run.node), run.request.share_m or WHOLE_M
        self.held[run.uid] = (key, run.devices, amount)
        free = self.free.get(key, {})
        for device in run.devices:
            if device in free:
                free[device] -= amount

    def release(self, uid: str) -> None:
        """Release a run's devices."""
        key, ids, amount = self.held.pop(uid)
        free = self.free.get(key, {})
        for device in ids:
            if device in free:
                free[device] += amount

    def to_give(self) -> dict[_Place, dict[str, int]]:
        """Return what may be assigned now: nothing of a device in trouble."""
        return {
            key: {device.id: self.free[key][device.id] for device in devices if not device.trouble}
            for key, devices in self._devices.items()
        }


class DeviceShortage(Struct, frozen=True):
    """The facts that explain why a run gets no devices."""

    places: Sequence[tuple[_Place, Sequence[Device]]]
    """Places that would fit but for their devices, with these devices."""
    free: Mapping[_Place, Mapping[str, int]]
    users: Mapping[tuple[_Place, str], Sequence[str]]
    """The names of the jobs that use each device."""
    avoided: Collection[str] = ()
    """``<id>@<node>`` of each device that is avoided."""

    def why(self, request: Resources, selector: GpuSelector) -> str:
        """Say in one line what is missing, and who uses it."""
        needs = f"needs {gpus_in_words(request)}{selector}"
        fitting = [(key, list(filter(selector.admits, devices))) for key, devices in self.places]
        most = max((len(devices) for _, devices in fitting), default=0)
        if not most:
            types = sorted({device.type for _, devices in self.places for device in devices if device.type})
            return f"{needs}, no node has one" + (f", only {', '.join(types)}" if types else "")
        if most < request.gpu:
            return f"{needs} on one node, the most any node has is {most}: no node could ever take it"
        return f"{needs}, {self._why_not_free(fitting)}"

    def _why_not_free(self, fitting: Sequence[tuple[_Place, Collection[Device]]]) -> str:
        """Say which jobs use suitable devices, and why the others are not available."""
        users: dict[str, None] = {}
        trouble: list[str] = []
        in_use = 0
        for key, devices in fitting:
            for device in devices:
                if device.trouble:
                    trouble.append(f"{device.id} is {_in_trouble(device)}")
                elif self.free.get(key, {}).get(device.id, 0) < WHOLE_M:
                    in_use += 1
                    users.update(dict.fromkeys(self.users.get((key, device.id), ())))
                elif f"{device.id}@{key[1]}" in self.avoided:
                    trouble.append(f"{device.id} is avoided, as the last attempt failed on it")
        count = sum(len(devices) for _, devices in fitting)
        parts = [f"{_count_in_use(in_use, count)} in use by {_named_few(list(users))}"] if in_use else []
        return "; ".join([*parts, *trouble[:_MOST_NAMED]])


_MOST_NAMED = 3
_BOTH = 2


def _in_trouble(device: Device) -> str:
    return f"not healthy: {device.health}" if device.health and device.cordon is None else device.trouble


def _count_in_use(some: int, count: int) -> str:
    if some < count:
        return f"{some} of {count} {'is' if some == 1 else 'are'}"
    return {1: "the only one is", _BOTH: "both are"}.get(count, f"all {count} are")


def _named_few(names: Sequence[str]) -> str:
    """Name the first few, and count the others."""
    if not names:
        return "others"
    shown = ", ".join(names[:_MOST_NAMED])
    left = len(names) - _MOST_NAMED
    return f"{shown} and {left} more" if left > 0 else shown


def named_in_words(name: str, amount: int) -> str:
    """Write an amount of a named resource: ``1 licence/matlab``, ``1 pod``."""
    return POD_IN_WORDS if ((name, amount),) == ONE_POD.named else f"{format_amount(amount)} {name}"


def gpus_in_words(request: Resources) -> str:
    """Write how many GPUs a run requests: ``2 gpu``, ``0.25 gpu``."""
    return f"{format_amount(request.gpu * WHOLE_M + request.share_m)} gpu"
