"""Reads what a place has by name, from one line: what a setting or a flag says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.domain.units import parse_amount

if TYPE_CHECKING:
    from holdfast.domain.terms.resources import Amounts

COUNTED = ("cpu", "memory", "gpu")
"""What needs no name."""
RESOURCE_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?(/[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?")


def read_offer(text: str) -> Amounts:
    """Read what a node or the cluster has by name: ``licence/matlab=2,scratch=100Gi``.

    Raises:
        ValueError: It is not that, with what is wrong with it.
    """
    named: dict[str, int] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, equals, amount = (piece.strip() for piece in part.partition("="))
        if not equals or not RESOURCE_NAME.fullmatch(name):
            msg = f"{part!r} is not NAME=AMOUNT; write for example licence/matlab=2,scratch=100Gi"
            raise ValueError(msg)
        if name in COUNTED or name in named:
            msg = f"{name!r} is given twice" if name in named else f"{name!r} is not counted by a name"
            raise ValueError(msg)
        named[name] = parse_amount(amount)
    return tuple(sorted(named.items()))
