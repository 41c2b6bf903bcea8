"""GPUs are found: by a library with NVML's own interface, and by a program in place of ``rocm-smi``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.devices import Device
from holdfast.engines.devices.finding import find_devices
from holdfast.engines.process.shim.supervisor.silence import Devices
from tests import nvml

if TYPE_CHECKING:
    from pathlib import Path

ASKS = """
from holdfast.engines.devices.finding import find_devices
from holdfast.engines.process.shim.supervisor.silence import Devices
from tests import nvml
print([(each.id, each.index, each.type, each.memory, each.maker, each.bus) for each in find_devices()])
"""


def ask_nvml(folder: Path, refuses: int) -> str:
    env = {**os.environ, **nvml.compiled(folder, refuses=refuses), "PATH": str(folder)}
    return subprocess.run([sys.executable, "-c", ASKS], env=env, capture_output=True, text=True, check=True).stdout


def test_nvidias_are_found_with_uuid_model_memory_and_place_on_the_bus(tmp_path: Path) -> None:
    rest = ("NVIDIA A100-SXM4-40GB", 40 << 30, "nvidia")
    found = [("GPU-5d1c", 0, *rest, "00000000:3B:00.0"), ("GPU-77aa", 1, *rest, "00000000:3C:00.0")]
    assert ask_nvml(tmp_path, 0) == f"{found}\n"


def test_a_driver_that_does_not_answer_has_none(tmp_path: Path) -> None:
    assert ask_nvml(tmp_path, 9) == "[]\n"


LOOKS = """
import sys
from holdfast.engines.devices.finding import find_devices
from holdfast.engines.devices.nvml import NvmlLook
look, state = NvmlLook(find_devices()), open(sys.argv[1], "w")
for said in sys.argv[2:]:
    state.truncate(0), state.seek(0), state.write(said), state.flush()
    print({name: tuple(seen) for name, seen in look().items()})
"""


def test_the_driver_is_asked_again_who_uses_a_device_and_whether_it_is_still_there(tmp_path: Path) -> None:
    env = {**os.environ, **nvml.compiled(tmp_path)}
    said = ["GPU-77aa 12\nGPU-77aa 13", "GPU-5d1c gone", "GPU-5d1c lost\nGPU-77aa 14"]
    asked = [sys.executable, "-c", LOOKS, str(tmp_path / "nvml.state"), *said]
    told = subprocess.run(asked, env=env, capture_output=True, text=True, check=True).stdout
    assert told.splitlines() == [
        "{'GPU-5d1c': ('', ()), 'GPU-77aa': ('', (12, 13))}",
        "{'GPU-77aa': ('', ())}",
        "{'GPU-5d1c': ('it has fallen off the bus', ()), 'GPU-77aa': ('', (14,))}",
    ]


def rocm(folder: Path, monkeypatch: pytest.MonkeyPatch, says: str) -> None:
    program = folder / "rocm-smi"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{says}\nEND\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_amds_are_found_in_the_order_of_their_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = {"Unique ID": "0x1f2e", "Card series": "AMD Instinct MI250X", "VRAM Total Memory (B)": str(64 << 30)}
    rocm(tmp_path, monkeypatch, json.dumps({"card10": {"Unique ID": "N/A"}, "card2": card, "system": {"x": 1}}))
    assert find_devices() == [
        Device("0x1f2e", 0, "AMD Instinct MI250X", 64 << 30, "amd"),
        Device("gpu-1", 1, "", 0, "amd"),
    ]


@pytest.mark.parametrize("says", ["not JSON", "[]"])
def test_what_is_no_list_of_cards_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str) -> None:
    rocm(tmp_path, monkeypatch, says)
    assert find_devices() == []


IDLES = """
import sys
from holdfast.engines.process.shim.supervisor.silence import Devices
devices, state = Devices(["GPU-5d1c", *sys.argv[2].split()]), open(sys.argv[1], "w")
for said in sys.argv[3:]:
    state.truncate(0), state.seek(0), state.write(said), state.flush()
    before = devices()
    print("idle" if devices() == before else "busy")
"""


@pytest.mark.parametrize(
    ("also", "said", "told"),
    [
        ("", ["GPU-5d1c busy", "GPU-77aa busy", ""], ["busy", "idle", "idle"]),
        ("GPU-77aa", ["GPU-5d1c busy", "GPU-77aa busy", ""], ["busy", "busy", "idle"]),
        ("", ["GPU-5d1c lost"], ["busy"]),
        ("an-AMD", [""], ["busy"]),
    ],
    ids=["its own", "any of several", "nobody can tell", "not the driver's"],
)
def test_a_run_is_idle_while_none_of_its_devices_does_anything(
    tmp_path: Path, also: str, said: list[str], told: list[str]
) -> None:
    asked = [sys.executable, "-c", IDLES, str(tmp_path / "nvml.state"), also, *said]
    env = {**os.environ, **nvml.compiled(tmp_path)}
    assert subprocess.run(asked, env=env, capture_output=True, text=True, check=True).stdout.split() == told


def test_without_a_driver_nobody_is_idle() -> None:
    devices = Devices(["GPU-5d1c"])
    assert [devices(), devices()] == [1, 2]
