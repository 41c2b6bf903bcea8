"""How entries of each kind are kept: where they are, what they may name, and what keeps one from being deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple

from sqlalchemy import delete, exists, func, insert, or_, select, update

from holdfast.compiled.codec import dump_entry, load_spec
from holdfast.compiled.records import dump_json
from holdfast.domain import audit
from holdfast.domain.audit import Act, Subject
from holdfast.domain.job import Queue
from holdfast.domain.notifier import Notifier
from holdfast.domain.policy.model import RetryPolicy
from holdfast.domain.record import evolve
from holdfast.ports import presence
from holdfast.ports.entries import NOTIFIER, POLICY, QUEUE, E, EntryKind
from holdfast.storage import permissions, references
from holdfast.storage.sql import declared, tables
from holdfast.storage.sql.admission import is_retried_in
from holdfast.storage.sql.damage import sound
from holdfast.storage.sql.query import ACTIVE_STATES, owners

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from sqlalchemy import Connection

    from holdfast.domain.audit import AuditedChange, Caller
    from holdfast.ports.catalogue import Catalogue

_SETTINGS = declared.settings
_MOVE_VERSION = update(_SETTINGS).values({_SETTINGS.c.catalogue_version: _SETTINGS.c.catalogue_version + 1})


class Edit(NamedTuple):
    """An edit of the catalogue, in a transaction that no other edit can come between."""

    connection: Connection
    before: Catalogue
    caller: Caller | None


class Keeping(Generic[E]):
    """How entries of one kind are kept; most kinds need no more."""

    def __init__(self, kind: EntryKind[E]) -> None:
        """Remember which kind."""
        self.kind = kind

    def require_storable(self, edit: Edit, current: E | None, entry: E, if_match: Collection[str] | None) -> None:
        """Refuse an entry that names what does not exist, or that its writer may not write."""

    def is_same(self, current: E, entry: E) -> bool:
        """Whether an entry says what the one before it says."""
        return current == entry

    def store(self, edit: Edit, current: E | None, entry: E) -> E:
        """Write an entry, and return it as it is stored."""
        del current
        put_body(edit.connection, self.kind.info.subject, entry.name, dump_entry(entry), caller=edit.caller)
        return entry

    def revision(self, entry: E | None) -> Sequence[int]:
        """Return the revision that events name, of a kind that has any."""
        del entry
        return ()

    def require_deletable(self, edit: Edit, name: str, if_match: Collection[str] | None) -> None:
        """Refuse to delete an entry that must stay, or that its deleter may not delete."""

    def erase(self, edit: Edit, name: str) -> None:
        """Delete the row; the statement waits for those who hold it, whose work is seen by what follows."""
        delete_body(edit.connection, self.kind.info.subject, name)

    def release(self, edit: Edit, name: str, *, detach: bool) -> Sequence[AuditedChange | None]:
        """Refuse to delete what something names; with ``detach`` queues stop naming it. Returns what else changed."""
        del edit, name, detach
        return ()


class _Policies(Keeping[RetryPolicy]):
    """A row of a policy is its newest revision; all revisions stay."""

    def require_storable(
        self, edit: Edit, current: RetryPolicy | None, entry: RetryPolicy, if_match: Collection[str] | None
    ) -> None:
        del edit, entry
        presence.require_revision(current, if_match)

    def is_same(self, current: RetryPolicy, entry: RetryPolicy) -> bool:
        return evolve(entry, revision=current.revision) == current

    def store(self, edit: Edit, current: RetryPolicy | None, entry: RetryPolicy) -> RetryPolicy:
        pointers, revisions = declared.policies, declared.policy_revisions
        name, connection = entry.name, edit.connection
        last = connection.execute(select(func.max(revisions.c.revision)).where(revisions.c.name == name)).scalar()
        stored = evolve(entry, revision=(last or 0) + 1)
        row = {"name": name, "revision": stored.revision}
        connection.execute(insert(revisions).values(**row, body=dump_entry(stored)))
        if current is None:
            connection.execute(insert(pointers).values(**row, submitted_by=name_of(edit.caller)))
        else:
            connection.execute(update(pointers).where(pointers.c.name == name).values(row))
        move_version(connection)
        return stored

    def revision(self, entry: RetryPolicy | None) -> Sequence[int]:
        return () if entry is None else (entry.revision,)

    def require_deletable(self, edit: Edit, name: str, if_match: Collection[str] | None) -> None:
        presence.require_revision(edit.before.policies[name], if_match)

    def erase(self, edit: Edit, name: str) -> None:
        edit.connection.execute(delete(declared.policies).where(declared.policies.c.name == name))
        move_version(edit.connection)

    def release(self, edit: Edit, name: str, *, detach: bool) -> Sequence[AuditedChange | None]:
        queues = edit.before.queues.values()
        references.require_unused_policy(
            name,
            queues=() if detach else queues,
            default_policy=edit.before.default_policy,
            work=_work_with_policy(edit.connection, name),
        )
        detached = references.detached(name, queues) if detach else []
        for queue in detached:
            put_body(edit.connection, Subject.QUEUE, queue.name, dump_entry(queue), caller=edit.caller)
        return [audit.on_entry(edit.caller, Act.UPDATE, Subject.QUEUE, queue.name) for queue in detached]


class _Queues(Keeping[Queue]):
    def require_storable(
        self, edit: Edit, current: Queue | None, entry: Queue, if_match: Collection[str] | None
    ) -> None:
        del if_match
        references.require_policies(entry, edit.before.policies.keys())
        references.require_notifiers(entry, edit.before.notifiers.keys())
        permissions.require_right_to_permissions(edit.caller, current, entry)

    def require_deletable(self, edit: Edit, name: str, if_match: Collection[str] | None) -> None:
        del if_match
        references.require_not_default_queue(name)
        creator = edit.before.submitters.get(f"{QUEUE.info.noun} {name}")
        permissions.require_right_to_delete(edit.caller, edit.before.queues[name], creator)

    def release(self, edit: Edit, name: str, *, detach: bool) -> Sequence[AuditedChange | None]:
        del detach
        jobs = tables.jobs.c
        waiting = select(exists().where(jobs.state.in_(ACTIVE_STATES), jobs.queue == name))
        if edit.connection.execute(waiting).scalar() or is_retried_in(edit.connection, name):
            raise references.waiting_jobs(name)
        references.require_no_owners(name, owners(edit.connection))
        return ()


class _Notifiers(Keeping[Notifier]):
    def release(self, edit: Edit, name: str, *, detach: bool) -> Sequence[AuditedChange | None]:
        del detach
        references.require_unused_notifier(name, queues=edit.before.queues.values())
        return ()


_OWN: dict[str, Keeping[Any]] = {
    keeping.kind.info.subject: keeping for keeping in (_Policies(POLICY), _Queues(QUEUE), _Notifiers(NOTIFIER))
}


def keeping_of(kind: EntryKind[E]) -> Keeping[E]:
    """Return how entries of a kind are kept."""
    return _OWN.get(kind.info.subject) or Keeping(kind)


def name_of(caller: Caller | None) -> str:
    """Return who first wrote an entry, as it is stored."""
    return "" if caller is None else caller.principal.name


def put_body(connection: Connection, kind: str, name: str, body: str, *, caller: Caller | None = None) -> None:
    """Store an entry; who first wrote it stays the same."""
    row = declared.entries.c
    changed = update(declared.entries).where(row.kind == kind, row.name == name).values(body=body)
    if connection.execute(changed).rowcount == 0:
        new = insert(declared.entries).values(kind=kind, name=name, body=body, submitted_by=name_of(caller))
        connection.execute(new)
    move_version(connection)


def delete_body(connection: Connection, kind: str, name: str) -> None:
    """Delete the row of an entry."""
    row = declared.entries.c
    connection.execute(delete(declared.entries).where(row.kind == kind, row.name == name))
    move_version(connection)


def move_version(connection: Connection) -> None:
    """Have everybody read the catalogue again."""
    connection.execute(_MOVE_VERSION)


def _work_with_policy(connection: Connection, policy: str) -> Iterator[str]:
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
