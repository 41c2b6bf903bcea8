"""Turns the shim's report of a run into an observation; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.domain.failure import ContainerResult, EndedBy, RunOutcome
from holdfast.ports.engine import Observation, RunPhase

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTAINER = "main"
"""What the one process of a local run is called in rules."""


def observation(report: Mapping[str, Any]) -> Observation:
    """Build the observation of one run."""
    facts = report["outcome"]
    return Observation(
        uid=report["uid"],
        phase=RunPhase(report["phase"]),
        started_at=report["started_at"],
        outcome=None if facts is None else _outcome(report, facts),
        progress=report["progress"],
    )


def _outcome(report: Mapping[str, Any], facts: Mapping[str, Any]) -> RunOutcome:
    return RunOutcome(
        containers=_containers(facts),
        conditions=frozenset(facts.get("conditions", ())),
        ended_by=EndedBy(facts["ended_by"]),
        started=facts["started"],
        started_at=report["started_at"],
        ended_at=facts["ended_at"],
        node=report["node"] or None,
        message=facts.get("note", ""),
        log_tail=tuple(facts.get("log_tail", ())),
        progress=report["progress"],
        peak_memory=facts.get("peak_memory"),
    )


def _containers(facts: Mapping[str, Any]) -> tuple[ContainerResult, ...]:
    """Return the process as a container; none for a run that never had one."""
    if "reason" not in facts and not facts.get("message"):
        return ()
    result = ContainerResult(
        exit_code=facts.get("exit_code"),
        name=CONTAINER,
        signal=facts.get("signal"),
        reason=facts.get("reason", ""),
        message=facts.get("message", ""),
    )
    return (result,)
