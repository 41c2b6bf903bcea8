"""What people meet of a rollout."""

from __future__ import annotations

from holdfast.domain.terms.kinds import KindInfo

ROLLOUT = KindInfo(
    name="rollout",
    noun="rollout",
    plural="rollouts",
    spellings=("rollout", "rollouts"),
    subject="rollout",
    states=("Progressing", "Available", "Deleting"),
    success="Available",
    ended=frozenset(),
    paused={},
    aside=("Deleting",),
    parts="jobs",
    manifest="Rollout",
)
