"""Edits and reads the catalogue of what operators write, such as queues and retry policies.

Changing a policy makes a new revision. Policies and categories apply to failures judged after a change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self

from holdfast.dialects.manifests import format_of, manifest_warnings
from holdfast.domain import failure_catalogue
from holdfast.domain.access.grants import Right
from holdfast.domain.audit import Act, Subject
from holdfast.domain.category import FailureCategory
from holdfast.domain.job import Queue
from holdfast.domain.notifier import Notifier
from holdfast.domain.policy.model import RetryPolicy
from holdfast.domain.record import Struct
from holdfast.domain.terms.projects import Domain, Image, KeyPair, ResourceGroup
from holdfast.errors import Conflict, InvalidManifest
from holdfast.ports.entries import (
    CATEGORY,
    DOMAIN,
    IMAGE,
    KEYPAIR,
    NOTIFIER,
    POLICY,
    QUEUE,
    RESOURCE_GROUP,
    E,
    EntryKind,
    kind_of_entry,
    require_presence,
    require_revision,
)
from holdfast.service.access.asking import asks
from holdfast.service.admission.offers import unknown_ceilings
from holdfast.service.naming import (
    not_found,
    unknown_categories,
    unknown_groups_in_permissions,
    unknown_names,
    unknown_notifiers,
)
from holdfast.service.refusals import audited, put_act

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Node
    from holdfast.domain.terms.entries import EntryInfo
    from holdfast.domain.terms.kinds import SubjectName
    from holdfast.errors import Problem
    from holdfast.ports.entries import Entry
    from holdfast.ports.notifications import Sender
    from holdfast.ports.store import Store
    from holdfast.service.operations.backend import Backend


class Entries(Struct, Generic[E], frozen=True):
    """The entries of one kind."""

    store: Store

    kind: ClassVar[EntryKind[Any]]

    @classmethod
    def of(cls, backend: Backend) -> Self:
        """Make the operations from the backend."""
        return cls(backend.store)

    @property
    def subject(self) -> SubjectName:
        """The name of the kind in rights and in the audit log."""
        return self.kind.info.subject

    def _own(self) -> Mapping[str, E]:
        """Return the operators' own entries by name."""
        return self.store.catalogue().of(self.kind)

    def _check(self, entry: E) -> None:
        """Refuse an entry that names something that does not exist, or that cannot be used."""

    def _require_deletable(self, caller: Caller, name: str) -> None:
        """Refuse to delete an entry that does not exist, or that cannot be deleted."""
        self.get(caller, name)

    @asks(Right.WATCH)
    def list(self, _caller: Caller) -> Sequence[E]:
        """List all, by name."""
        entries = self._own()
        return [entries[name] for name in sorted(entries)]

    @asks(Right.WATCH)
    def submitters(self, _caller: Caller) -> Mapping[str, str]:
        """Return who first wrote each entry, by its name, if known."""
        noun = f"{self.kind.info.noun} "
        submitters = self.store.catalogue().submitters
        return {what.removeprefix(noun): name for what, name in submitters.items() if what.startswith(noun)}

    @asks(Right.WATCH)
    def warnings(self, _caller: Caller, entry: E) -> Sequence[Problem]:
        """Return warnings about a valid entry."""
        return manifest_warnings(entry)

    @asks(Right.WATCH)
    def get(self, caller: Caller, name: str) -> E:
        """Read an entry; of a policy, the newest revision.

        Raises:
            NotFound: It does not exist.
        """
        entries = {entry.name: entry for entry in self.list(caller)}
        if name not in entries:
            raise not_found(name, entries, self.kind.info.noun)
        return entries[name]

    @asks(Right.CHANGE)
    def put(
        self,
        caller: Caller,
        entry: E,
        *,
        create: bool | None = None,
        if_match: Collection[str] | None = None,
        dry_run: bool = False,
    ) -> E:
        """Store an entry; ``create`` true: must be new, false: must exist, ``None``: either. A dry run stores nothing.

        Raises:
            InvalidManifest: It names something that does not exist, or cannot be used here.
            AlreadyExists: It must be new, and exists.
            NotFound: It must exist, and does not.
            VersionConflict: A policy has none of the revisions in ``if_match``.
        """
        with audited(self.store, None if dry_run else caller, put_act(create=create), self.subject, entry.name):
            self._check(entry)
            if not dry_run:
                return self.store.put_entry(entry, create=create, caller=caller, if_match=if_match)
            existing = self._own()
            require_presence(self.kind.info.noun, entry.name, existing=existing, create=create)
            if isinstance(policy := existing.get(entry.name), RetryPolicy):
                require_revision(policy, if_match)
            return entry

    @asks(Right.CHANGE)
    def delete(
        self, caller: Caller, name: str, *, if_match: Collection[str] | None = None, detach: bool = False
    ) -> None:
        """Delete an entry. Revisions of a policy stay readable, and failures keep their category.

        Args:
            caller: The caller.
            name: The entry's name.
            if_match: Revisions, one of which a policy must have.
            detach: Also remove a policy from the queues that name it.

        Raises:
            NotFound: It does not exist.
            VersionConflict: It has none of the revisions in ``if_match``.
            Conflict: Another entry names it, jobs wait in it, or it cannot be deleted.
        """
        with audited(self.store, caller, Act.DELETE, self.subject, name):
            self._require_deletable(caller, name)
            self.store.delete_entry(self.kind, name, caller=caller, if_match=if_match, detach=detach)


class Policies(Entries[RetryPolicy], frozen=True):
    """The named retry policies."""

    kind = POLICY

    @asks(Right.WATCH)
    def warnings(self, _caller: Caller, entry: RetryPolicy) -> Sequence[Problem]:
        """Return warnings about a policy, such as rules that can match nothing."""
        return [*manifest_warnings(entry), *unknown_categories(entry, self.store.catalogue())]


