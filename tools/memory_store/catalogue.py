"""The catalogue that operators edit, in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.compiled.codec import load_spec
from holdfast.domain import audit
from holdfast.domain.access.grants import AS_BEFORE, Access
from holdfast.domain.audit import Act, Subject
from holdfast.domain.job import Queue
from holdfast.domain.policy.model import RetrySettings
from holdfast.domain.record import evolve
from holdfast.domain.workloads.base import Owner
from holdfast.domain.workloads.spec import DEFAULT_QUEUE
from holdfast.errors import UnreadableSpec
from holdfast.ports import presence
from holdfast.ports.catalogue import Catalogue
from holdfast.ports.requests import RequestKind
from holdfast.storage import permissions, references, rules
from tools.memory_store.logs import MemoryLogStore

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from threading import RLock

    from holdfast.domain.access.tokens import ApiToken
    from holdfast.domain.audit import AuditedChange, Caller
    from holdfast.domain.category import FailureCategory
    from holdfast.domain.configured import Configured
    from holdfast.domain.notifier import Notifier
    from holdfast.domain.placement.cordon import Cordon
    from holdfast.domain.placement.pause import Pause
    from holdfast.domain.policy.model import RetryPolicy
    from holdfast.ports.requests import Request
    from tools.memory_store.jobs import JobTable


class MemoryCatalogueStore(MemoryLogStore):
    """The part of the store that operators edit."""

    _requests: dict[int, Request]

    def __init__(self, lock: RLock, jobs: JobTable) -> None:
        """Begin with the default queue and default settings."""
        super().__init__(lock, jobs)
        self._jobs_waiting = jobs
        self._version = 0
        self._queues = {DEFAULT_QUEUE: Queue(DEFAULT_QUEUE)}
        self._policies: dict[str, RetryPolicy] = {}
        self._revisions: dict[str, list[RetryPolicy]] = {}
        self._categories: dict[str, FailureCategory] = {}
        self._notifiers: dict[str, Notifier] = {}
        self._cordons: dict[str, Cordon] = {}
        self._paused: Pause | None = None
        self._settings = RetrySettings()
        self._default_policy: str | None = None
        self._access = Access()
        self._tokens: dict[str, ApiToken] = {}
        self._configured: Configured | None = None
        self._submitters: dict[str, str] = {}

    def catalogue_version(self) -> int:
        """Return the catalogue's version, cheaply."""
        return self._version

    def catalogue(self) -> Catalogue:
        """Read the catalogue."""
        with self._lock:
            own = (self._settings, self._default_policy)
            settings, default_policy = own if self._configured is None else self._configured.over(*own)
            return Catalogue(
                self._version,
                dict(self._queues),
                dict(self._policies),
                sorted(self._categories.values(), key=lambda category: (category.precedence, category.name)),
                settings,
                default_policy,
                dict(self._notifiers),
                dict(self._cordons),
                self._paused,
                access=self._access,
                tokens=dict(self._tokens),
                configured=self._configured,
                own=None if self._configured is None else own,
                submitters={what: who for what, who in self._submitters.items() if who},
            )

    def put_policy(
        self,
        policy: RetryPolicy,
        *,
        create: bool | None = None,
        by: Caller | None = None,
        if_match: Collection[str] | None = None,
    ) -> RetryPolicy:
        """Store a policy as a new revision; equal content keeps the revision."""
        with self._lock:
            presence.require_presence(presence.POLICY, policy.name, known=self._policies, create=create)
            current = self._policies.get(policy.name)
            presence.require_revision(current, if_match)
            if current is not None and evolve(policy, revision=current.revision) == current:
                return current
            revisions = self._revisions.setdefault(policy.name, [])
            stored = evolve(policy, revision=len(revisions) + 1)
            revisions.append(stored)
            self._submitters.setdefault(f"{presence.POLICY} {policy.name}", "" if by is None else by.principal.name)
            self._policies[policy.name] = stored
            self._edited(audit.on_entry(by, _put_act(current), Subject.POLICY, stored.name, stored.revision))
            return stored

    def policy_revision(self, name: str, revision: int) -> RetryPolicy:
        """Read one stored revision, also of a deleted policy."""
        with self._lock:
            revisions = self._revisions.get(name, [])
        if not 1 <= revision <= len(revisions):
            raise presence.no_such(rules.REVISION, f"{name}@{revision}")
        return revisions[revision - 1]

    def delete_policy(
        self, name: str, *, by: Caller | None = None, if_match: Collection[str] | None = None, detach: bool = False
    ) -> None:
        """Delete a policy, with ``detach`` also from the queues that name it; its revisions stay readable."""
        with self._lock:
            presence.require_presence(presence.POLICY, name, known=self._policies, create=False)
            presence.require_revision(self._policies[name], if_match)
            queues = [*self._queues.values()]
            references.require_unused_policy(
                name,
                queues=() if detach else queues,
                default_policy=self._default_policy,
                work=self._work_with(name),
            )
            for queue in references.detached(name, queues) if detach else ():
                self._queues[queue.name] = queue
                self._edited(audit.on_entry(by, Act.UPDATE, Subject.QUEUE, queue.name))
            gone = self._policies.pop(name)
            self._submitters.pop(f"{presence.POLICY} {name}", None)
            self._edited(audit.on_entry(by, Act.DELETE, Subject.POLICY, gone.name, gone.revision))

    def _work_with(self, policy: str) -> Iterator[str]:
        """Yield what has not ended and names a retry policy itself; jobs of what was yielded are left out."""
        told = set[str]()
        for one in self._jobs_waiting.workloads.values():
            if isinstance(one, Owner) and references.names_policy(one, policy):
                told.add(one.id)
                yield references.user(one.noun, one.name, one.id)
        for job in self._jobs_waiting.by_id.values():
            owner = job.child.set_id if job.child is not None else ""
            if not job.terminal and owner not in told and policy in _policies_in(job.spec):
                yield references.user("job", job.name, job.id)

    def put_queue(self, queue: Queue, *, create: bool | None = None, by: Caller | None = None) -> None:
        """Store a queue."""
        self.edit_queue(queue.name, lambda _: queue, create=create, by=by)

    def edit_queue(
        self, name: str, edit: Callable[[Queue | None], Queue], *, create: bool | None = None, by: Caller | None = None
    ) -> Queue:
        """Store what ``edit`` makes of a queue."""
        with self._lock:
            presence.require_presence(presence.QUEUE, name, known=self._queues, create=create)
            current = self._queues.get(name)
            queue = edit(current)
            references.require_policies(queue, self._policies)
            references.require_notifiers(queue, self._notifiers)
            permissions.require_right_to_permissions(by, current, queue)
            if current != queue:
                self._submitters.setdefault(f"{presence.QUEUE} {name}", "" if by is None else by.principal.name)
                self._queues[name] = queue
                self._edited(audit.on_entry(by, _put_act(current), Subject.QUEUE, name))
            return queue

    def delete_queue(self, name: str, *, by: Caller | None = None) -> None:
        """Delete a queue."""
        with self._lock:
            presence.require_presence(presence.QUEUE, name, known=self._queues, create=False)
            references.require_not_default_queue(name)
            creator = self._submitters.get(f"{presence.QUEUE} {name}")
            permissions.require_right_to_delete(by, self._queues[name], creator)
            asked = {key for one in self._requests.values() if one.kind is RequestKind.RETRY for key in one.targets}
            jobs = [job for job in self._jobs_waiting.by_id.values() if job.queue == name]
            if any(not job.terminal or job.id in asked for job in jobs):
                raise references.waiting_jobs(name)
            every = self._jobs_waiting.workloads.values()
            references.require_no_owners(name, [each for each in every if isinstance(each, Owner)])
            del self._queues[name]
            self._submitters.pop(f"{presence.QUEUE} {name}", None)
            self._edited(audit.on_entry(by, Act.DELETE, Subject.QUEUE, name))

    def put_category(self, category: FailureCategory, *, create: bool | None = None, by: Caller | None = None) -> None:
        """Store a failure category."""
        with self._lock:
            presence.require_presence(presence.CATEGORY, category.name, known=self._categories, create=create)
            current = self._categories.get(category.name)
            if current != category:
                self._submitters.setdefault(
                    f"{presence.CATEGORY} {category.name}", "" if by is None else by.principal.name
                )
                self._categories[category.name] = category
                self._edited(audit.on_entry(by, _put_act(current), Subject.CATEGORY, category.name))

    def delete_category(self, name: str, *, by: Caller | None = None) -> None:
        """Delete a failure category."""
        with self._lock:
            presence.require_presence(presence.CATEGORY, name, known=self._categories, create=False)
            del self._categories[name]
            self._submitters.pop(f"{presence.CATEGORY} {name}", None)
            self._edited(audit.on_entry(by, Act.DELETE, Subject.CATEGORY, name))

    def put_notifier(self, notifier: Notifier, *, create: bool | None = None, by: Caller | None = None) -> None:
        """Store a notifier."""
        with self._lock:
            presence.require_presence(presence.NOTIFIER, notifier.name, known=self._notifiers, create=create)
            current = self._notifiers.get(notifier.name)
            if current != notifier:
                self._submitters.setdefault(
                    f"{presence.NOTIFIER} {notifier.name}", "" if by is None else by.principal.name
                )
                self._notifiers[notifier.name] = notifier
                self._edited(audit.on_entry(by, _put_act(current), Subject.NOTIFIER, notifier.name))

    def delete_notifier(self, name: str, *, by: Caller | None = None) -> None:
        """Delete a notifier."""
        with self._lock:
            presence.require_presence(presence.NOTIFIER, name, known=self._notifiers, create=False)
            references.require_unused_notifier(name, queues=self._queues.values())
            del self._notifiers[name]
            self._submitters.pop(f"{presence.NOTIFIER} {name}", None)
            self._edited(audit.on_entry(by, Act.DELETE, Subject.NOTIFIER, name))

    def put_cordon(self, cordon: Cordon, *, by: Caller | None = None) -> None:
        """Cordon a node, or drain it; one that is drained stays so."""
        with self._lock:
            known = self._cordons.get(cordon.node)
            stored = cordon.over(known)
            if stored != known:
                self._cordons[cordon.node] = stored
                self._edited(audit.on_cordon(by, stored))

    def delete_cordon(self, node: str, *, by: Caller | None = None) -> None:
        """Let work onto a node again."""
        with self._lock:
            if self._cordons.pop(node, None) is not None:
                self._edited(audit.on_uncordon(by, node))

    def paused(self) -> Pause | None:
        """Read why nothing is started, if so."""
        return self._paused

    def put_pause(self, pause: Pause, *, by: Caller | None = None) -> None:
        """Have nothing started any more."""
        with self._lock:
            self._paused = pause
            self._edited(audit.on_pause(by, pause))

    def delete_pause(self, *, by: Caller | None = None) -> bool:
        """Have what waits started again; returns whether it was not."""
        with self._lock:
            if self._paused is None:
                return False
            self._paused = None
            self._edited(audit.on_resume(by))
            return True

    def put_settings(
        self,
        settings: RetrySettings,
        default_policy: str | None,
        access: Access = AS_BEFORE,
        *,
        by: Caller | None = None,
    ) -> None:
        """Store the operator's settings."""
        with self._lock:
            if self._configured is None or default_policy != self.catalogue().default_policy:
                references.require_default_policy(default_policy, self._policies)
            before, access = self._access, access.over(self._access)
            if self._configured is not None:
                own = self._settings, self._default_policy
                settings, default_policy = self._configured.beside(settings, default_policy, own)
            if (settings, default_policy, access) != (self._settings, self._default_policy, before):
                self._settings, self._default_policy, self._access = settings, default_policy, access
                self._edited(audit.on_settings(by, settings, default_policy, None if access == before else access))

    def put_configured(self, configured: Configured | None, *, by: Caller | None = None) -> bool:
        """Store what a file says over the settings; ``None``: there is no file. Returns whether that is new."""
        with self._lock:
            if configured == self._configured:
                return False
            self._configured, own = configured, (self._settings, self._default_policy)
            self._edited(audit.on_settings(by, *(own if configured is None else configured.over(*own))))
            return True

    def put_token(self, token: ApiToken, now: float, *, by: Caller | None = None) -> None:
        """Store a token in the place of none, or of one of its name that opens nothing any more."""
        with self._lock:
            permissions.require_free_token(self._tokens.get(token.name), now)
            self._tokens[token.name] = token
            self._edited(audit.on_token(by, Act.CREATE, token.name, f"for {token.user} as {token.role}"))

    def revoke_token(self, name: str, now: float, *, by: Caller | None = None) -> ApiToken:
        """Have a token open nothing any more; one that was revoked is left alone."""
        with self._lock:
            presence.require_presence(Subject.TOKEN, name, known=self._tokens, create=False)
            token = self._tokens[name]
            if token.revoked_at is None:
                token = self._tokens[name] = evolve(token, revoked_at=now)
                self._edited(audit.on_token(by, Act.DELETE, name, f"of {token.user}"))
            return token

    def use_token(self, token: ApiToken, at: float) -> None:
        """Keep when a token was used last, if it is still the same."""
        with self._lock:
            known = self._tokens.get(token.name)
            if known is not None and known.id == token.id and (known.used_at is None or known.used_at < at):
                self._tokens[token.name] = evolve(known, used_at=at)
                self._version += 1

    def _edited(self, change: AuditedChange | None) -> None:
        self._version += 1
        self.append_audited([change] if change is not None else [])


def _put_act(current: object) -> Act:
    return Act.CREATE if current is None else Act.UPDATE


def _policies_in(spec: str) -> Collection[str]:
    try:
        return load_spec(spec).retry_policies
    except UnreadableSpec:
        return ()
