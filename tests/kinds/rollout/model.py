"""What a rollout should be, what is stored of one, and what others have to know of it."""

from __future__ import annotations

from holdfast.compiled.codec import load_as, load_spec
from holdfast.compiled.workloads import Needs, Stored
from holdfast.domain.record import Struct
from holdfast.domain.workloads.base import Owner
from tests.kinds.rollout.words import ROLLOUT


class RolloutSpec(Struct, frozen=True):
    """Replicas of a program that are replaced without a moment in which there are too few."""

    replicas: int
    template: str
    """Of the job that each is."""
    suspended: bool = False
    """Whether none of it is to run."""


class RolloutState(Struct, frozen=True):
    up_since: float | None = None
    """Since when all replicas of the newest generation are ready."""


class Rollout(Owner, frozen=True, kw_only=True):
    state: RolloutState = RolloutState()

    kind = ROLLOUT.name
    info = ROLLOUT
    noun = ROLLOUT.noun

    def phase(self, spec: object) -> str:
        """Say whether all of it is there."""
        del spec
        if self.deleting or spec_of(self).suspended:
            return "Deleting" if self.deleting else "Suspended"
        return "Progressing" if self.state.up_since is None else "Available"


def spec_of(row: Rollout) -> RolloutSpec:
    """Read what one should be."""
    return load_as(RolloutSpec, row.spec)


def needs_of(row: Rollout) -> Needs:
    """Keep the queue and the policies that its jobs will need."""
    job = load_spec(spec_of(row).template)
    return Needs(queue=job.queue, policies=job.retry_policies)


STORED = Stored(Rollout, needs=needs_of)
