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
    """What operators wrote, at one instant."""

    version: int
    """Moves with every edit; equal versions mean equal catalogues."""
    entries: Mapping[SubjectName, Mapping[str, Any]]
    """By their kind and name, to be read by ``of``."""
    settings: RetrySettings
    default_policy: str | None = None
    """Applies when neither the queue nor the job names a policy."""
    cordons: Mapping[str, Cordon] = field(default_factory=dict)
    """By the name of the node."""
    paused: Pause | None = None
    """Why nothing is started, if so."""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """What cannot be read, by its kind and name, and why; a policy in its place holds what fails, a queue is paused, a
    category matches nothing, settings have their defaults, and all is paused, until somebody writes it again."""
    access: Access = Access()
    """Who has which role, and what people see of others' jobs."""
    tokens: Mapping[str, ApiToken] = field(default_factory=dict)
    """By name."""
    configured: FileSettings | None = None
    """What a file says, which is in ``settings`` and ``default_policy`` already."""
    own: tuple[RetrySettings, str | None] | None = None
    """What these would be without the file, if there is one."""
    submitters: Mapping[str, str] = field(default_factory=dict)
    """Who first wrote each policy, queue, category and notifier, by its kind and name, where that is known."""

    def of(self, kind: EntryKind[E]) -> Mapping[str, E]:
        """Return the entries of a kind, by name."""
        return self.entries.get(kind.info.subject, {})

    def names_of(self, kind: EntryKind[E]) -> set[str]:
        """Name the entries of a kind, those too that cannot be read."""
        noun = f"{kind.info.noun} "
        return {*self.of(kind), *(what.removeprefix(noun) for what in self.unreadable if what.startswith(noun))}

    def including(self, entry: Entry) -> Catalogue:
        """Return the catalogue with an entry more, or in the place of one of its name."""
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
        """Name the queues that limit what they take in."""
        return [name for name, queue in self.queues.items() if queue.limits_intake]

    def policies_for(self, queue: str, spec: JobSpec) -> tuple[list[RetryPolicy], list[str]]:
        """List the named policies that apply to a job, in order and before its own, and the names that do not exist."""
        if spec.pod is not None and self.configured is not None and not self.configured.enabled:
            return [], []
        of_queue = self.queues.get(queue)
        default = None if spec.inline_policies else self.default_policy
        names = effective_policies(of_queue.retry_policies if of_queue else (), spec.retry_policies, default)
        policies = [self.policies[name] for name in names if name in self.policies]
        return policies, [name for name in names if name not in self.policies]


class CatalogueStore(Protocol):
    """What operators edit; every edit that changes something moves the catalogue's version.

    The queue ``default`` is always there, and its settings can be put without creating it. An edit that changes
    something is written to the event log and the audit log when it names its caller.
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
            entry: The entry; the ``revision`` of a policy is ignored.
            create: ``True``: must be new; ``False``: must exist; ``None``: either.
            caller: Who asks for it.
            if_match: Revisions, one of which it must have if it exists.

        Returns:
            The entry as it is stored.

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
        """Store what ``edit`` makes of an entry as it is in the transaction, so that no other edit is lost.

        Returns and raises what ``put_entry`` does.
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
        """Delete an entry that nothing needs; with ``detach``, take a policy out of the queues that name it.

        The revisions of a policy stay readable. What a notifier was still to be told is given up, and can be replayed.

        Raises:
            NotFound: There is none.
            VersionConflict: It has none of the revisions in ``if_match``.
            Conflict: Something names it: a queue, the settings, or work that has not ended; or it is the default queue.
        """

    def policy_revision(self, name: str, revision: int) -> RetryPolicy:
        """Read one stored revision, also of a deleted policy.

        Raises:
            NotFound: There is none.
        """

    def put_cordon(self, cordon: Cordon, *, caller: Caller | None = None) -> None:
        """Cordon a node, or drain it; one that is drained stays so, with its reason unless there is a new one."""

    def delete_cordon(self, node: str, *, caller: Caller | None = None) -> None:
        """Let work onto a node again; one that is not cordoned is left alone."""

    def put_token(self, token: ApiToken, now: float, *, caller: Caller | None = None) -> None:
        """Store a token in the place of none, or of one of its name that opens nothing any more.

        Raises:
            AlreadyExists: There is one of that name that does.
        """

    def revoke_token(self, name: str, now: float, *, caller: Caller | None = None) -> ApiToken:
        """Have a token open nothing any more; one that was revoked is left alone.

        Raises:
            NotFound: There is none.
        """

    def use_token(self, token: ApiToken, at: float) -> None:
        """Keep when a token was used last, if it is still the same."""

    def paused(self) -> Pause | None:
        """Read why nothing is started, if so; cheap."""

    def put_pause(self, pause: Pause, *, caller: Caller | None = None) -> None:
        """Have nothing started any more; an earlier reason is replaced."""

    def delete_pause(self, *, caller: Caller | None = None) -> bool:
        """Have what waits started again; returns whether it was not."""

    def put_settings(
        self,
        settings: RetrySettings,
        default_policy: str | None,
        access: Access = AS_BEFORE,
        *,
        caller: Caller | None = None,
    ) -> None:
        """Store the operator's settings; what ``access`` or a file does not leave to them stays as it is.

        Raises:
            InvalidRequest: The default policy does not exist.
        """

    def put_configured(self, configured: FileSettings | None, *, caller: Caller | None = None) -> bool:
        """Store what a file says over the settings; ``None``: there is no file. Returns whether that is new."""
