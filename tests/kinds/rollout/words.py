"""What people meet of a rollout."""

from __future__ import annotations

from holdfast.domain.terms.kinds import KindInfo, SubjectName

ROLLOUT = KindInfo(
    name="rollout",
    noun="rollout",
    plural="rollouts",
    spellings=("rollout", "rollouts"),
    subject=SubjectName("rollout"),
    states=("Progressing", "Available", "Suspended", "Deleting"),
    success="Available",
    ended=frozenset(),
    paused={"Suspended": "{0} is suspended; to resume it: holdfast resume rollout {0}"},
    aside=("Deleting",),
    acts=("cancel", "suspend", "resume"),
    parts="jobs",
    manifest="Rollout",
    package=__package__,
)
