"""Reads the named resources of a node or cluster from one line, as in a setting or flag."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.domain.units import parse_amount

if TYPE_CHECKING:
    from holdfast.domain.terms.resources import Amounts

COUNTED = ("cpu", "memory", "gpu")
"""Resources that have fields of their own."""
RESOURCE_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?(/[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?")


def read_offer(text: str) -> Amounts:
    """Read named resources: ``licence/matlab=2,scratch=100Gi``.

    Raises:
        ValueError: The text is invalid; the message says why.
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
