"""Looks at the GPUs of this machine again and again: which have failed, and which are used by other programs.

The driver is asked in a thread of its own, since a call of it may hang for as long as a device does.
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
"""How long the driver may take to answer before no device is given away any more."""
_AT_START_S = 2.0
"""How long a server waits for the first look, so that it begins with what is true."""
SILENT, GONE = "the driver does not answer", "the driver does not list it any more"
_SHARING = frozenset({"nvidia-cuda-mps-server", "nvidia-cuda-mps"})
"""Programs that use a device on behalf of others: NVIDIA's Multi-Process Service, which runs may use, too."""
_MOST_NAMED = 2


class DeviceReading(NamedTuple):
    """What a driver says of one device."""

    health: str = ""
    """What is wrong with it, if anything."""
    pids: tuple[int, ...] = ()
    """The processes that compute on it."""


class DeviceWatch:
    """Tells how devices are now, whenever that changes."""

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
        """Begin to look, and wait a moment for the first look.

        Args:
            devices: Those that are handed out. What no look ever finds is left as it is.
            look: Asks the driver; may hang, and never raises.
            foreign: Names the program of a process by its number, if Holdfast did not start it; else empty.
            tell: Called with all devices, by id, from a thread.
            every_s: How long to wait between two looks.
            patience_s: How long a look may take before devices count as failed.
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
        """Stop looking."""
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
