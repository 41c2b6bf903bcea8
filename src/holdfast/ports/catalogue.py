"""The part of the storage port that operators edit: policies, queues, failure categories, settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from holdfast.domain.access.grants import AS_BEFORE, Access
from holdfast.domain.policy.compiled import effective_policies
from holdfast.domain.record import Struct, evolve, field
from holdfast.ports.entries import CATEGORY, NOTIFIER, POLICY, QUEUE, kind_of_entry

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from holdfast.domain.access.tokens import ApiToken
    from holdfast.domain.audit import Caller
    from holdfast.domain.category import FailureCategory
    from holdfast.domain.file_settings import FileSettings
    from holdfast.domain.job import Queue
    from holdfast.domain.notifier import Notifier
    from holdfast.domain.placement.cordon import Cordon, Pause
    from holdfast.domain.policy.model import RetryPolicy, RetrySettings
    from holdfast.domain.terms.kinds import SubjectName
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.ports.entries import E, Entry, EntryKind


class Catalogue(Struct, frozen=True):
    """The catalogue at one instant."""

    version: int
    """Moves with every edit; equal versions mean equal catalogues."""
    entries: Mapping[SubjectName, Mapping[str, Any]]
    """Entries by kind and name; read them by ``of``."""
    settings: RetrySettings
    default_policy: str | None = None
    """The policy of jobs for which neither the queue nor the job names one."""
    cordons: Mapping[str, Cordon] = field(default_factory=dict)
    """Cordons by node name."""
    paused: Pause | None = None
    """Why nothing is started, if the database is paused."""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Unreadable entries by kind and name, with the reason. Until somebody writes it again, a policy holds whatever
    fails, a queue is paused, a category matches nothing, settings have their defaults, and all is paused.
    """
    access: Access = Access()
    """Roles of people, and what they see of others' jobs."""
    tokens: Mapping[str, ApiToken] = field(default_factory=dict)
    """Tokens by name."""
    configured: FileSettings | None = None
    """Settings from a file, which are part of ``settings`` and ``default_policy`` already."""
    own: tuple[RetrySettings, str | None] | None = None
    """The operator's settings without the file, if there is one."""
    submitters: Mapping[str, str] = field(default_factory=dict)
    """The creators of entries by kind and name, where known."""

    def of(self, kind: EntryKind[E]) -> Mapping[str, E]:
        """Return the entries of a kind, by name."""
        return self.entries.get(kind.info.subject, {})

    def names_of(self, kind: EntryKind[E]) -> set[str]:
        """Return the names of all entries of a kind, including unreadable ones."""
        noun = f"{kind.info.noun} "
        return {*self.of(kind), *(what.removeprefix(noun) for what in self.unreadable if what.startswith(noun))}

    def including(self, entry: Entry) -> Catalogue:
        """Return the catalogue with an entry added or replaced."""
        kind = kind_of_entry(entry)
        return evolve(self, entries={**self.entries, kind.info.subject: {**self.of(kind), entry.name: entry}})

    @property
    def queues(self) -> Mapping[str, Queue]:
        """The queues, by name."""
        return self.of(QUEUE)

    @property
    def policies(self) -> Mapping[str, RetryPolicy]:
        """The newest revisions of the retry policies, by name."""
        return self.of(POLICY)

    @property
    def categories(self) -> Sequence[FailureCategory]:
        """The failure categories, in order of evaluation: by precedence, then name."""
        return list(self.of(CATEGORY).values())

    @property
    def notifiers(self) -> Mapping[str, Notifier]:
        """The notifiers, by name."""
        return self.of(NOTIFIER)

    @property
    def limiting(self) -> list[str]:
        """The names of queues that limit submissions."""
        return [name for name, queue in self.queues.items() if queue.limits_intake]

    def policies_for(self, queue: str, spec: JobSpec) -> tuple[list[RetryPolicy], list[str]]:
        """List the named policies that apply to a job, in order and before its own; and the names that do not exist."""
        if spec.pod is not None and self.configured is not None and not self.configured.enabled:
            return [], []
        of_queue = self.queues.get(queue)
        default = None if spec.inline_policies else self.default_policy
        names = effective_policies(of_queue.retry_policies if of_queue else (), spec.retry_policies, default)
        policies = [self.policies[name] for name in names if name in self.policies]
        return policies, [name for name in names if name not in self.policies]


