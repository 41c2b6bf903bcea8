"""The legal moves of attempts whose runs are pods, as a literal table beside ``lifecycle``'s.

Pods are placed, started and stopped one by one, so none of the phases of a gang applies. How such an attempt ends is
``lifecycle.ENDING_STATUS``, as for any attempt.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from holdfast.domain.lifecycle import AttemptStatus


class PodsAre(StrEnum):
    """How far the pods of an attempt are."""

    RUNNING = "some pod runs"
    GOING = "its pods are being stopped: the Job has failed, or its set deletes it"


@dataclass(frozen=True, slots=True)
class PodMove:
    """One move of an attempt, caused by its pods."""

    name: str
    """Its name in the attempt's history."""
    targets: frozenset[AttemptStatus]
    when: PodsAre
    to: AttemptStatus


A = AttemptStatus
POD_MOVES: tuple[PodMove, ...] = (
    PodMove("PromotePodsToRunning", frozenset({A.PENDING}), PodsAre.RUNNING, A.RUNNING),
    PodMove("StopPods", frozenset({A.PENDING, A.RUNNING}), PodsAre.GOING, A.TERMINATING),
)
"""In the order they are tried; an attempt may make both at once."""
END_PODS = "EndPods"
"""The last step in its history: it ends from any of these statuses, once none of its pods is left."""


def moves(status: AttemptStatus, pods: frozenset[PodsAre]) -> tuple[PodMove, ...]:
    """List the moves an attempt makes now, in order.

    Args:
        status: Where it stands.
        pods: How far its pods are.
    """
    made = []
    for move in POD_MOVES:
        if status in move.targets and move.when in pods:
            made.append(move)
            status = move.to
    return tuple(made)
