"""Edits and reads what operators write: queues, retry policies and failure categories; notifiers are beside it.

A change of a policy is a new revision. Policies and categories apply to what is judged, or classified, after a change.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from holdfast.dialects.manifests import manifest_warnings
from holdfast.domain import failure_catalogue
from holdfast.domain.access.grants import Right
from holdfast.domain.audit import Act, Subject
from holdfast.domain.category import FailureCategory
from holdfast.domain.job import Queue
from holdfast.domain.policy.model import RetryPolicy
from holdfast.domain.record import Struct
from holdfast.errors import Conflict, InvalidManifest
from holdfast.ports import presence
from holdfast.service.access.asking import asks
from holdfast.service.access.strangers import strange_in_permissions
from holdfast.service.admission.offers import unknown_ceilings
from holdfast.service.naming import not_found, unknown_categories, unknown_names, unknown_notifiers
from holdfast.service.refusals import audited, put_act

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Node
    from holdfast.domain.notifier import Notifier
    from holdfast.domain.terms.kinds import SubjectName
    from holdfast.errors import Problem
    from holdfast.ports.store import Store

E = TypeVar("E", bound="RetryPolicy | Queue | FailureCategory | Notifier")


class Entries(Struct, Generic[E], frozen=True):
    """What operators wrote of one kind."""

    store: Store

    noun: ClassVar[str]
    subject: ClassVar[SubjectName]

    @abstractmethod
    def _known(self) -> Mapping[str, E]:
        """Return the operators' own, by name."""

    @abstractmethod
    def _store(self, caller: Caller, entry: E, *, create: bool | None, if_match: Collection[str] | None) -> E:
        """Store one, and return it as it is stored."""

    def _check(self, entry: E) -> None:
        """Refuse one that names what does not exist, or cannot be used."""

    @asks(Right.WATCH)
    def list(self, _caller: Caller) -> Sequence[E]:
        """List all, by name."""
        found = self._known()
        return [found[name] for name in sorted(found)]

    @asks(Right.WATCH)
    def submitters(self, _caller: Caller) -> Mapping[str, str]:
        """Say who first wrote each, by its name, where that is known."""
        kind = f"{self.noun} "
        found = self.store.catalogue().submitters
        return {what.removeprefix(kind): who for what, who in found.items() if what.startswith(kind)}

    @asks(Right.WATCH)
    def get(self, _caller: Caller, name: str) -> E:
        """Read one; of a policy the newest revision.

        Raises:
            NotFound: There is none of that name.
        """
        found = {entry.name: entry for entry in self.list(_caller)}
        if name not in found:
            raise not_found(name, found, self.noun)
        return found[name]

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
        """Store one; ``create`` true: must be new, false: must exist, ``None``: either; a dry run stores nothing.

        Raises:
            InvalidManifest: It names what does not exist, or cannot be used here.
            AlreadyExists: It exists, and must be new.
            NotFound: It does not, and must exist.
            VersionConflict: A policy has none of the revisions in ``if_match``.
        """
        with audited(self.store, None if dry_run else caller, put_act(create=create), self.subject, entry.name):
            self._check(entry)
            if not dry_run:
                return self._store(caller, entry, create=create, if_match=if_match)
            known = self._known()
            presence.require_presence(self.noun, entry.name, existing=known, create=create)
            there = known.get(entry.name)
            if isinstance(there, RetryPolicy):
                presence.require_revision(there, if_match)
            return entry


class Policies(Entries[RetryPolicy], frozen=True):
    """The named retry policies."""

    noun = presence.POLICY
    subject = Subject.POLICY

    def _known(self) -> Mapping[str, RetryPolicy]:
        return self.store.catalogue().policies

    def _store(
        self, caller: Caller, entry: RetryPolicy, *, create: bool | None, if_match: Collection[str] | None
    ) -> RetryPolicy:
        return self.store.put_policy(entry, create=create, caller=caller, if_match=if_match)

    @asks(Right.WATCH)
    def warnings(self, _caller: Caller, policy: RetryPolicy) -> Sequence[Problem]:
        """Say what is dubious about a policy, although it is valid: rules that match nothing, such as by a category."""
        return [*manifest_warnings(policy), *unknown_categories(policy, self.store.catalogue())]

    @asks(Right.CHANGE, Subject.POLICY)
    def delete(
        self, caller: Caller, name: str, *, if_match: Collection[str] | None = None, detach: bool = False
    ) -> None:
        """Delete a policy; its revisions stay readable, so that old decisions can be explained.

        Args:
            caller: Who deletes it.
            name: Its name.
            if_match: Revisions it must have one of.
            detach: Also from the queues that name it.

        Raises:
            NotFound: There is none of that name.
            VersionConflict: It has none of the revisions in ``if_match``.
            Conflict: A queue names it, or it is the default.
        """
        with audited(self.store, caller, Act.DELETE, Subject.POLICY, name):
            self.get(caller, name)
            self.store.delete_policy(name, caller=caller, if_match=if_match, detach=detach)


