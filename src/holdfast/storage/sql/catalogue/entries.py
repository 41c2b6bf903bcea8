"""The catalogue that operators edit: policies with every revision, queues, categories, settings and tokens.

An edit, its checks and the catalogue's new version are one transaction.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, delete, exists, func, insert, or_, select, update

from holdfast.compiled.codec import OperatorSettings, dump_entry, load_entry, load_spec
from holdfast.compiled.records import dump_json
from holdfast.domain import audit
from holdfast.domain.access.grants import AS_BEFORE, Access
from holdfast.domain.audit import Act, Subject
from holdfast.domain.policy.model import RetryPolicy
from holdfast.domain.record import evolve
from holdfast.ports import presence
from holdfast.storage import permissions, references, rules
from holdfast.storage.sql import declared, tables
from holdfast.storage.sql.admission import is_retried_in
from holdfast.storage.sql.catalogue.reading import SETTINGS, read_catalogue, read_pause
from holdfast.storage.sql.damage import sound
from holdfast.storage.sql.logs import append_audited
from holdfast.storage.sql.part import StorePart
from holdfast.storage.sql.query import ACTIVE_STATES, owners

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from sqlalchemy import Connection, Table

    from holdfast.domain.access.tokens import ApiToken
    from holdfast.domain.audit import AuditedChange, Caller
    from holdfast.domain.category import FailureCategory
    from holdfast.domain.configured import Configured
    from holdfast.domain.job import Queue
    from holdfast.domain.notifier import Notifier
    from holdfast.domain.placement.cordon import Cordon
    from holdfast.domain.placement.pause import Pause
    from holdfast.domain.policy.model import RetrySettings
    from holdfast.ports.catalogue import Catalogue

_LOCK = select(declared.settings.c.id).with_for_update()
_VERSION = declared.settings.c.catalogue_version
_MOVE_VERSION = update(declared.settings).values({_VERSION: _VERSION + 1})
_REVISION = select(declared.policy_revisions.c.body).where(
    declared.policy_revisions.c.name == bindparam("of_policy"),
    declared.policy_revisions.c.revision == bindparam("number"),
)


class SqlCatalogueStore(StorePart):
    """``CatalogueStore``: the part of the store that operators edit."""

    def catalogue(self) -> Catalogue:
        with self._database.reading() as connection:
            return read_catalogue(connection)

    def put_policy(
        self,
        policy: RetryPolicy,
        *,
        create: bool | None = None,
        caller: Caller | None = None,
        if_match: Collection[str] | None = None,
    ) -> RetryPolicy:
        pointers, revisions = declared.policies, declared.policy_revisions
        name = policy.name
        with self._editing() as (connection, before):
            presence.require_presence(presence.POLICY, name, existing=before.policies.keys(), create=create)
            current = before.policies.get(name)
            presence.require_revision(current, if_match)
            if current is not None and evolve(policy, revision=current.revision) == current:
                return current
            last = connection.execute(select(func.max(revisions.c.revision)).where(revisions.c.name == name)).scalar()
            stored = evolve(policy, revision=(last or 0) + 1)
            row = {"name": name, "revision": stored.revision}
            connection.execute(insert(revisions).values(**row, body=dump_entry(stored)))
            if current is None:
                connection.execute(insert(pointers).values(**row, submitted_by=_name_of(caller)))
            else:
                connection.execute(update(pointers).where(pointers.c.name == name).values(row))
            _move_version(connection)
            self._tell(
                connection, audit.on_entry(caller, _put_act(current), Subject.POLICY, stored.name, stored.revision)
            )
            return stored

    def policy_revision(self, name: str, revision: int) -> RetryPolicy:
        with self._database.reading() as connection:
            body = connection.execute(_REVISION, {"of_policy": name, "number": revision}).scalar()
        if body is None:
            raise presence.no_such(rules.REVISION, f"{name}@{revision}")
        return load_entry(RetryPolicy, body)

    def delete_policy(
        self, name: str, *, caller: Caller | None = None, if_match: Collection[str] | None = None, detach: bool = False
    ) -> None:
        with self._editing() as (connection, before):
            presence.require_presence(presence.POLICY, name, existing=before.policies.keys(), create=False)
            presence.require_revision(before.policies[name], if_match)
            queues = before.queues.values()
            _delete(connection, declared.policies, name)  # which waits for those who hold it, and shows their work
            references.require_unused_policy(
                name,
                queues=() if detach else queues,
                default_policy=before.default_policy,
                work=work_with_policy(connection, name),
            )
            for queue in references.detached(name, queues) if detach else ():
                put_entry(connection, declared.queues, queue.name, dump_entry(queue), submitted_by=_name_of(caller))
                self._tell(connection, audit.on_entry(caller, Act.UPDATE, Subject.QUEUE, queue.name))
            self._tell(
                connection, audit.on_entry(caller, Act.DELETE, Subject.POLICY, name, before.policies[name].revision)
            )

    def put_queue(self, queue: Queue, *, create: bool | None = None, caller: Caller | None = None) -> None:
        self.edit_queue(queue.name, lambda _: queue, create=create, caller=caller)

    def edit_queue(
        self,
        name: str,
        edit: Callable[[Queue | None], Queue],
        *,
        create: bool | None = None,
        caller: Caller | None = None,
    ) -> Queue:
        with self._editing() as (connection, before):
            presence.require_presence(presence.QUEUE, name, existing=before.queues.keys(), create=create)
            current = before.queues.get(name)
            queue = edit(current)
            references.require_policies(queue, before.policies.keys())
            references.require_notifiers(queue, before.notifiers.keys())
            permissions.require_right_to_permissions(caller, current, queue)
            if current != queue or f"{presence.QUEUE} {name}" in before.unreadable:
                put_entry(connection, declared.queues, name, dump_entry(queue), submitted_by=_name_of(caller))
                self._tell(connection, audit.on_entry(caller, _put_act(current), Subject.QUEUE, name))
            return queue

    def delete_queue(self, name: str, *, caller: Caller | None = None) -> None:
        jobs = tables.jobs
        waiting = select(exists().where(jobs.c.state.in_(ACTIVE_STATES), jobs.c.queue == name))
        with self._editing() as (connection, before):
            presence.require_presence(presence.QUEUE, name, existing=before.queues.keys(), create=False)
            references.require_not_default_queue(name)
            creator = before.submitters.get(f"{presence.QUEUE} {name}")
            permissions.require_right_to_delete(caller, before.queues[name], creator)
            _delete(connection, declared.queues, name)  # which waits for those who hold it, to see what they submitted
            if connection.execute(waiting).scalar() or is_retried_in(connection, name):
                raise references.waiting_jobs(name)
            references.require_no_owners(name, owners(connection))
            self._tell(connection, audit.on_entry(caller, Act.DELETE, Subject.QUEUE, name))

    def put_category(
        self, category: FailureCategory, *, create: bool | None = None, caller: Caller | None = None
    ) -> None:
        with self._editing() as (connection, before):
            by_name = {existing.name: existing for existing in before.categories}
            presence.require_presence(presence.CATEGORY, category.name, existing=by_name.keys(), create=create)
            current = by_name.get(category.name)
            if current != category or f"{presence.CATEGORY} {category.name}" in before.unreadable:
                put_entry(
                    connection, declared.categories, category.name, dump_entry(category), submitted_by=_name_of(caller)
                )
                self._tell(connection, audit.on_entry(caller, _put_act(current), Subject.CATEGORY, category.name))

    def delete_category(self, name: str, *, caller: Caller | None = None) -> None:
        with self._editing() as (connection, before):
            names = {category.name for category in before.categories}
            presence.require_presence(presence.CATEGORY, name, existing=names, create=False)
            _delete(connection, declared.categories, name)
            self._tell(connection, audit.on_entry(caller, Act.DELETE, Subject.CATEGORY, name))

    def put_notifier(self, notifier: Notifier, *, create: bool | None = None, caller: Caller | None = None) -> None:
        name = notifier.name
        with self._editing() as (connection, before):
            unreadable = f"{presence.NOTIFIER} {name}" in before.unreadable
            names = {*before.notifiers, *([name] if unreadable else [])}
            presence.require_presence(presence.NOTIFIER, name, existing=names, create=create)
            current = before.notifiers.get(name)
            if current != notifier:
                put_entry(connection, declared.notifiers, name, dump_entry(notifier), submitted_by=_name_of(caller))
                self._tell(connection, audit.on_entry(caller, _put_act(current), Subject.NOTIFIER, name))

    def delete_notifier(self, name: str, *, caller: Caller | None = None) -> None:
        with self._editing() as (connection, before):
            names = {*before.notifiers, *(what.removeprefix(f"{presence.NOTIFIER} ") for what in before.unreadable)}
            presence.require_presence(presence.NOTIFIER, name, existing=names, create=False)
            references.require_unused_notifier(name, queues=before.queues.values())
            _delete(connection, declared.notifiers, name)
            self._tell(connection, audit.on_entry(caller, Act.DELETE, Subject.NOTIFIER, name))

    def put_cordon(self, cordon: Cordon, *, caller: Caller | None = None) -> None:
        with self._editing() as (connection, before):
            unreadable = f"cordon {cordon.node}" in before.unreadable
            existing = None if unreadable else before.cordons.get(cordon.node)
            stored = cordon.over(existing)
            if stored != existing:
                put_entry(connection, declared.cordons, stored.node, dump_entry(stored))
                self._tell(connection, audit.on_cordon(caller, stored))

    def delete_cordon(self, node: str, *, caller: Caller | None = None) -> None:
        with self._editing() as (connection, before):
            if node in before.cordons:
                _delete(connection, declared.cordons, node)
                self._tell(connection, audit.on_uncordon(caller, node))

    def paused(self) -> Pause | None:
        with self._database.reading() as connection:
            return read_pause(connection)

    def put_pause(self, pause: Pause, *, caller: Caller | None = None) -> None:
        with self._editing() as (connection, _):
            connection.execute(update(declared.settings).values(paused=dump_entry(pause)))
            _move_version(connection)
            self._tell(connection, audit.on_pause(caller, pause))

    def delete_pause(self, *, caller: Caller | None = None) -> bool:
        with self._editing() as (connection, before):
            if before.paused is None:
                return False
            connection.execute(update(declared.settings).values(paused=None))
            _move_version(connection)
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
                references.require_default_policy(default_policy, before.policies.keys())
            access, configured = access.over(before.access), before.configured
            existing = (before.settings, before.default_policy, before.access)
            if (settings, default_policy, access) != existing or SETTINGS in before.unreadable:
                own = settings, default_policy
                if configured is not None and before.own is not None:
                    own = configured.beside(settings, default_policy, before.own)
                body = dump_entry(OperatorSettings(*own, access, configured))
                connection.execute(update(declared.settings).values(body=body))
                _move_version(connection)
                changed = None if access == before.access else access
                self._tell(connection, audit.on_settings(caller, settings, default_policy, changed))

    def put_configured(self, configured: Configured | None, *, caller: Caller | None = None) -> bool:
        with self._editing() as (connection, before):
            if configured == before.configured:
                return False
            own = before.own or (before.settings, before.default_policy)
            body = dump_entry(OperatorSettings(*own, before.access, configured))
            connection.execute(update(declared.settings).values(body=body))
            _move_version(connection)
            ruled = own if configured is None else configured.over(*own)
            self._tell(connection, audit.on_settings(caller, *ruled))
            return True

    def _tell(self, connection: Connection, change: AuditedChange | None) -> None:
        append_audited(connection, self._batches, [change] if change is not None else [])

    @contextmanager
    def _editing(self) -> Iterator[tuple[Connection, Catalogue]]:
        """Open a transaction with the catalogue, which no other edit can change meanwhile."""
        with self._database.writing() as connection:
            connection.execute(_LOCK)
            yield connection, read_catalogue(connection)


def _put_act(current: object) -> Act:
    return Act.CREATE if current is None else Act.UPDATE


def _name_of(caller: Caller | None) -> str:
    return "" if caller is None else caller.principal.name


def put_entry(connection: Connection, table: Table, name: str, body: str, **fixed: str) -> None:
    """Store an entry of the catalogue, whose version moves; what is fixed is written once."""
    if connection.execute(update(table).where(table.c.name == name).values(body=body)).rowcount == 0:
        connection.execute(insert(table).values(name=name, body=body, **fixed))
    _move_version(connection)


def _delete(connection: Connection, table: Table, name: str) -> None:
    connection.execute(delete(table).where(table.c.name == name))
    _move_version(connection)


def _move_version(connection: Connection) -> None:
    connection.execute(_MOVE_VERSION)


def work_with_policy(connection: Connection, policy: str) -> Iterator[str]:
    """Yield what has not ended and names a retry policy itself; jobs of what was yielded are left out."""
    jobs, specs, workloads = tables.jobs.c, tables.specs.c, tables.workloads.c
    written = dump_json(policy)  # as it is in what is stored, where it may mean other things, too
    owners_named = set[str]()
    for owner in owners(connection, workloads.spec.contains(written, autoescape=True)):
        if references.names_policy(owner, policy):
            owners_named.add(owner.id)
            yield references.user(owner.noun, owner.name, owner.id)
    query = select(jobs.id, jobs.name, specs.body).join_from(tables.jobs, tables.specs)
    query = query.where(jobs.state.in_(ACTIVE_STATES), specs.body.contains(written, autoescape=True))
    query = query.where(or_(jobs.set_id.is_(None), jobs.set_id.not_in(owners_named))).order_by(jobs.seq)
    for key, name, names in sound(
        connection.execute(query), lambda row: (row.id, row.name, load_spec(row.body).retry_policies)
    ):
        if policy in names:
            yield references.user("job", name, key)


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
