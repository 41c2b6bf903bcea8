"""Computes how much memory the next attempt asks for.

Amounts are whole bytes. A factor is taken as the decimal number people wrote, so 1.1 x 1000 is 1100 and not 1101.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.policy.model import MemoryGrowth


def grow(memory: int, growth: MemoryGrowth) -> int:
    """Grow a request once; it compounds when fed its own result.

    Args:
        memory: The request so far in bytes; 0 means there is none, and stays so.
        growth: By what factor or amount, and up to what.

    Returns:
        The new request, rounded up to whole bytes and never smaller than before.
    """
    if memory <= 0:
        return memory
    grown = memory + (growth.static or 0)
    if growth.factor is not None:
        numerator, denominator = _exact(growth.factor)
        grown = -(-grown * numerator // denominator)
    if growth.max is not None:
        grown = min(grown, growth.max)
    return max(memory, grown)


def grow_containers(
    main: Mapping[str, int | None],
    init: Mapping[str, int | None],
    *,
    factor: float | None = None,
    static: int | None = None,
) -> dict[str, int]:
    """Divide a growth among the containers of a pod, as Armada does.

    The factor applies to each container. The static amount is shared among the main containers in proportion to
    their memory; each init container gets all of it, because init containers run one at a time, before the others.

    Args:
        main: Memory of the main containers by name, in bytes; ``None`` asks for none and is left alone.
        init: Memory of the init containers, likewise.
        factor: What to multiply by.
        static: Bytes to add, after multiplying.

    Returns:
        The new memory of every container that has any, rounded down, so that the pod never outgrows its grant.
    """
    numerator, denominator = _exact(1.0 if factor is None else factor)
    total = sum(size for size in main.values() if size)
    amount = static or 0
    shares = {name: (size, amount * size // total) for name, size in main.items() if size}
    shares |= {name: (size, amount) for name, size in init.items() if size}
    return {name: size * numerator // denominator + share for name, (size, share) in shares.items()}


def _exact(factor: float) -> tuple[int, int]:
    return Fraction(repr(factor)).as_integer_ratio()
