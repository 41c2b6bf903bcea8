"""What people meet of a rollout."""

from __future__ import annotations

from holdfast.domain.terms.kinds import KindInfo, SubjectName

ROLLOUT = KindInfo(
    name="rollout",
    noun="rollout",
    plural="rollouts",
    spellings=("rollout", "rollouts"),
    subject=SubjectName("rollout"),
    states=("Progressing", "Available", "Deleting"),
    success="Available",
    ended=frozenset(),
    paused={},
    aside=("Deleting",),
    parts="jobs",
    manifest="Rollout",
    package=__package__,
)
