"""What is printed of work of any kind that has no columns of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.render.words import age

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.render.words import Table
    from holdfast.wire.workloads import WorkloadView


def workload_table(workloads: Sequence[WorkloadView], *, now_s: float, wide: bool = False) -> Table:
    """Tabulate work of a kind, one a row; ages are counted to ``now_s``, in seconds since the epoch."""
    rows = [
        (
            workload.name,
            workload.state,
            age(workload.created_at, now_s),
            workload.reason,
            *((workload.id, workload.queue, workload.submitted_by) * wide),
        )
        for workload in workloads
    ]
    return ("NAME", "STATE", "AGE", "REASON", *(("ID", "QUEUE", "USER") * wide)), rows
