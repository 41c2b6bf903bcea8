"""Finds the devices that a failed run has shown to be faulty, by its output.

One line is enough: each of these is a device fault that a program cannot cause. If the line names the device, by its
id, its address on the bus or its number among those of the run, only that one is faulty. Otherwise every device of the
run is, because the faulty one would be assigned again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.devices import Device
    from holdfast.domain.failure import RunOutcome

_FAULT = re.compile(
    r"uncorrectable ECC error|ECC_UNCORRECTABLE|fallen off the bus|GPU is lost|NVRM: Xid \("
    r"|Unable to determine the device handle for GPU"
)
_XID = re.compile(r"NVRM: Xid \([^)]*\): (\d+)")
_OF_PROGRAMS = frozenset({13, 31, 32, 43, 45, 68, 69})
"""Xids that a program's own error causes (NVIDIA's catalogue of Xid errors: "user application")."""
_BUS = re.compile(r"([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})(?:\.[0-7])?")
_NUMBER = re.compile(r"(?:cuda:|GPU ?|[Dd]evice[ :=]+)(\d{1,3})(?![\w:.-])")


def faulty_devices(outcome: RunOutcome, held: Sequence[Device]) -> tuple[tuple[Device, ...], str]:
    """Return the devices that a run has shown to be faulty, with the line that shows it.

    Args:
        outcome: How the run ended, with the evidence from its output.
        held: Its devices, in the order in which it counts them.
    """
    for line in (*(match.line for match in outcome.log_matches), outcome.error_line):
        if not _FAULT.search(line):
            continue
        xid = _XID.search(line)
        if xid is None or int(xid[1]) not in _OF_PROGRAMS:
            return _named(line, held), line.strip()
    return (), ""


def _named(line: str, held: Sequence[Device]) -> tuple[Device, ...]:
    by_id = tuple(device for device in held if device.id in line)
    if by_id or len(held) == 1:
        return by_id or tuple(held)
    place = _BUS.search(line)
    if place is not None:
        on_bus = tuple(device for device in held if device.bus and _bus_address(device.bus) == _bus_address(place[0]))
        return on_bus or tuple(held)
    number = _NUMBER.search(line)
    if number is not None and int(number[1]) < len(held):
        return (held[int(number[1])],)
    return tuple(held)


def _bus_address(text: str) -> tuple[int, ...]:
    """Parse a bus address, whose domain has four or eight digits; the function is ignored."""
    match = _BUS.search(text)
    return () if match is None else tuple(int(part, 16) for part in match.groups())
