"""Reads where a job can run: the resources of each task, and constraints on the attributes of workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.domain.devices import ANY, GpuSelector
from holdfast.domain.job import Resources
from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from holdfast.dialects.reading import Fields

EQUAL, PREFERRED = 0, 1
"""``CONSTRAINT_OP_EQ`` and ``CONSTRAINT_MODE_PREFERRED``."""
_MOST = (1 << 63) - 1
_MOST_MILLICORES = (1 << 31) - 1
_MOST_CONSTRAINTS = 100
_OF_DEVICES = ("device-type", "device-variant", "preemptible")
"""Iris' own attributes: the request names the device, and every machine here is permanent."""
_ANY_GPU = ("", "auto")


class TaskResources(Struct, frozen=True):
    """The resources of each task."""

    amounts: Resources
    gpus: GpuSelector = ANY


def read_resources(fields: Fields) -> TaskResources:
    """Read the resources of each task; disk is ignored, because everybody shares what a machine has."""
    part = fields.nested("resources")
    if part is None:
        return TaskResources(Resources(cpu_m=0))
    cpu = part.integer("cpu_millicores", low=0, high=_MOST_MILLICORES)
    memory = part.integer("memory_bytes", low=0, high=_MOST)
    part.integer("disk_bytes", low=0, high=_MOST)
    device: dict[str, Any] = (part.value.get("device") or {}) if isinstance(part.value, dict) else {}
    if "tpu" in device:
        part.problem("device.tpu", "there are no TPUs here", allowed=("cpu", "gpu"))
    gpu = device.get("gpu")
    count = 0 if gpu is None else gpu.get("count", 0)
    if gpu is not None and count < 1:
        part.problem("device.gpu.count", f"must be at least 1, not {count}")
    variant = str((gpu or {}).get("variant") or "")
    chosen = ANY if variant in _ANY_GPU else GpuSelector(type=f"*{variant}*")
    return TaskResources(Resources(cpu_m=cpu or 0, memory=memory or 0, gpu=max(0, count)), chosen)


def read_constraints(fields: Fields) -> dict[str, str]:
    """Read constraints as labels that a node must have; mere preferences are ignored."""
    labels: dict[str, str] = {}
    for constraint in fields.mappings("constraints", most=_MOST_CONSTRAINTS):
        key, value = str(constraint.value.get("key") or ""), constraint.value.get("value") or {}
        if constraint.value.get("mode") == PREFERRED or key in _OF_DEVICES:
            continue
        if key == "cluster":
            constraint.problem("key", "there are no peers here: a job runs on this cluster alone")
        elif not key:
            constraint.problem("key", "is required")
        elif constraint.value.get("op", EQUAL) != EQUAL or constraint.value.get("values"):
            constraint.problem(
                "op", "nodes are chosen by labels that they have: only equality is known", allowed=("EQ",)
            )
        else:
            labels[key] = _text(next(iter(value.values()), ""))
    return labels


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
