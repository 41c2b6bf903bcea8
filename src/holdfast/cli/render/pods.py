"""How the pods of a job look: counts in a cell, facts and conditions in ``describe`` and ``why``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.render.words import when

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.render.words import Table
    from holdfast.wire.jobs import ConditionView, PodsView


def pod_counts(pods: PodsView) -> str:
    """Write counts that are not zero: ``2 active, 1 succeeded``."""
    counts = {
        "active": pods.active,
        "terminating": pods.terminating,
        "succeeded": pods.succeeded,
        "failed": pods.failed,
    }
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "none"


def pod_facts(pods: PodsView) -> list[tuple[str, str]]:
    """List what is known of the pods of a job; what is not is left out."""
    message = (
        "until one succeeds and all have ended"
        if pods.completions is None
        else f"{pods.completions} completion{'' if pods.completions == 1 else 's'}"
    )
    facts = [
        ("Pods", f"{pods.parallelism} at once, {message}"),
        ("Pods now", f"{pod_counts(pods)}; {pods.ready} ready"),
        ("Program restarts", str(pods.restarts or "")),
        ("Completed indexes", pods.completed_indexes),
        ("Failed indexes", pods.failed_indexes),
        ("Suspended", "yes" if pods.suspended else ""),
    ]
    return [(name, value) for name, value in facts if value]


def condition_table(conditions: Sequence[ConditionView]) -> Table:
    """Tabulate conditions, those that do not hold any more, too."""
    rows = [
        (condition.type, str(condition.status), condition.reason, when(condition.since), condition.message)
        for condition in conditions
    ]
    return ("TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"), rows
