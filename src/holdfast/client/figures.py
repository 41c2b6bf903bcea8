"""The calls about many jobs at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.wire.base import API
from holdfast.wire.figures import JobNames, OverviewView, SummaryView, UsageReport

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.client.connection import Connection


class FigureCalls:
    """Figures of many jobs."""

    _connection: Connection

    def summary(
        self, *, within_s: int | None = None, queue: str | None = None, labels: Mapping[str, str] | None = None
    ) -> SummaryView:
        """Sum up the jobs of the last ``within_s`` seconds, by default a day, of a queue and with labels if given."""
        pairs = [f"{name}={value}" for name, value in (labels or {}).items()]
        where = {"within_s": within_s, "queue": queue, "label": pairs or None}
        return self._connection.get(f"{API}/summary", SummaryView, where)

    def report(self, share: str, *, label: str | None = None, within_s: int | None = None) -> UsageReport:
        """Report usage in the last ``within_s`` seconds, by default 30 days.

        Args:
            share: By ``user``, ``queue``, ``group`` or ``label``.
            label: Which label.
            within_s: How far back to look.
        """
        where = {"share": share, "label": label, "within_s": within_s}
        return self._connection.get(f"{API}/report", UsageReport, where)

    def overview(self, *, limit: int = 50, named: str = "") -> OverviewView:
        """Read the state of everything now, with up to ``limit`` running and failing jobs, by part of their names."""
        return self._connection.get(f"{API}/overview", OverviewView, {"limit": limit, "named": named or None})

    def job_names(self, prefix: str = "") -> list[str]:
        """List up to 200 names with a prefix, of jobs that belong to no job set or array."""
        return self._connection.get(f"{API}/job-names", JobNames, {"prefix": prefix}).items
