"""How each kind of entry is stored: its table, what an entry may refer to, and what prevents its deletion."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

from sqlalchemy import delete, exists, func, insert, or_, select, update

from holdfast.compiled.codec import dump_entry, load_spec
from holdfast.compiled.records import dump_json
from holdfast.compiled.workloads import needs_of
from holdfast.domain import audit
from holdfast.domain.access.grants import Right
from holdfast.domain.audit import Act, Subject
from holdfast.domain.job import Queue
from holdfast.domain.notifier import Notifier
from holdfast.domain.policy.model import RetryPolicy
from holdfast.domain.record import evolve
from holdfast.domain.rights import refusal_of
from holdfast.domain.terms.projects import Domain, KeyPair
from holdfast.errors import Conflict, Forbidden, InvalidRequest, Problem
from holdfast.ports.entries import DOMAIN, KEYPAIR, NOTIFIER, POLICY, QUEUE, E, EntryKind, require_revision
from holdfast.storage.sql import declared, tables
from holdfast.storage.sql.admission import is_retried_in
from holdfast.storage.sql.damage import sound
from holdfast.storage.sql.query import ACTIVE_STATES, owners

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from sqlalchemy import Connection

    from holdfast.domain.audit import AuditedChange, Caller
    from holdfast.domain.workloads.base import Owner
    from holdfast.ports.catalogue import Catalogue

_SETTINGS = declared.settings
_MOVE_VERSION = update(_SETTINGS).values({_SETTINGS.c.catalogue_version: _SETTINGS.c.catalogue_version + 1})
_SHOWN = 3


class Edit(NamedTuple):
    """One edit of the catalogue, in a transaction that excludes other edits."""

    connection: Connection
    before: Catalogue
    caller: Caller | None


class Keeping(Generic[E]):
    """How entries of one kind are stored; most kinds need no more than this."""

    def __init__(self, kind: EntryKind[E]) -> None:
        self.kind = kind

    def require_storable(self, edit: Edit, current: E | None, entry: E, if_match: Collection[str] | None) -> None:
        """Refuse an entry that refers to what does not exist, or that the caller may not write."""

    def is_same(self, current: E, entry: E) -> bool:
        """Whether an entry changes nothing."""
        return current == entry

    def store(self, edit: Edit, current: E | None, entry: E) -> E:
        """Write an entry and return it as stored."""
        del current
        put_body(edit.connection, self.kind.info.subject, entry.name, dump_entry(entry), caller=edit.caller)
        return entry

    def revision(self, entry: E | None) -> Sequence[int]:
        """Return the revision for the audit log, if the kind has revisions."""
        del entry
        return ()

    def require_deletable(self, edit: Edit, name: str, if_match: Collection[str] | None) -> None:
        """Refuse to delete an entry that is protected or that the caller may not delete."""
        del edit, if_match
        if self.kind.default is not None and name == self.kind.default.name:
            message = f"{self.kind.info.noun} {name!r} always exists; it cannot be deleted"
            raise Conflict(message)

    def erase(self, edit: Edit, name: str) -> None:
        """Delete the row. The statement waits for transactions that hold it, so what follows sees their work."""
        delete_body(edit.connection, self.kind.info.subject, name)

    def release(self, edit: Edit, name: str, *, detach: bool) -> Sequence[AuditedChange | None]:
        """Refuse to delete an entry in use; ``detach`` removes it from queues instead. Returns the changes to those."""
        del edit, name, detach
        return ()


class _Policies(Keeping[RetryPolicy]):
    """Retry policies: a pointer to the newest revision; every revision stays."""

    def require_storable(
        self, edit: Edit, current: RetryPolicy | None, entry: RetryPolicy, if_match: Collection[str] | None
    ) -> None:
        del edit, entry
        require_revision(current, if_match)

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
        require_revision(edit.before.policies[name], if_match)

    def erase(self, edit: Edit, name: str) -> None:
        edit.connection.execute(delete(declared.policies).where(declared.policies.c.name == name))
        move_version(edit.connection)

    def release(self, edit: Edit, name: str, *, detach: bool) -> Sequence[AuditedChange | None]:
        queues = edit.before.queues.values()
        _require_unused_policy(
            name,
            queues=() if detach else queues,
            default_policy=edit.before.default_policy,
            work=_work_with_policy(edit.connection, name),
        )
        detached = _detached(name, queues) if detach else []
        for queue in detached:
            put_body(edit.connection, Subject.QUEUE, queue.name, dump_entry(queue), caller=edit.caller)
        return [audit.on_entry(edit.caller, Act.UPDATE, Subject.QUEUE, queue.name) for queue in detached]


class _Queues(Keeping[Queue]):
    def require_storable(
        self, edit: Edit, current: Queue | None, entry: Queue, if_match: Collection[str] | None
    ) -> None:
        del if_match
        _require_policies(entry, edit.before.policies.keys())
        _require_domain(entry, edit.before.of(DOMAIN).keys())
        _require_notifiers(entry, edit.before.notifiers.keys())
        _require_right_to_permissions(edit.caller, current, entry)

    def require_deletable(self, edit: Edit, name: str, if_match: Collection[str] | None) -> None:
        super().require_deletable(edit, name, if_match)
        creator = edit.before.submitters.get(f"{QUEUE.info.noun} {name}")
        _require_right_to_delete(edit.caller, edit.before.queues[name], creator)

    def release(self, edit: Edit, name: str, *, detach: bool) -> Sequence[AuditedChange | None]:
        del detach
        jobs = tables.jobs.c
        waiting = select(exists().where(jobs.state.in_(ACTIVE_STATES), jobs.queue == name))
        if edit.connection.execute(waiting).scalar() or is_retried_in(edit.connection, name):
            message = f"queue {name!r} still has jobs that have not ended"
            raise Conflict(message, hint="cancel them, or wait for them")
        require_no_owners(name, owners(edit.connection))
        return ()


class _Domains(Keeping[Domain]):
    def release(self, edit: Edit, name: str, *, detach: bool) -> Sequence[AuditedChange | None]:
        del detach
        _require_unused("domain", name, (queue for queue in edit.before.queues.values() if queue.domain == name))
        return ()


class _KeyPairs(Keeping[KeyPair]):
    """Keypairs, which keep the time at which they were created."""

    def is_same(self, current: KeyPair, entry: KeyPair) -> bool:
        return evolve(entry, created_at=current.created_at) == current

    def store(self, edit: Edit, current: KeyPair | None, entry: KeyPair) -> KeyPair:
        now = 0.0 if edit.caller is None else edit.caller.at
        return super().store(edit, current, evolve(entry, created_at=now if current is None else current.created_at))


class _Notifiers(Keeping[Notifier]):
    def release(self, edit: Edit, name: str, *, detach: bool) -> Sequence[AuditedChange | None]:
        del detach
        queues = edit.before.queues.values()
        _require_unused("notifier", name, (queue for queue in queues if any(wish.to == name for wish in queue.notify)))
        return ()


_OWN: dict[str, Keeping[Any]] = {
    keeping.kind.info.subject: keeping
    for keeping in (_Policies(POLICY), _Queues(QUEUE), _Domains(DOMAIN), _KeyPairs(KEYPAIR), _Notifiers(NOTIFIER))
}


def keeping_of(kind: EntryKind[E]) -> Keeping[E]:
    """Return how entries of a kind are stored."""
    return _OWN.get(kind.info.subject) or Keeping(kind)


def name_of(caller: Caller | None) -> str:
    """Return the creator's name as stored."""
    return "" if caller is None else caller.principal.name


