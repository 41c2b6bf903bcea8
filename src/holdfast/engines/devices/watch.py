"""Watches this machine's GPUs: which have failed, and which are used by foreign programs.

The driver is called in a thread of its own, because a call may hang for as long as a device does.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

from holdfast.domain.record import evolve

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.domain.devices import Device

LOOK_EVERY_S = 10.0
PATIENCE_S = 60.0
"""Seconds that the driver may take to answer; after that no device is assigned any more."""
_AT_START_S = 2.0
"""Seconds that a starting server waits for the first reading, so that it begins with the true state."""
SILENT, GONE = "the driver does not answer", "the driver does not list it any more"
_SHARING = frozenset({"nvidia-cuda-mps-server", "nvidia-cuda-mps"})
"""Programs that use a device on behalf of others: NVIDIA's Multi-Process Service, which runs may use, too."""
_MOST_NAMED = 2


class DeviceReading(NamedTuple):
    """What a driver reports about one device."""

    health: str = ""
    """What is wrong with it; empty if nothing is."""
    pids: tuple[int, ...] = ()
    """The processes that compute on it."""


class DeviceWatch:
    """Reports the state of devices whenever it changes."""

    def __init__(
        self,
        devices: Sequence[Device],
        look: Callable[[], Mapping[str, DeviceReading]],
        *,
        foreign: Callable[[int], str],
        tell: Callable[[Mapping[str, Device]], None],
        every_s: float = LOOK_EVERY_S,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """Begin to watch, and wait a moment for the first reading.

        Args:
            devices: The devices that can be assigned. One that no reading ever contains is left as it is.
            look: Calls the driver; may hang, and never raises.
            foreign: Returns the program of a process that Holdfast did not start, by its number; otherwise empty.
            tell: Called from a thread with all devices, by id.
            every_s: Seconds between two readings.
            patience_s: Seconds that a reading may take before devices count as failed.
        """
        self._devices = {device.id: device for device in devices}
        self._look = look
        self._foreign = foreign
        self._tell = tell
        self._every_s, self._patience_s = every_s, patience_s
        self._seen: set[str] = set()
        self._reported = self._devices
        self._closed = threading.Event()
        looked = threading.Event()
        threading.Thread(target=self._run, args=(looked,), name="holdfast-devices", daemon=True).start()
        looked.wait(_AT_START_S)

    def close(self) -> None:
        """Stop watching."""
        self._closed.set()

    def _run(self, looked: threading.Event) -> None:
        while not self._closed.is_set():
            asking = threading.Thread(target=self._once, name="holdfast-driver", daemon=True)
            asking.start()
            asking.join(self._patience_s)
            if asking.is_alive():
                self._say(
                    {name: evolve(device, health=device.health or SILENT) for name, device in self._devices.items()}
                )
                asking.join()
            looked.set()
            self._closed.wait(self._every_s)

    def _once(self) -> None:
        seen = self._look()
        self._seen |= seen.keys()
        self._say({name: self._judged(device, seen.get(name)) for name, device in self._devices.items()})

    def _judged(self, device: Device, seen: DeviceReading | None) -> Device:
        if seen is None:
            return evolve(device, health=device.health or GONE) if device.id in self._seen else device
        foreign = ((pid, self._foreign(pid)) for pid in seen.pids)
        users = [f"{name} (pid {pid})" for pid, name in foreign if name and name not in _SHARING]
        left = len(users) - _MOST_NAMED
        used_by = ", ".join(users[:_MOST_NAMED]) + (f" and {left} more" if left > 0 else "")
        return evolve(device, health=device.health or seen.health, used_by=used_by)

    def _say(self, devices: Mapping[str, Device]) -> None:
        if devices != self._reported and not self._closed.is_set():
            self._reported = dict(devices)
            self._tell(devices)
