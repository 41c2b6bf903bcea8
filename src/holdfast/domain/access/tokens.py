"""API tokens, of which only a hash of the secret is stored, and the tokens that running jobs are given."""

from __future__ import annotations

from holdfast.domain.access.grants import Right
from holdfast.domain.access.people import Limit, Role, Scope
from holdfast.domain.access.places import WorkScope
from holdfast.domain.record import Struct

API_TOKEN_PREFIX = "hft_"  # noqa: S105 - no secret
"""Followed by the token's id, an underscore and the secret."""


class ApiToken(Struct, frozen=True):
    """An API token."""

    name: str
    id: str
    digest: str
    """SHA-256 of the secret, which is long and random, so that nothing slower is needed."""
    user: str
    """The user that a caller with this token acts as."""
    uid: int | None
    """The uid of that user's Unix account, if there is one."""
    role: Role
    scopes: tuple[Scope, ...] = ()
    created_at: float = 0.0
    created_by: str = ""
    expires_at: float | None = None
    revoked_at: float | None = None
    used_at: float | None = None
    """The day it was last used."""

    @property
    def limit(self) -> Limit:
        """What its user may do with it."""
        return Limit(self.role, self.scopes)

    def over(self, now: float) -> bool:
        """Whether it is no longer valid."""
        return self.revoked_at is not None or (self.expires_at is not None and self.expires_at <= now)

    def state(self, now: float) -> str:
        """Return ``Valid``, ``Expired`` or ``Revoked``."""
        return "Revoked" if self.revoked_at is not None else "Expired" if self.over(now) else "Valid"


JOB_TOKEN_PREFIX = "hfj_"  # noqa: S105 - no secret
"""Followed by the run's uid, an underscore and the secret."""
WORK = "job"
"""The kind in a scope that covers all work."""
BELOW_IT = (Right.SUBMIT, Right.WATCH, Right.LOGS, Right.CANCEL)
"""What a job may do to the jobs below it."""
OF_ITSELF = (Right.WATCH, Right.LOGS)
"""What a job may do to itself; it ends by returning."""


def job_token_limit(job_id: str, group: str, *, submits: bool) -> Limit:
    """Return the limits of a job's token, which acts for the job's owner for as long as the run lasts.

    Args:
        job_id: The job.
        group: The group of the jobs it submits.
        submits: Whether it may submit more jobs; not once it is about to be ended with everything below it.
    """
    below = tuple(right.value for right in BELOW_IT if submits or right is not Right.SUBMIT)
    own = tuple(right.value for right in OF_ITSELF)
    return Limit(
        Role.USER,
        (
            Scope(below, WORK, WorkScope(group=f"{group}/")),
            Scope(own, WORK, WorkScope(job=job_id)),
        ),
    )