def put_body(connection: Connection, kind: str, name: str, body: str, *, caller: Caller | None = None) -> None:
    """Write an entry; its creator stays the same."""
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
    """Advance the catalogue's version, so that readers read it again."""
    connection.execute(_MOVE_VERSION)


def _work_with_policy(connection: Connection, policy: str) -> Iterator[str]:
    """Yield unfinished work that names a retry policy; jobs of an owner that was yielded are left out."""
    jobs, specs, workloads = tables.jobs.c, tables.specs.c, tables.workloads.c
    written = dump_json(policy)  # The stored text may contain the name in another sense, too.
    owners_named = set[str]()
    for owner in owners(connection, workloads.spec.contains(written, autoescape=True)):
        if names_policy(owner, policy):
            owners_named.add(owner.id)
            yield _user(owner.noun, owner.name, owner.id)
    query = select(jobs.id, jobs.name, specs.body).join_from(tables.jobs, tables.specs)
    query = query.where(jobs.state.in_(ACTIVE_STATES), specs.body.contains(written, autoescape=True))
    query = query.where(or_(jobs.set_id.is_(None), jobs.set_id.not_in(owners_named))).order_by(jobs.seq)
    for key, name, names in sound(
        connection.execute(query), lambda row: (row.id, row.name, load_spec(row.body).retry_policies)
    ):
        if policy in names:
            yield _user("job", name, key)


def _require_policies(queue: Queue, existing: Collection[str]) -> None:
    """Check that the policies of a queue exist.

    Raises:
        InvalidRequest: One does not.
    """
    problems = [
        Problem(f"retryPolicies[{index}]", f"retry policy {name!r} does not exist", tuple(sorted(existing)))
        for index, name in enumerate(queue.retry_policies)
        if name not in existing
    ]
    if problems:
        message = f"queue {queue.name!r} names a retry policy that does not exist"
        raise InvalidRequest(message, problems=problems, hint="create the policy first")


