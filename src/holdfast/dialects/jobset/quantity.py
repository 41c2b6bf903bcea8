"""Reads Kubernetes quantities: ``500m``, ``1.5Gi``, ``129e6``."""

from __future__ import annotations

import math
import re
from decimal import Decimal

from holdfast.domain.units import parse_cpu, parse_memory

_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,3}))?")
_DECIMAL = {letter: Decimal(10) ** (3 * power) for power, letter in enumerate("num", start=-3)} | {
    letter: Decimal(10) ** (3 * power) for power, letter in enumerate("kMGTPE", start=1)
}
_BINARY = {f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", start=1)}
_FACTOR = {**_DECIMAL, **_BINARY}


def parse_quantity(value: object) -> Decimal:
    """Parse a Kubernetes quantity (apimachinery ``resource.Quantity``).

    Raises:
        ValueError: It is not a quantity, or negative.
    """
    text = "" if isinstance(value, bool) else str(value)
    match = _QUANTITY.fullmatch(text)
    if match is None:
        msg = f"{value!r} is not a quantity; write for example 2, 500m, 512Mi or 2Gi"
        raise ValueError(msg)
    number = Decimal(match[1])
    if number < 0:
        msg = f"{value!r} must be greater than or equal to 0"
        raise ValueError(msg)
    if match[2]:
        return number * _FACTOR[match[2]]
    return number.scaleb(int(match[3])) if match[3] else number


def kube_cpu(value: object) -> int:
    """Read cpu in millicores, rounded up as Kubernetes does.

    Raises:
        ValueError: Not a quantity, or out of range.
    """
    return parse_cpu(f"{math.ceil(parse_quantity(value) * 1000)}m")


def kube_memory(value: object) -> int:
    """Read memory in bytes, rounded up as Kubernetes does.

    Raises:
        ValueError: Not a quantity, or out of range.
    """
    return parse_memory(math.ceil(parse_quantity(value)))


def kube_amount(value: object) -> int:
    """Read an amount of a named resource in thousandths, rounded up.

    Raises:
        ValueError: Not a quantity.
    """
    return math.ceil(parse_quantity(value) * 1000)


def kube_count(value: object) -> int:
    """Read a count of something indivisible, such as GPUs.

    Raises:
        ValueError: Not a quantity, or not a whole one.
    """
    number = parse_quantity(value)
    if number != number.to_integral_value():
        msg = f"{value!r} must be an integer"
        raise ValueError(msg)
    return int(number)
