"""The calls about many jobs at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.wire.base import API
from holdfast.wire.figures import JobNames, OverviewView, SummaryView, UsageReport

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.client.connection import Connection


class FigureCalls:
    """What can be asked about many jobs at once."""

    _connection: Connection

    def summary(
        self, *, within_s: int | None = None, queue: str | None = None, labels: Mapping[str, str] | None = None
    ) -> SummaryView:
        """Sum up what became of jobs, of a queue and with these labels, in the last ``within_s`` seconds; or a day."""
        pairs = [f"{name}={value}" for name, value in (labels or {}).items()]
        where = {"within_s": within_s, "queue": queue, "label": pairs or None}
        return self._connection.get(f"{API}/summary", SummaryView, where)

    def report(self, share: str, *, label: str | None = None, within_s: int | None = None) -> UsageReport:
        """Report who had how much in the last ``within_s`` seconds, or 30 days.

        Args:
            share: By ``user``, ``queue``, ``group`` or ``label``.
            label: Which label.
            within_s: How far back to look.
        """
        where = {"share": share, "label": label, "within_s": within_s}
        return self._connection.get(f"{API}/report", UsageReport, where)

    def overview(self, *, limit: int = 50, named: str = "") -> OverviewView:
        """See how everything is now; of jobs that run, and of those that fail, so many whose names contain a text."""
        return self._connection.get(f"{API}/overview", OverviewView, {"limit": limit, "named": named or None})

    def job_names(self, prefix: str = "") -> list[str]:
        """List names that begin so, at most 200, of jobs that belong to no job set or array."""
        return self._connection.get(f"{API}/job-names", JobNames, {"prefix": prefix}).items
