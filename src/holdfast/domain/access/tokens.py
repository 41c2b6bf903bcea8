"""API tokens as they are kept: whose they are and for what, and of the secret only a hash."""

from __future__ import annotations

from holdfast.domain.access.people import Limit, Role, Scope
from holdfast.domain.record import Struct

BEGINS = "hft_"
"""What the text of a token begins with: then come its id, an underscore and the secret."""


class ApiToken(Struct, frozen=True):
    """A token that somebody was given."""

    name: str
    id: str
    digest: str
    """SHA-256 of the secret, which is long and random, so that nothing slower is needed."""
    user: str
    """Who is taken for calling when it is shown."""
    uid: int | None
    """The number of that one's Unix account, where there is one."""
    role: Role
    scopes: tuple[Scope, ...] = ()
    created_at: float = 0.0
    created_by: str = ""
    expires_at: float | None = None
    revoked_at: float | None = None
    used_at: float | None = None
    """When it was last used, to the day."""

    @property
    def limit(self) -> Limit:
        """What it keeps its user to."""
        return Limit(self.role, self.scopes)

    def over(self, now: float) -> bool:
        """Whether it opens nothing any more."""
        return self.revoked_at is not None or (self.expires_at is not None and self.expires_at <= now)

    def state(self, now: float) -> str:
        """Say in a word whether it opens anything."""
        return "Revoked" if self.revoked_at is not None else "Expired" if self.over(now) else "Valid"
