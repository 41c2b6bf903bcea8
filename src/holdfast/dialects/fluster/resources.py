"""Reads a ``ResourceSpec``: cores, GPUs, replicas, and sizes in Docker's notation: ``512m`` is 512 mebibytes."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from holdfast.dialects.native.resources import LONGEST_TYPE, MOST_GPUS
from holdfast.dialects.reading import Fields, shown
from holdfast.domain.devices import ANY, GpuSelector
from holdfast.domain.record import Struct, field
from holdfast.domain.terms.resources import Resources
from holdfast.domain.terms.settings import LARGEST_GANG
from holdfast.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

DISK = "ephemeral-storage"
"""The name of disk as a counted resource, as pods request it."""
REGION = "region"
"""The node label for a region."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([bkmgtp]?)(?:i?b)?", re.IGNORECASE)
_POWERS = {"": 0, "b": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_LARGEST = 1 << 60
_LONGEST = 64
_MOST_CORES = 1_000_000
_MOST_REGIONS = 100
_ANY_VARIANT = frozenset({"", "auto", "any"})
_IN_THOUSANDTHS = 1000


class Offers(Struct, frozen=True):
    """The named resources and regions that nodes offer."""

    resources: frozenset[str] = frozenset()
    """The names of counted resources."""
    labels: frozenset[tuple[str, str]] = frozenset()


class ResourceRequest(Struct, frozen=True):
    """The resources of each run of a job, and the number of runs."""

    resources: Resources = Resources()
    gang: int = 1
    gpus: GpuSelector = ANY
    node_selector: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[Problem, ...] = ()


def parse_size(text: str) -> int:
    """Parse a size in Docker's notation into bytes: ``512m``, ``8g``, ``1.5gb``, ``8GiB``, ``1073741824``.

    Raises:
        ValueError: It is no size, or larger than an exbibyte.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        msg = f"{shown(text)} is not a size; write for example 512m or 8g"
        raise ValueError(msg)
    size = Decimal(match[1]) * (1 << 10 * _POWERS[match[2].lower()])
    if size > _LARGEST:
        msg = f"{shown(text)} is out of range: sizes run from 0 to 1 EiB"
        raise ValueError(msg)
    return int(size)


def read_resources(
    request: Mapping[str, Any] | None,
    problems: list[Problem],
    offers: Offers = Offers(),  # noqa: B008 - it is frozen
) -> ResourceRequest:
    """Read the resources of a launch.

    Args:
        request: The fields of a ``ResourceSpec`` that are set; ``None`` without one.
        problems: Where to add problems, with paths below ``resources``.
        offers: What the nodes offer; a preference that no node meets becomes a warning.
    """
    fields = Fields(request or {}, "resources", problems)
    warnings = list[Problem]()
    cpu = fields.integer("cpu", low=0, high=_MOST_CORES)
    memory, disk = _size(fields, "memory"), _size(fields, "disk")
    gpu, gpus = _read_device(fields)
    replicas = fields.integer("replicas", low=0, high=LARGEST_GANG)
    if disk and DISK not in offers.resources:
        warnings.append(Problem("resources.disk", f"is not counted: no node offers {DISK}"))
        disk = 0
    if fields.flag("preemptible"):
        warnings.append(Problem("resources.preemptible", "has no effect: any node will do"))
    selector = _region(fields, offers, warnings)
    fields.finish()
    default = Resources()
    named = ((DISK, disk * _IN_THOUSANDTHS),) if disk else ()
    resources = Resources(default.cpu_m if cpu is None else cpu * _IN_THOUSANDTHS, memory, gpu, 0, named)
    return ResourceRequest(resources, replicas or 1, gpus, selector, tuple(warnings))


def _size(fields: Fields, name: str) -> int:
    text = str(fields.raw(name) or "") and fields.text(name, longest=_LONGEST)
    try:
        return parse_size(text) if text else 0
    except ValueError as error:
        fields.problem(name, str(error))
        return 0


def _read_device(fields: Fields) -> tuple[int, GpuSelector]:
    device = fields.nested("device")
    if device is None:
        return 0, ANY
    if device.raw("tpu") is not None:
        device.problem("tpu", "there are no TPUs here", hint="ask for cpu, or for gpu with a count")
    cpu, gpu = device.nested("cpu"), device.nested("gpu")
    device.finish()
    if cpu is not None:
        cpu.raw("variant")
        cpu.finish()
    if gpu is None:
        return 0, ANY
    count = gpu.integer("count", low=1, high=MOST_GPUS)
    variant = (gpu.text("variant", longest=LONGEST_TYPE) if gpu.raw("variant") else None) or ""
    gpu.finish()
    return count or 1, ANY if variant.lower() in _ANY_VARIANT else GpuSelector(f"*{variant}*")


def _region(fields: Fields, offers: Offers, warnings: list[Problem]) -> dict[str, str]:
    """Require the preferred region if it has nodes; several preferences cannot be expressed."""
    regions = fields.texts("regions", most=_MOST_REGIONS) or []
    present = [region for region in regions if (REGION, region) in offers.labels]
    if len(present) == 1:
        return {REGION: present[0]}
    if regions:
        why = f"there are nodes in several: {', '.join(present)}" if present else f"no node has such a label {REGION}"
        message = f"have no effect: {why}"
        warnings.append(Problem("resources.regions", message))
    return {}
