"""Amounts of capacity: what a run asks for and what a node offers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Resources:
    """An amount of capacity, asked for by one run or offered by one node."""

    cpu_m: int = 1000
    """Millicores."""
    memory: int = 0
    """Bytes; as a request 0 means no limit and none reserved."""
    gpu: int = 0

    def fits(self, free: Resources) -> bool:
        """Whether this request fits into what is free."""
        return self.cpu_m <= free.cpu_m and self.memory <= free.memory and self.gpu <= free.gpu

    def __add__(self, other: Resources) -> Resources:
        """Sum, per dimension."""
        return Resources(self.cpu_m + other.cpu_m, self.memory + other.memory, self.gpu + other.gpu)

    def __sub__(self, other: Resources) -> Resources:
        """Difference, per dimension; may be negative when a node shrank under its load."""
        return Resources(self.cpu_m - other.cpu_m, self.memory - other.memory, self.gpu - other.gpu)


UNLIMITED = Resources(10**12, 1 << 60, 10**9)
"""What a place offers that takes whatever comes, because an engine behind it has a queue of its own."""
