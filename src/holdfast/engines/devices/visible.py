"""Sets the variables by which programs see their GPUs.

Names and rules are those of CUDA (``CUDA_VISIBLE_DEVICES`` takes UUIDs), HIP (``HIP_VISIBLE_DEVICES`` takes indices)
and NVIDIA's container toolkit (``NVIDIA_VISIBLE_DEVICES``; ``void`` is none). -1, which is no index, hides all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.domain.devices import Device

NVIDIA, AMD = "nvidia", "amd"
_NONE, _NONE_IN_CONTAINERS = "-1", "void"
_UUIDS = ("GPU-", "MIG-")
_ONE_M = 1000


def visible(devices: Sequence[Device], device_ids: Sequence[str], *, share_m: int = 0) -> dict[str, str]:
    """Return the variables for a program.

    Args:
        devices: All devices of its node; if there are none, nothing is set.
        device_ids: The devices it may use.
        share_m: Thousandths of the device, if it has a share of one.
    """
    if not devices:
        return {}
    theirs = [device for device in devices if device.id in device_ids]
    cuda = [device for device in theirs if device.maker != AMD]
    hip = ",".join(str(device.index) for device in theirs if device.maker != NVIDIA) or _NONE
    variables = {
        # On a machine with AMD's GPUs only, both must be the same: HIP reads both, and some libraries compare them.
        "CUDA_VISIBLE_DEVICES": hip if all(device.maker == AMD for device in devices) else _named(cuda) or _NONE,
        "HIP_VISIBLE_DEVICES": hip,
        "NVIDIA_VISIBLE_DEVICES": _named(cuda) or _NONE_IN_CONTAINERS,
    }
    if any(not device.id.startswith(_UUIDS) for device in cuda):
        variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # Otherwise index 0 is the fastest device.
    if share_m:
        variables["HOLDFAST_GPU_SHARE"] = f"{share_m / _ONE_M:g}"
    return variables


def _named(devices: Iterable[Device]) -> str:
    return ",".join(device.id if device.id.startswith(_UUIDS) else str(device.index) for device in devices)
