"""The events of workloads of any kind."""

from __future__ import annotations

from holdfast.domain.record import Struct


class WorkloadQuarantined(Struct, frozen=True):
    """Looking after a workload failed in Holdfast itself; it is left alone, and nobody else is affected."""

    workload: str
    """Its id."""
    kind: str
    """``gang``, ``kubejob`` or ``jobset``; ``job`` where it could not even be told which."""
    message: str


class WorkloadReleased(Struct, frozen=True):
    """A workload is looked after again: a person asked for something, or the server was restarted."""

    workload: str
    kind: str


WorkloadEvent = WorkloadQuarantined | WorkloadReleased
