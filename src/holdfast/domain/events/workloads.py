"""The events of workloads of any kind."""

from __future__ import annotations

from holdfast.domain.record import Struct


class WorkloadQuarantined(Struct, frozen=True):
    """An error inside Holdfast while handling a workload; it is left alone, and no others are affected."""

    workload: str
    """Its id."""
    kind: str
    """``gang``, ``kubejob`` or ``jobset``; ``job`` if not even the kind could be determined."""
    message: str


class WorkloadReleased(Struct, frozen=True):
    """A workload is handled again, after a user's request or a server restart."""

    workload: str
    kind: str


WorkloadEvent = WorkloadQuarantined | WorkloadReleased
