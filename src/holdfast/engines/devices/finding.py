"""Finds this machine's GPUs: NVIDIA's by its library, AMD's by ``rocm-smi``."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

from holdfast.domain.devices import Device
from holdfast.engines.devices.nvml import found_by_nvml
from holdfast.engines.devices.visible import AMD

if TYPE_CHECKING:
    from collections.abc import Sequence

_COMMAND = ("--showuniqueid", "--showproductname", "--showmeminfo", "vram", "--json")
_PATIENCE_S = 10.0


def find_devices() -> Sequence[Device]:
    """Find this machine's GPUs: NVIDIA's, then AMD's."""
    return [*found_by_nvml(), *found_by_rocm()]


def numbered(count: int) -> Sequence[Device]:
    """Return that many devices with nothing but a number."""
    return [Device(f"gpu-{index}", index) for index in range(count)]


def found_by_rocm() -> Sequence[Device]:
    """List AMD's GPUs; none if ``rocm-smi`` is missing or does not answer."""
    program = shutil.which("rocm-smi")
    if program is None:
        return ()
    try:
        done = subprocess.run(  # noqa: S603 - the driver's own program
            [program, *_COMMAND], capture_output=True, text=True, timeout=_PATIENCE_S, check=True
        )
        cards = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return ()
    if not isinstance(cards, dict):
        return ()
    numbers = sorted(int(name[4:]) for name in cards if name.startswith("card") and name[4:].isdecimal())
    return [_device(cards[f"card{number}"], index) for index, number in enumerate(numbers)]


def _device(card: dict[str, Any], index: int) -> Device:
    values = {name.lower(): str(value) for name, value in card.items()}
    unique, memory = values.get("unique id", ""), values.get("vram total memory (b)", "")
    name = values.get("card series", "") or values.get("card model", "")
    named = bool(unique) and unique != "N/A"
    return Device(unique if named else f"gpu-{index}", index, name, int(memory) if memory.isdecimal() else 0, AMD)
