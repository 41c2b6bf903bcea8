"""Turns an explanation into its wire model; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.wire.decisions import Why
from holdfast.wire.render_decisions import decision_view
from holdfast.wire.render_jobs import telling_container

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.failure import Failure
    from holdfast.domain.job import Attempt, Job


def why_view(job: Job, *, attempt: Attempt | None, headline: str, summary: Sequence[str]) -> Why:
    """Show why a job is where it is."""
    facts = _facts(attempt.failure) if attempt and attempt.failure else {}
    decision = attempt.decision if attempt else None
    return Why(
        job=job.id,
        name=job.name,
        state=str(job.state),
        attempt=attempt.number if attempt else None,
        headline=headline,
        summary=list(summary),
        decision=decision_view(decision, retry_at=attempt.retry_at) if attempt and decision else None,
        **facts,
    )


def _facts(failure: Failure) -> dict[str, Any]:
    container = telling_container(failure)
    return {
        "cause": str(failure.cause),
        "category": failure.category or None,
        "subcategory": failure.subcategory or None,
        "hint": failure.hint or None,
        "conditions": sorted(failure.conditions),
        "message": failure.message,
        "exit_code": container.exit_code if container else None,
        "signal": container.signal if container else None,
        "node": failure.node,
    }
