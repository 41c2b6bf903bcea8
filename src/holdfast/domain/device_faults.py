"""Which device a failed run has shown to be faulty, judged by what it printed.

One line is enough: each of these is a device fault that a program cannot cause. If the line names the device, by its
id, its place on the bus or its number among those of the run, only that one is blamed. Otherwise every device the run
held is, since the bad one would be handed out again.
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


def shown_by(outcome: RunOutcome, held: Sequence[Device]) -> tuple[tuple[Device, ...], str]:
    """Return which devices a run has shown to be faulty, and by which line.

    Args:
        outcome: How it ended, with what was found in its output.
        held: The devices it had, in the order in which it counts them.
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
        on_bus = tuple(device for device in held if device.bus and _slot(device.bus) == _slot(place[0]))
        return on_bus or tuple(held)
    number = _NUMBER.search(line)
    if number is not None and int(number[1]) < len(held):
        return (held[int(number[1])],)
    return tuple(held)


def _slot(text: str) -> tuple[int, ...]:
    """Read a place on the bus, of which the domain has four digits or eight; one device has one function."""
    match = _BUS.search(text)
    return () if match is None else tuple(int(part, 16) for part in match.groups())
