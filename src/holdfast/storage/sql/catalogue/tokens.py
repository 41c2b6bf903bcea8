"""API tokens, which are part of the catalogue: whoever has read that need not ask for a token again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.compiled.codec import dump_entry
from holdfast.domain import audit
from holdfast.domain.audit import Act, Subject
from holdfast.domain.record import evolve
from holdfast.ports import presence
from holdfast.storage import permissions
from holdfast.storage.sql import declared
from holdfast.storage.sql.catalogue.entries import SqlCatalogueStore, put_entry

if TYPE_CHECKING:
    from holdfast.domain.access.tokens import ApiToken
    from holdfast.domain.audit import Caller


class SqlTokenStore(SqlCatalogueStore):
    """The part of the catalogue that opens the door."""

    def put_token(self, token: ApiToken, now: float, *, caller: Caller | None = None) -> None:
        with self._editing() as (connection, before):
            permissions.require_free_token(before.tokens.get(token.name), now)
            put_entry(connection, declared.api_tokens, token.name, dump_entry(token))
            self._tell(connection, audit.on_token(caller, Act.CREATE, token.name, f"for {token.user} as {token.role}"))

    def revoke_token(self, name: str, now: float, *, caller: Caller | None = None) -> ApiToken:
        with self._editing() as (connection, before):
            presence.require_presence(Subject.TOKEN, name, existing=before.tokens.keys(), create=False)
            token = before.tokens[name]
            if token.revoked_at is None:
                token = evolve(token, revoked_at=now)
                put_entry(connection, declared.api_tokens, name, dump_entry(token))
                self._tell(connection, audit.on_token(caller, Act.DELETE, name, f"of {token.user}"))
            return token

    def use_token(self, token: ApiToken, at: float) -> None:
        with self._editing() as (connection, before):
            stored = before.tokens.get(token.name)
            if stored is not None and stored.id == token.id and (stored.used_at is None or stored.used_at < at):
                put_entry(connection, declared.api_tokens, token.name, dump_entry(evolve(stored, used_at=at)))
