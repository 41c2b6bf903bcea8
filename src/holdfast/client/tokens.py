"""The calls about API tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from holdfast.wire.base import API
from holdfast.wire.catalogue import TokenMade, TokenPage, TokenView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.client.connection import Connection


class TokenCalls:
    """What can be done with API tokens."""

    _connection: Connection

    def create_token(
        self,
        name: str,
        *,
        user: str | None = None,
        role: str | None = None,
        scopes: Sequence[str] = (),
        expires_s: float | None = None,
    ) -> TokenMade:
        """Make a token; its text is in this answer only.

        Args:
            name: What it is called.
            user: Who is taken for calling when it is shown; by default who asks.
            role: At most this; by default as much as its user may.
            scopes: What it is for, each as ``verbs@kind``, or of work in one place ``verbs@job:queue=NAME`` or
                ``verbs@job:group=GROUP``; by default everything.
            expires_s: In how many seconds it expires; by default never.
        """
        body = {"name": name, "user": user, "role": role, "scopes": [*scopes], "expires_s": expires_s}
        return self._connection.call(TokenMade, "POST", f"{API}/tokens", json=body)

    def tokens(self) -> list[TokenView]:
        """List one's own, or for admins all, by name."""
        return self._connection.get(f"{API}/tokens", TokenPage).items

    def revoke_token(self, name: str) -> TokenView:
        """Have a token open nothing any more."""
        return self._connection.call(TokenView, "POST", f"{API}/tokens/{quote(name, safe='')}/revoke")
