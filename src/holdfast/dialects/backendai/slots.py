"""Resource slots: what Backend.AI calls the amounts of resources."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from holdfast.domain.job import Resources
from holdfast.domain.terms.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.dialects.reading import Fields

CPU, MEMORY, GPU, GPU_SHARES = "cpu", "mem", "cuda.device", "cuda.shares"
SLOTS = (CPU, MEMORY, GPU, GPU_SHARES)
_MOST = (1 << 53) - 1
_THOUSANDTHS = 1000


def read_slots(fields: Fields) -> Resources:
    """Read the resources of each kernel; a resource that is not named is not reserved."""
    amounts: dict[str, Decimal] = {}
    entries: Sequence[Mapping[str, Any]] = fields.value.get("resource_entries") or ()
    for index, entry in enumerate(entries):
        name, amount, path = str(entry["resource_type"]), Decimal(str(entry["quantity"])), f"resource_entries[{index}]"
        if name not in SLOTS:
            fields.problem(f"{path}.resource_type", f"{name!r} is not a resource of this server", allowed=SLOTS)
        elif name in amounts:
            fields.problem(f"{path}.resource_type", f"{name!r} is named twice")
        elif amount > _MOST:
            fields.problem(f"{path}.quantity", f"{entry['quantity']} is too large")
        elif name in {MEMORY, GPU} and amount != amount.to_integral_value():
            fields.problem(f"{path}.quantity", f"{entry['quantity']} is not a whole number")
        elif name == GPU_SHARES and amount > 1:
            hint = f"ask for whole GPUs by {GPU}"
            fields.problem(f"{path}.quantity", f"{entry['quantity']} is more than one GPU", hint=hint)
        else:
            amounts[name] = amount
    if amounts.get(GPU) and amounts.get(GPU_SHARES):
        fields.problem("resource_entries", f"{GPU} and {GPU_SHARES} exclude each other")
    shares = int(amounts.get(GPU_SHARES, Decimal(0)) * _THOUSANDTHS)
    whole, share_m = divmod(shares, _THOUSANDTHS)
    return Resources(
        cpu_m=int(amounts.get(CPU, Decimal(0)) * _THOUSANDTHS),
        memory=int(amounts.get(MEMORY, Decimal(0))),
        gpu=int(amounts.get(GPU, Decimal(0))) + whole,
        share_m=share_m,
    )


def slots_of(resources: Resources, kernels: int = 1) -> dict[str, str]:
    """Return the slots of a number of kernels as decimal numbers."""
    amounts = {
        CPU: Decimal(resources.cpu_m * kernels) / _THOUSANDTHS,
        MEMORY: Decimal(resources.memory * kernels),
        GPU: Decimal(resources.gpu * kernels),
        GPU_SHARES: Decimal(resources.share_m * kernels) / _THOUSANDTHS,
    }
    amounts |= {name: Decimal(amount * kernels) / _THOUSANDTHS for name, amount in resources.named if name != PODS}
    needed = {name: amount for name, amount in amounts.items() if amount or name in {CPU, MEMORY}}
    return {name: f"{amount.normalize():f}" for name, amount in needed.items()}
