"""How a summary of many jobs looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.terms.states import JobState
from holdfast.domain.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.cli.render.output import Output
    from holdfast.wire.figures import SummaryView

_MOST_ROWS = 15


def print_summary(summary: SummaryView, since: str, output: Output) -> None:
    """Print figures and, if anything failed, what and where."""
    output.heading(f"Last {since}")
    output.facts(summary_facts(summary))
    kinds = [(total.kind, str(total.count), rounded(total.lost_s)) for total in summary.failures]
    nodes = [(total.node, str(total.count), rounded(total.lost_s)) for total in summary.nodes]
    for columns, rows in ((("FAILURE", "COUNT", "LOST"), kinds), (("NODE", "FAILURES", "LOST"), nodes)):
        if rows:
            output.text("")
            output.listing(columns).head(rows[:_MOST_ROWS])
        if len(rows) > _MOST_ROWS:
            output.text(f"and {len(rows) - _MOST_ROWS} more: holdfast summary -o json")


def summary_facts(summary: SummaryView) -> list[tuple[str, str]]:
    """List the figures in words."""
    return [
        ("Jobs", states(summary.jobs)),
        ("Attempts", f"{summary.attempts:,}, {summary.retries:,} of them retries"),
        ("Failures", f"{summary.failed:,}, {rounded(summary.lost_s)} lost to them"),
        ("ETTR", _ettr(summary)),
        ("Recovery", _recovery(summary)),
    ]


def states(counts: Mapping[str, int]) -> str:
    """Write how many jobs are in each state, in the order of their lives."""
    parts = [f"{counts[state]:,} {state}" for state in map(str, JobState) if counts.get(state)]
    return ", ".join(parts) or "none"


def _ettr(summary: SummaryView) -> str:
    if summary.ettr is None:
        return "nothing has run"
    productive, wall = rounded(summary.productive_s), rounded(summary.wall_s)
    return f"{summary.ettr:.1%} ({productive} of lasting work in {wall})"


def _recovery(summary: SummaryView) -> str:
    if summary.mean_recovery_s is None:
        return "no failed attempt was followed by another"
    times = "once" if summary.recoveries == 1 else f"{summary.recoveries:,} times"
    return f"{times}, {rounded(summary.mean_recovery_s)} on average from a failure to the next start"


def rounded(seconds: float) -> str:
    """Write a duration without meaningless digits."""
    return format_duration(round(seconds) if seconds >= 1 else round(seconds, 3))
