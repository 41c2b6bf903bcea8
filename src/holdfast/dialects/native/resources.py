"""Reads and writes ``resources``: cpu, memory, GPUs or a share of one, and named resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.dialects.native.offers import COUNTED, RESOURCE_NAME
from holdfast.dialects.reading import Fields, shown
from holdfast.domain.devices import ANY, WHOLE_M, GpuSelector
from holdfast.domain.suggestion import closest
from holdfast.domain.terms.resources import Resources
from holdfast.domain.units import parse_amount

if TYPE_CHECKING:
    from holdfast.domain.terms.resources import Amounts

MOST_GPUS = 1_000_000
MOST_NAMED = 32
LONGEST_TYPE = 100
LONGEST_RESOURCE = 100
SHARED = "shared"
SHARED_M = 250
"""The amount of ``gpu: shared`` in thousandths: at most four such runs share a device."""
_SHARES = "a share of one GPU is a number between 0 and 1 in steps of 0.001, such as 0.25; more are whole: 1, 2, ..."
OFFERED = "nodes offer it with HOLDFAST_RESOURCES, the cluster with: holdfast update settings --resource NAME=AMOUNT"
RESOURCE_RULE = "lower-case letters, digits, '-', '_' and '.', then perhaps '/' and a name: licence/matlab"


def read_resources(spec: Fields) -> tuple[Resources, GpuSelector]:
    """Read ``resources`` and the GPU types that will do."""
    part = spec.nested("resources")
    if part is None:
        return Resources(), ANY
    cpu, memory = part.cpu("cpu"), part.memory("memory")
    (gpu, share_m), device_type = _read_gpu(part)
    named = read_named(part)
    part.finish()
    default = Resources()
    cpu_m = default.cpu_m if cpu is None else cpu
    return Resources(cpu_m, default.memory if memory is None else memory, gpu, share_m, named), device_type


def _read_gpu(part: Fields) -> tuple[tuple[int, int], GpuSelector]:
    value = part.raw("gpu")
    if not isinstance(value, dict):
        return _gpu_amount(part, "gpu", value), ANY
    inner = Fields(value, part.at("gpu"), part.problems)
    count = _gpu_amount(inner, "count", 1 if inner.raw("count") is None else inner.raw("count"))
    pattern, memory = inner.text("type", longest=LONGEST_TYPE), inner.memory("memory")
    inner.finish()
    return count, GpuSelector(pattern or "", memory or 0)


def _gpu_amount(part: Fields, name: str, value: object) -> tuple[int, int]:
    if value is None:
        return 0, 0
    try:
        return parse_gpus(value)
    except ValueError as error:
        part.problem(name, str(error), allowed=(f"0 to {MOST_GPUS}", "0.001 to 0.999", SHARED), hint=_SHARES)
        return 0, 0


def parse_gpus(value: object) -> tuple[int, int]:
    """Read whole GPUs, or a share of one in thousandths: ``2``, ``0.25``, ``shared``.

    Raises:
        ValueError: It is neither.
    """
    if value == SHARED:
        return 0, SHARED_M
    try:
        whole, rest = divmod(parse_amount(value), WHOLE_M)
    except ValueError:
        whole, rest = -1, 0
    if whole < 0 or whole > MOST_GPUS or (whole and rest):
        msg = f"{shown(value)} is neither a number of GPUs nor a share of one"
        raise ValueError(msg)
    return whole, rest


def read_named(part: Fields) -> Amounts:
    """Read named resources from the fields that nothing else has read; 0 is not an amount."""
    return tuple((name, amount) for name, amount in read_ceilings(part) if amount)


def read_ceilings(part: Fields) -> Amounts:
    """Read amounts like ``read_named``, and keep those that are 0."""
    named = {}
    others = [name for name in part.value if name not in COUNTED]
    if len(others) > MOST_NAMED:
        part.problem("", f"names {len(others)} resources; at most {MOST_NAMED} are allowed")
    for name in others[:MOST_NAMED]:
        hint = closest(str(name), COUNTED)
        if hint is not None and "/" not in str(name):
            continue  # A typing error, reported as an unknown field.
        value = part.raw(name)
        if not RESOURCE_NAME.fullmatch(str(name)) or len(str(name)) > LONGEST_RESOURCE:
            part.problem(str(name), f"{shown(name)} is not the name of a resource", hint=RESOURCE_RULE)
            continue
        try:
            if value is not None:
                named[str(name)] = parse_amount(value)
        except ValueError as error:
            part.problem(str(name), str(error))
    return tuple(sorted(named.items()))


def write_resources(resources: Resources, gpus: GpuSelector) -> dict[str, Any]:
    """Write ``resources``; they read back equal."""
    whole, rest = divmod(resources.cpu_m, 1000)
    written = {"cpu": f"{resources.cpu_m}m" if rest else whole, "memory": resources.memory}
    count = plain_amount(resources.gpu * 1000 + resources.share_m)
    return {
        **written,
        "gpu": count if gpus == ANY else _write_selected(count, gpus),
        **{name: plain_amount(amount) for name, amount in resources.named},
    }


def _write_selected(count: float, gpus: GpuSelector) -> dict[str, Any]:
    kind = {"type": gpus.type} if gpus.type else {}
    return {"count": count, **kind, **({"memory": gpus.memory} if gpus.memory else {})}


def plain_amount(amount: int) -> float:
    """Write thousandths as a number, without a fraction if possible."""
    whole, rest = divmod(amount, 1000)
    return amount / 1000 if rest else whole
