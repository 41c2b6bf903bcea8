"""The catalogue that operators edit: policies with every revision, queues, categories, settings and tokens.

An edit, its checks and the catalogue's new version are one transaction.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, select, update

from holdfast.compiled.codec import OperatorSettings, dump_entry, load_entry
from holdfast.domain import audit
from holdfast.domain.access.grants import AS_BEFORE, Access
from holdfast.domain.audit import Act, Subject
from holdfast.domain.policy.model import RetryPolicy
from holdfast.domain.record import evolve
from holdfast.errors import AlreadyExists, InvalidRequest, Problem
from holdfast.ports.entries import kind_of_entry, no_such, require_presence
from holdfast.storage.sql import declared
from holdfast.storage.sql.catalogue.kinds import Edit, delete_body, keeping_of, move_version, put_body
from holdfast.storage.sql.catalogue.reading import CORDON, SETTINGS, read_catalogue, read_pause
from holdfast.storage.sql.logs import append_audited
from holdfast.storage.sql.part import StorePart

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from sqlalchemy import Connection

    from holdfast.domain.access.tokens import ApiToken
    from holdfast.domain.audit import AuditedChange, Caller
    from holdfast.domain.file_settings import FileSettings
    from holdfast.domain.placement.cordon import Cordon, Pause
    from holdfast.domain.policy.model import RetrySettings
    from holdfast.ports.catalogue import Catalogue
    from holdfast.ports.entries import E, EntryKind

_REVISION_NOUN = "revision of a retry policy"
_LOCK = select(declared.settings.c.id).with_for_update()
_REVISION = select(declared.policy_revisions.c.body).where(
    declared.policy_revisions.c.name == bindparam("of_policy"),
    declared.policy_revisions.c.revision == bindparam("number"),
)


class SqlCatalogueStore(StorePart):
    """``CatalogueStore``: the part of the store that operators edit."""

    def catalogue(self) -> Catalogue:
        with self._database.reading() as connection:
            return read_catalogue(connection)

    def put_entry(
        self,
        entry: E,
        *,
        create: bool | None = None,
        caller: Caller | None = None,
        if_match: Collection[str] | None = None,
    ) -> E:
        kind = kind_of_entry(entry)
        return self.edit_entry(kind, entry.name, lambda _: entry, create=create, caller=caller, if_match=if_match)

    def edit_entry(
        self,
        kind: EntryKind[E],
        name: str,
        edit: Callable[[E | None], E],
        *,
        create: bool | None = None,
        caller: Caller | None = None,
        if_match: Collection[str] | None = None,
    ) -> E:
        noun, keeping = kind.info.noun, keeping_of(kind)
        with self._editing() as (connection, before):
            require_presence(noun, name, existing=before.names_of(kind), create=create)
            current, this = before.of(kind).get(name), Edit(connection, before, caller)
            entry = edit(current)
            keeping.require_storable(this, current, entry, if_match)
            if current is not None and keeping.is_same(current, entry) and f"{noun} {name}" not in before.unreadable:
                return current
            stored = keeping.store(this, current, entry)
            act = Act.CREATE if current is None else Act.UPDATE
            self._tell(connection, audit.on_entry(caller, act, kind.info.subject, name, *keeping.revision(stored)))
            return stored

    def policy_revision(self, name: str, revision: int) -> RetryPolicy:
        with self._database.reading() as connection:
            body = connection.execute(_REVISION, {"of_policy": name, "number": revision}).scalar()
        if body is None:
            raise no_such(_REVISION_NOUN, f"{name}@{revision}")
        return load_entry(RetryPolicy, body)

    def delete_entry(
        self,
        kind: EntryKind[E],
        name: str,
        *,
        caller: Caller | None = None,
        if_match: Collection[str] | None = None,
        detach: bool = False,
    ) -> None:
        keeping = keeping_of(kind)
        with self._editing() as (connection, before):
            this = Edit(connection, before, caller)
            require_presence(kind.info.noun, name, existing=before.names_of(kind), create=False)
            keeping.require_deletable(this, name, if_match)
            keeping.erase(this, name)
            for change in keeping.release(this, name, detach=detach):
                self._tell(connection, change)
            revision = keeping.revision(before.of(kind).get(name))
            self._tell(connection, audit.on_entry(caller, Act.DELETE, kind.info.subject, name, *revision))

    def put_cordon(self, cordon: Cordon, *, caller: Caller | None = None) -> None:
        with self._editing() as (connection, before):
            unreadable = f"cordon {cordon.node}" in before.unreadable
            existing = None if unreadable else before.cordons.get(cordon.node)
            stored = cordon.over(existing)
            if stored != existing:
                put_body(connection, CORDON, stored.node, dump_entry(stored))
                self._tell(connection, audit.on_cordon(caller, stored))

    def delete_cordon(self, node: str, *, caller: Caller | None = None) -> None:
        with self._editing() as (connection, before):
            if node in before.cordons:
                delete_body(connection, CORDON, node)
                self._tell(connection, audit.on_uncordon(caller, node))

    def paused(self) -> Pause | None:
        with self._database.reading() as connection:
            return read_pause(connection)

    def put_pause(self, pause: Pause, *, caller: Caller | None = None) -> None:
        with self._editing() as (connection, _):
            connection.execute(update(declared.settings).values(paused=dump_entry(pause)))
            move_version(connection)
            self._tell(connection, audit.on_pause(caller, pause))

    def delete_pause(self, *, caller: Caller | None = None) -> bool:
        with self._editing() as (connection, before):
            if before.paused is None:
                return False
            connection.execute(update(declared.settings).values(paused=None))
            move_version(connection)
            self._tell(connection, audit.on_resume(caller))
            return True

    def put_settings(
        self,
        settings: RetrySettings,
        default_policy: str | None,
        access: Access = AS_BEFORE,
        *,
        caller: Caller | None = None,
    ) -> None:
        with self._editing() as (connection, before):
            if default_policy != before.default_policy or before.configured is None:
                _require_default_policy(default_policy, before.policies.keys())
            access, configured = access.over(before.access), before.configured
            existing = (before.settings, before.default_policy, before.access)
            if (settings, default_policy, access) != existing or SETTINGS in before.unreadable:
                own = settings, default_policy
                if configured is not None and before.own is not None:
                    own = configured.beside(settings, default_policy, before.own)
                body = dump_entry(OperatorSettings(*own, access, configured))
                connection.execute(update(declared.settings).values(body=body))
                move_version(connection)
                changed = None if access == before.access else access
                self._tell(connection, audit.on_settings(caller, settings, default_policy, changed))

    def put_configured(self, configured: FileSettings | None, *, caller: Caller | None = None) -> bool:
        with self._editing() as (connection, before):
            if configured == before.configured:
                return False
            own = before.own or (before.settings, before.default_policy)
            body = dump_entry(OperatorSettings(*own, before.access, configured))
            connection.execute(update(declared.settings).values(body=body))
            move_version(connection)
            ruled = own if configured is None else configured.over(*own)
            self._tell(connection, audit.on_settings(caller, *ruled))
            return True

    def _tell(self, connection: Connection, change: AuditedChange | None) -> None:
        append_audited(connection, self._batches, [change] if change is not None else [])

    @contextmanager
    def _editing(self) -> Iterator[tuple[Connection, Catalogue]]:
        """Open a transaction that holds the catalogue: no other edit can come between."""
        with self._database.writing() as connection:
            connection.execute(_LOCK)
            yield connection, read_catalogue(connection)


class SqlTokenStore(SqlCatalogueStore):
    """``TokenStore``: the API tokens in the catalogue."""

    def put_token(self, token: ApiToken, now: float, *, caller: Caller | None = None) -> None:
        with self._editing() as (connection, before):
            _require_free_token(before.tokens.get(token.name), now)
            put_body(connection, Subject.TOKEN, token.name, dump_entry(token))
            self._tell(connection, audit.on_token(caller, Act.CREATE, token.name, f"for {token.user} as {token.role}"))

    def revoke_token(self, name: str, now: float, *, caller: Caller | None = None) -> ApiToken:
        with self._editing() as (connection, before):
            require_presence(Subject.TOKEN, name, existing=before.tokens.keys(), create=False)
            token = before.tokens[name]
            if token.revoked_at is None:
                token = evolve(token, revoked_at=now)
                put_body(connection, Subject.TOKEN, name, dump_entry(token))
                self._tell(connection, audit.on_token(caller, Act.DELETE, name, f"of {token.user}"))
            return token

    def use_token(self, token: ApiToken, at: float) -> None:
        with self._editing() as (connection, before):
            stored = before.tokens.get(token.name)
            if stored is not None and stored.id == token.id and (stored.used_at is None or stored.used_at < at):
                put_body(connection, Subject.TOKEN, token.name, dump_entry(evolve(stored, used_at=at)))


def _require_default_policy(name: str | None, existing: Collection[str]) -> None:
    """Check that the default policy exists.

    Raises:
        InvalidRequest: It does not.
    """
    if name is not None and name not in existing:
        problem = Problem("defaultPolicyName", f"retry policy {name!r} does not exist", tuple(sorted(existing)))
        message = "the default retry policy does not exist"
        raise InvalidRequest(message, problems=[problem], hint="create the policy first")


def _require_free_token(existing: ApiToken | None, now: float) -> None:
    """Check that a token's name is free.

    Raises:
        AlreadyExists: A token of that name is in use.
    """
    if existing is not None and not existing.over(now):
        message = f"token {existing.name!r} exists already"
        raise AlreadyExists(message, hint=f"use another name, or: holdfast token revoke {existing.name}")
