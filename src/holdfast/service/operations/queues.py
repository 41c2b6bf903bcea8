"""Edits and reads queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.access.grants import Right
from holdfast.domain.audit import Act, Subject
from holdfast.domain.record import Struct
from holdfast.errors import InvalidManifest
from holdfast.ports import presence
from holdfast.service.access.asking import asks
from holdfast.service.access.strangers import strange_in_permissions
from holdfast.service.admission.offers import unknown_ceilings
from holdfast.service.naming import not_found, unknown_names, unknown_notifiers
from holdfast.service.refusals import audited, put_act

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Node, Queue
    from holdfast.errors import Problem
    from holdfast.ports.store import Store


class Queues(Struct, frozen=True):
    """The queues."""

    store: Store

    @asks(Right.WATCH, Subject.QUEUE)
    def list(self, _caller: Caller) -> Sequence[Queue]:
        """List all, by name."""
        queues = self.store.catalogue().queues
        return [queues[name] for name in sorted(queues)]

    @asks(Right.WATCH, Subject.QUEUE)
    def submitters(self, _caller: Caller) -> Mapping[str, str]:
        """Say who first wrote each, by its name, where that is known."""
        kind = f"{presence.QUEUE} "
        found = self.store.catalogue().submitters
        return {what.removeprefix(kind): who for what, who in found.items() if what.startswith(kind)}

    @asks(Right.WATCH, Subject.QUEUE)
    def get(self, _caller: Caller, name: str) -> Queue:
        """Read a queue.

        Raises:
            NotFound: There is none of that name.
        """
        queues = self.store.catalogue().queues
        if name not in queues:
            raise not_found(name, queues, "queue")
        return queues[name]

    @asks(Right.CHANGE, Subject.QUEUE)
    def put(self, caller: Caller, queue: Queue, *, create: bool | None = None, dry_run: bool = False) -> Queue:
        """Store a queue; ``create`` true: must be new, false: must exist, ``None``: either; a dry run stores nothing.

        Raises:
            InvalidManifest: It names a policy or a notifier that does not exist.
            AlreadyExists: It exists, and must be new.
            NotFound: It does not, and must exist.
        """
        with audited(self.store, None if dry_run else caller, put_act(create=create), Subject.QUEUE, queue.name):
            catalogue = self.store.catalogue()
            problems = unknown_names(
                queue.retry_policies,
                catalogue.policies,
                "retry policy",
                lambda index: f"spec.retryPolicies[{index}]",
            )
            problems += unknown_notifiers(queue.notify, catalogue.notifiers)
            if problems:
                msg = f"queue {queue.name!r} is not valid"
                raise InvalidManifest(msg, problems=problems)
            if dry_run:
                presence.require_presence(presence.QUEUE, queue.name, known=catalogue.queues, create=create)
            else:
                self.store.put_queue(queue, create=create, by=caller)
        return queue

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
            return self.store.edit_queue(name, change, create=create, by=caller)

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
            self.store.delete_queue(name, by=caller)