class Categories(Entries[FailureCategory], frozen=True):
    """The failure categories."""

    noun = presence.CATEGORY
    subject = Subject.CATEGORY

    def _known(self) -> Mapping[str, FailureCategory]:
        return {category.name: category for category in self.store.catalogue().categories}

    def _store(
        self, caller: Caller, entry: FailureCategory, *, create: bool | None, if_match: Collection[str] | None
    ) -> FailureCategory:
        del if_match
        self.store.put_category(entry, create=create, caller=caller)
        return entry

    @asks(Right.WATCH, Subject.CATEGORY)
    def list(self, _caller: Caller) -> Sequence[FailureCategory]:
        """List all, in order of evaluation: those of a file, the operator's own, and built-in ones not replaced."""
        catalogue = self.store.catalogue()
        own = [*(catalogue.configured.categories if catalogue.configured else ()), *catalogue.categories]
        return [*own, *failure_catalogue.beside(own)]

    @asks(Right.CHANGE, Subject.CATEGORY)
    def delete(self, caller: Caller, name: str) -> None:
        """Delete a category; failures that were given it keep it.

        Raises:
            NotFound: There is none of that name.
            Conflict: It is built in, or a configuration file's.
        """
        with audited(self.store, caller, Act.DELETE, Subject.CATEGORY, name):
            self.get(caller, name)
            self._require_own(name)
            self.store.delete_category(name, caller=caller)

    def _require_own(self, name: str) -> None:
        catalogue = self.store.catalogue()
        configured = catalogue.configured
        if name in {category.name for category in catalogue.categories}:
            return
        if configured is not None and name in {category.name for category in configured.categories}:
            msg = f"failure category {name!r} is set by {configured.file}"
            raise Conflict(msg, hint="edit that file, which is read again when it changes")
        msg = f"failure category {name!r} is built in"
        raise Conflict(msg, hint="a category of that name of your own takes its place")


class Queues(Entries[Queue], frozen=True):
    """The queues."""

    noun = presence.QUEUE
    subject = Subject.QUEUE

    def _known(self) -> Mapping[str, Queue]:
        return self.store.catalogue().queues

    def _check(self, entry: Queue) -> None:
        catalogue = self.store.catalogue()
        problems = unknown_names(
            entry.retry_policies,
            catalogue.policies,
            "retry policy",
            lambda index: f"spec.retryPolicies[{index}]",
        )
        problems += unknown_notifiers(entry.notify, catalogue.notifiers)
        if problems:
            msg = f"queue {entry.name!r} is not valid"
            raise InvalidManifest(msg, problems=problems)

    def _store(self, caller: Caller, entry: Queue, *, create: bool | None, if_match: Collection[str] | None) -> Queue:
        del if_match
        self.store.put_queue(entry, create=create, caller=caller)
        return entry

    @asks(Right.CHANGE, Subject.QUEUE)
    def edit(
        self, caller: Caller, name: str, change: Callable[[Queue | None], Queue], *, create: bool | None = None
    ) -> Queue:
        """Store what ``change`` makes of a queue, or of none, so that edits at the same time do not undo each other.

        Raises:
            InvalidRequest: It names a policy or a notifier that does not exist.
            NotFound: It is not there, and ``create`` is false.
            AlreadyExists: It is there, and ``create`` is true.
        """
        with audited(self.store, caller, put_act(create=create), Subject.QUEUE, name):
            return self.store.edit_queue(name, change, create=create, caller=caller)

    @asks(Right.WATCH, Subject.JOB)
    def require(self, _caller: Caller, name: str) -> None:
        """Make sure that a queue is there, for who looks for jobs in it: a token may be for jobs alone.

        Raises:
            NotFound: It is not.
        """
        found = self._known()
        if name not in found:
            raise not_found(name, found, self.noun)

    @asks(Right.WATCH, Subject.QUEUE)
    def warnings(
        self,
        _caller: Caller,
        queue: Queue,
        nodes: Callable[[], Sequence[Node]] | None = None,
        is_group: Callable[[str], bool] = lambda _: True,
    ) -> Sequence[Problem]:
        """Say what is dubious about a queue, although it is valid: limits on what nobody has, though somebody may yet.

        Args:
            _caller: Who reads.
            queue: The queue.
            nodes: Lists the nodes that jobs can count on; by default those that were reported.
            is_group: Whether the machine has a group of a name.
        """
        strange = strange_in_permissions(queue.permissions, is_group)
        if not queue.max_running.named and not queue.per_user.max_running.named:
            return strange
        listed = (nodes or self.store.nodes)()
        return [*strange, *unknown_ceilings(queue, self.store.catalogue().settings.resources, listed)]

    @asks(Right.CHANGE, Subject.QUEUE)
    def delete(self, caller: Caller, name: str) -> None:
        """Delete a queue.

        Raises:
            NotFound: There is none of that name.
            Conflict: Jobs wait in it, or it is the default queue.
        """
        with audited(self.store, caller, Act.DELETE, Subject.QUEUE, name):
            self.get(caller, name)
            self.store.delete_queue(name, caller=caller)