class CatalogueStore(Protocol):
    """The catalogue for operators; every edit that changes something moves its version.

    The queue ``default`` always exists, and can be changed without being created. An edit with a caller is written to
    the event log and the audit log if it changes something.
    """

    def catalogue(self) -> Catalogue:
        """Read the catalogue."""

    def put_entry(
        self,
        entry: E,
        *,
        create: bool | None = None,
        caller: Caller | None = None,
        if_match: Collection[str] | None = None,
    ) -> E:
        """Store an entry; a change of a policy is a new revision.

        Args:
            entry: The entry; a policy's ``revision`` is ignored.
            create: ``True``: must be new; ``False``: must exist; ``None``: either.
            caller: Who asks for it.
            if_match: Revisions, one of which an existing entry must have.

        Returns:
            The entry as stored.

        Raises:
            AlreadyExists: It exists, and ``create`` is true.
            NotFound: It does not, and ``create`` is false.
            VersionConflict: It has another revision.
            InvalidRequest: It names an entry that does not exist.
        """

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
        """Store the result of ``edit``, which gets the entry in the transaction, so that no other edit is lost.

        Returns and raises the same as ``put_entry``.
        """

    def delete_entry(
        self,
        kind: EntryKind[E],
        name: str,
        *,
        caller: Caller | None = None,
        if_match: Collection[str] | None = None,
        detach: bool = False,
    ) -> None:
        """Delete an unused entry; with ``detach``, remove a policy from the queues that name it.

        The revisions of a policy stay readable. Pending notifications of a notifier are given up, and can be replayed.

        Raises:
            NotFound: It does not exist.
            VersionConflict: It has none of the revisions in ``if_match``.
            Conflict: A queue, the settings or unfinished work names it; or it is the default queue.
        """

    def policy_revision(self, name: str, revision: int) -> RetryPolicy:
        """Read one stored revision, even of a deleted policy.

        Raises:
            NotFound: It does not exist.
        """

    def put_cordon(self, cordon: Cordon, *, caller: Caller | None = None) -> None:
        """Cordon or drain a node; a drained node stays so, with its reason unless there is a new one."""

    def delete_cordon(self, node: str, *, caller: Caller | None = None) -> None:
        """Uncordon a node; does nothing if it is not cordoned."""

    def put_token(self, token: ApiToken, now: float, *, caller: Caller | None = None) -> None:
        """Store a token, as a new one or in place of an expired or revoked one of its name.

        Raises:
            AlreadyExists: A valid token has that name.
        """

    def revoke_token(self, name: str, now: float, *, caller: Caller | None = None) -> ApiToken:
        """Revoke a token; does nothing if it was revoked.

        Raises:
            NotFound: It does not exist.
        """

    def use_token(self, token: ApiToken, at: float) -> None:
        """Record when a token was last used, if it is still the same."""

    def paused(self) -> Pause | None:
        """Read why nothing is started, if the database is paused; cheap."""

    def put_pause(self, pause: Pause, *, caller: Caller | None = None) -> None:
        """Pause the database: nothing is started any more. An earlier reason is replaced."""

    def delete_pause(self, *, caller: Caller | None = None) -> bool:
        """Resume the database; returns whether it was paused."""

    def put_settings(
        self,
        settings: RetrySettings,
        default_policy: str | None,
        access: Access = AS_BEFORE,
        *,
        caller: Caller | None = None,
    ) -> None:
        """Store the operator's settings, except those that ``access`` or a file determines.

        Raises:
            InvalidRequest: The default policy does not exist.
        """

    def put_configured(self, configured: FileSettings | None, *, caller: Caller | None = None) -> bool:
        """Store the settings from a file; ``None`` if there is no file. Returns whether they changed."""