def _require_domain(queue: Queue, existing: Collection[str]) -> None:
    """Check that the domain of a queue exists.

    Raises:
        InvalidRequest: It does not.
    """
    if queue.domain not in existing:
        problem = Problem("domain", f"domain {queue.domain!r} does not exist", tuple(sorted(existing)))
        message = f"queue {queue.name!r} names a domain that does not exist"
        raise InvalidRequest(message, problems=[problem], hint="create the domain first")


def _require_notifiers(queue: Queue, existing: Collection[str]) -> None:
    """Check that the notifiers of a queue exist.

    Raises:
        InvalidRequest: One does not.
    """
    problems = [
        Problem(f"notify[{index}].to", f"notifier {wish.to!r} does not exist", tuple(sorted(existing)))
        for index, wish in enumerate(queue.notify)
        if wish.to not in existing
    ]
    if problems:
        message = f"queue {queue.name!r} names a notifier that does not exist"
        raise InvalidRequest(message, problems=problems, hint="create the notifier first")


def _require_unused(noun: str, name: str, queues: Iterable[Queue]) -> None:
    """Check that no queue names an entry to be deleted.

    Raises:
        Conflict: These queues do.
    """
    users = [f"queue {queue.name!r}" for queue in queues]
    if users:
        message = f"{noun} {name!r} is used by {', '.join(users)}"
        raise Conflict(message, hint="take it out there first")


def _detached(policy: str, queues: Iterable[Queue]) -> list[Queue]:
    """Return the queues that name a policy, changed so that they do not."""
    return [
        evolve(queue, retry_policies=tuple(name for name in queue.retry_policies if name != policy))
        for queue in queues
        if policy in queue.retry_policies
    ]


def _require_unused_policy(
    name: str, *, queues: Iterable[Queue], default_policy: str | None, work: Iterable[str]
) -> None:
    """Check that nothing names a policy to be deleted.

    Args:
        name: The policy.
        queues: Queues that may name it.
        default_policy: The default policy of the settings.
        work: Unfinished work that names it; only the first few are read and shown.

    Raises:
        Conflict: A queue, the settings or unfinished work names it.
    """
    users = [f"queue {queue.name!r}" for queue in queues if name in queue.retry_policies]
    if name == default_policy:
        users.append("the settings, as default policy")
    hints = ["take it out there first"] if users else []
    if some := [*islice(work, _SHOWN + 1)]:
        users += [*some[:_SHOWN], *(["others"] if len(some) > _SHOWN else [])]
        hints.append("wait for what has not ended, or cancel it; until then it can be changed: holdfast apply")
    if users:
        message = f"retry policy {name!r} is used by {', '.join(users)}"
        raise Conflict(message, hint="; ".join(hints))


def names_policy(workload: Owner, policy: str) -> bool:
    """Whether an unfinished workload names a policy for its jobs, created or to come."""
    return not workload.ended and policy in needs_of(workload).policies


def _user(noun: str, name: str, key: str) -> str:
    return f"{noun} {name!r} ({key})"


def require_no_owners(name: str, owners: Iterable[Owner]) -> None:
    """Check that no unfinished workload creates jobs in a queue to be deleted.

    Raises:
        Conflict: One does.
    """
    for owner in owners:
        if not owner.ended and needs_of(owner).queue == name:
            message = f"queue {name!r} still has {owner.noun} {owner.name!r}, which has not ended"
            raise Conflict(message, hint=f"cancel it, or wait for it: holdfast wait {owner.kind} {owner.name}")


def _require_right_to_permissions(caller: Caller | None, before: Queue | None, after: Queue | None) -> None:
    """Check that a caller who changes or drops the permissions of a queue may give rights at all.

    The creator of a queue may say who works in it, but may not give away logs: an earlier queue of that name may
    have left work.

    Raises:
        Forbidden: The caller may not.
    """
    old, new = (() if item is None else item.permissions for item in (before, after))
    free = old == new or (before is None and not any(Right.LOGS in item.verbs for item in new))
    refused = None if caller is None or free else refusal_of(caller.principal, Right.CHANGE, Subject.SETTINGS)
    if caller is not None and refused is not None:
        queue = before or after
        name = queue.name if queue else ""
        message = f"{caller.actor} may not change the permissions of queue {name}: this needs the role admin"
        raise Forbidden(message, hint=refused.hint)


def _require_right_to_delete(caller: Caller | None, queue: Queue, creator: str | None) -> None:
    """Check that a caller who deletes a queue may drop its permissions: an admin, or the creator who chose them.

    If logs are given away in it, an admin has changed it since, and the creator may not.

    Raises:
        Forbidden: The caller may not.
    """
    gives_logs = any(Right.LOGS in permission.verbs for permission in queue.permissions)
    if caller is None or caller.principal.name != creator or gives_logs:
        _require_right_to_permissions(caller, queue, None)
