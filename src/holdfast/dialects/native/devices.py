"""Reads a file that declares a machine's GPUs, where they cannot be found or need other names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.dialects.documents import read_documents
from holdfast.dialects.reading import Fields, shown
from holdfast.domain.devices import MAKERS, Device
from holdfast.errors import InvalidSetting, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_DEVICES = 1024
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._-]{0,99}")


def read_devices(text: str, *, name: str) -> Sequence[Device]:
    """Read ``devices``, a list of ``{id, index, type, memory, maker, health, bus}``; each needs ``id`` or ``index``.

    Args:
        text: YAML or JSON with one mapping.
        name: The file's name in messages.

    Raises:
        InvalidSetting: With every problem found.
        InvalidManifest: It is not YAML.
    """
    problems: list[Problem] = []
    documents = read_documents(text, name=name)
    root = Fields(documents[0].value if documents else {}, "", problems)
    devices: list[Device] = []
    for place, fields in enumerate(root.mappings("devices", most=MOST_DEVICES)):
        device = _read_one(fields, place)
        if any(device.id == other.id for other in devices):
            fields.problem("id", f"{shown(device.id)} is another device's id, too")
        devices.append(device)
    if not problems and not devices:
        root.problem("devices", "declares no device", hint="devices: [{id: GPU-..., type: A100, memory: 40Gi}]")
    root.finish()
    if problems:
        msg = f"{name} does not declare devices well"
        raise InvalidSetting(msg, problems=problems)
    return devices


def _read_one(part: Fields, place: int) -> Device:
    index = part.integer("index", low=0, high=MOST_DEVICES)
    index = place if index is None else index
    device = part.text("id", longest=100) or f"gpu-{index}"
    if not _ID.fullmatch(device):
        part.problem("id", f"{shown(device)} is not an id", hint="letters, digits, ':', '.', '_' and '-'")
    maker = part.text("maker") or ""
    if maker and maker not in MAKERS:
        part.problem("maker", f"{shown(maker)} is not one of its values", allowed=MAKERS)
    declared = Device(
        device,
        index,
        part.text("type") or "",
        part.memory("memory") or 0,
        maker,
        part.text("health") or "",
        bus=part.text("bus", longest=20) or "",
    )
    part.finish()
    return declared
