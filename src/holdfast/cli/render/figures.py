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


def print_summary(found: SummaryView, since: str, output: Output) -> None:
    """Print figures and, if anything failed, what and where."""
    output.heading(f"Last {since}")
    output.facts(summary_facts(found))
    kinds = [(one.kind, str(one.count), rounded(one.lost_s)) for one in found.failures]
    nodes = [(one.node, str(one.count), rounded(one.lost_s)) for one in found.nodes]
    for columns, rows in ((("FAILURE", "COUNT", "LOST"), kinds), (("NODE", "FAILURES", "LOST"), nodes)):
        if rows:
            output.text("")
            output.listing(columns).head(rows[:_MOST_ROWS])
        if len(rows) > _MOST_ROWS:
            output.text(f"and {len(rows) - _MOST_ROWS} more: holdfast summary -o json")


def summary_facts(found: SummaryView) -> list[tuple[str, str]]:
    """List the figures in words."""
    return [
        ("Jobs", states(found.jobs)),
        ("Attempts", f"{found.attempts:,}, {found.retries:,} of them retries"),
        ("Failures", f"{found.failed:,}, {rounded(found.lost_s)} lost to them"),
        ("ETTR", _ettr(found)),
        ("Recovery", _recovery(found)),
    ]


def states(counts: Mapping[str, int]) -> str:
    """Write how many jobs are in each state, in the order of their lives."""
    told = [f"{counts[state]:,} {state}" for state in map(str, JobState) if counts.get(state)]
    return ", ".join(told) or "none"


def _ettr(found: SummaryView) -> str:
    if found.ettr is None:
        return "nothing has run"
    productive, wall = rounded(found.productive_s), rounded(found.wall_s)
    return f"{found.ettr:.1%} ({productive} of lasting work in {wall})"


def _recovery(found: SummaryView) -> str:
    if found.mean_recovery_s is None:
        return "no failed attempt was followed by another"
    times = "once" if found.recoveries == 1 else f"{found.recoveries:,} times"
    return f"{times}, {rounded(found.mean_recovery_s)} on average from a failure to the next start"


def rounded(seconds: float) -> str:
    """Write a duration with no more digits than mean something."""
    return format_duration(round(seconds) if seconds >= 1 else round(seconds, 3))
