"""Computes how much memory the next attempt requests.

Amounts are whole bytes. A factor is taken as the decimal number that was written, so 1.1 x 1000 is 1100 and not 1101.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
        numerator, denominator = Fraction(repr(growth.factor)).as_integer_ratio()
        grown = -(-grown * numerator // denominator)
    if growth.max is not None:
        grown = min(grown, growth.max)
    return max(memory, grown)