class Categories(Entries[FailureCategory], frozen=True):
    """The failure categories."""

    kind = CATEGORY

    @asks(Right.WATCH, Subject.CATEGORY)
    def list(self, _caller: Caller) -> Sequence[FailureCategory]:
        """List all in order of evaluation: those of a file, the operators' own, and the built-in ones not replaced."""
        catalogue = self.store.catalogue()
        own = [*(catalogue.configured.categories if catalogue.configured else ()), *catalogue.categories]
        return [*own, *failure_catalogue.builtin_beside(own)]

    def _require_deletable(self, caller: Caller, name: str) -> None:
        self.get(caller, name)
        catalogue = self.store.catalogue()
        configured = catalogue.configured
        if name in {category.name for category in catalogue.categories}:
            return
        if configured is not None and name in {category.name for category in configured.categories}:
            msg = f"failure category {name!r} is set by {configured.file}"
            raise Conflict(msg, hint="edit that file, which is read again when it changes")
        msg = f"failure category {name!r} is built in"
        raise Conflict(msg, hint="create a category of that name to replace it")


class ProjectDomains(Entries[Domain], frozen=True):
    """The domains."""

    kind = DOMAIN


class ResourceGroups(Entries[ResourceGroup], frozen=True):
    """The resource groups."""

    kind = RESOURCE_GROUP


class Images(Entries[Image], frozen=True):
    """The images."""

    kind = IMAGE


class KeyPairs(Entries[KeyPair], frozen=True):
    """The keypairs."""

    kind = KEYPAIR


class Queues(Entries[Queue], frozen=True):
    """The queues."""

    nodes: Callable[[], Sequence[Node]] | None = None
    """Lists the nodes that jobs can count on; by default the reported ones."""
    is_group: Callable[[str], bool] = lambda _: True
    """Whether the machine has a group of a name."""

    kind = QUEUE

    @classmethod
    def of(cls, backend: Backend) -> Self:
        """Take what is needed from what doors work with."""
        return cls(backend.store, backend.nodes, backend.is_group)

    def _check(self, entry: Queue) -> None:
        catalogue = self.store.catalogue()
        problems = unknown_names(
            entry.retry_policies,
            catalogue.policies,
            "retry policy",
            lambda index: f"spec.retryPolicies[{index}]",
        )
        problems += unknown_names((entry.domain,), catalogue.of(DOMAIN), "domain", lambda _: "spec.domain")
        problems += unknown_notifiers(entry.notify, catalogue.notifiers)
        if problems:
            msg = f"queue {entry.name!r} is not valid"
            raise InvalidManifest(msg, problems=problems)

    @asks(Right.CHANGE, Subject.QUEUE)
    def edit(
        self, caller: Caller, name: str, change: Callable[[Queue | None], Queue], *, create: bool | None = None
    ) -> Queue:
        """Change a queue, or create one, in one transaction, so that concurrent edits do not undo each other.

        Raises:
            InvalidRequest: It names a policy or a notifier that does not exist.
            NotFound: It does not exist, and ``create`` is false.
            AlreadyExists: It exists, and ``create`` is true.
        """
        with audited(self.store, caller, put_act(create=create), Subject.QUEUE, name):
            return self.store.edit_entry(QUEUE, name, change, create=create, caller=caller)

    @asks(Right.WATCH, Subject.JOB)
    def require(self, _caller: Caller, name: str) -> None:
        """Check that a queue exists, with the right to watch jobs only, as a token may give no more.

        Raises:
            NotFound: It does not exist.
        """
        queues = self._own()
        if name not in queues:
            raise not_found(name, queues, self.kind.info.noun)

    @asks(Right.WATCH)
    def warnings(self, _caller: Caller, entry: Queue) -> Sequence[Problem]:
        """Return warnings about a queue, such as limits on resources that no node has."""
        strange = unknown_groups_in_permissions(entry.permissions, self.is_group)
        if not entry.max_running.named and not entry.per_user.max_running.named:
            return strange
        nodes = (self.nodes or self.store.nodes)()
        return [*strange, *unknown_ceilings(entry, self.store.catalogue().settings.resources, nodes)]


class Notifiers(Entries[Notifier], frozen=True):
    """The notifiers."""

    sender: Sender | None = None
    """Knows which notifiers can be used here; without one, all can."""

    kind = NOTIFIER

    @classmethod
    def of(cls, backend: Backend) -> Self:
        """Take what is needed from what doors work with."""
        return cls(backend.store, None if backend.sender is None else backend.sender())

    def _check(self, entry: Notifier) -> None:
        problems = [] if self.sender is None else self.sender.check(entry)
        if problems:
            msg = f"notifier {entry.name!r} cannot be used here"
            raise InvalidManifest(msg, problems=problems)

    def _require_deletable(self, caller: Caller, name: str) -> None:
        """Leave it to the store, so that an unreadable notifier can be deleted, too."""


_OPERATIONS: dict[EntryInfo, type[Entries[Any]]] = {
    operations.kind.info: operations
    for operations in (Policies, Categories, ProjectDomains, ResourceGroups, Images, KeyPairs, Queues, Notifiers)
}


def operations_of(info: EntryInfo) -> type[Entries[Any]]:
    """Return the operations on the entries of a kind."""
    return _OPERATIONS[info]


def spec_of(entry: Entry) -> dict[str, Any]:
    """Return the ``spec`` of an entry's manifest."""
    return format_of(kind_of_entry(entry).info).write(entry)
