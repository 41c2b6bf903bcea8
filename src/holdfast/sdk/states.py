"""The states of jobs as types, so that a type checker finds one that is misspelt."""

from __future__ import annotations

from typing import Literal, TypeAlias

State: TypeAlias = Literal["Queued", "Running", "BackOff", "Held", "Waiting", "Succeeded", "Failed", "Cancelled"]
"""What a job can be."""
Ended: TypeAlias = Literal["Succeeded", "Failed", "Cancelled"]
"""What a job stays."""
ENDED: frozenset[State] = frozenset({"Succeeded", "Failed", "Cancelled"})
