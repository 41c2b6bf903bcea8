"""The parts of the process that operations use: the store, the clock and others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from holdfast.domain.access import Role
from holdfast.domain.audit import Caller
from holdfast.domain.record import evolve
from holdfast.errors import Unavailable
from holdfast.service.access.book import AccessBook

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.domain.access import Principal
    from holdfast.domain.file_settings import FileSettings
    from holdfast.domain.job import Node
    from holdfast.ports.blobs import Blobs
    from holdfast.ports.calls import CallRunner
    from holdfast.ports.catalogue import Catalogue
    from holdfast.ports.clock import Clock, Ids
    from holdfast.ports.logs import LogReader
    from holdfast.ports.notifications import Sender
    from holdfast.ports.secrets import Secrets
    from holdfast.ports.store import Store
    from holdfast.service.explain import Explainer
    from holdfast.service.operations.seeing import Seeing
    from holdfast.service.submit import Submitter


@dataclass
class Backend:
    """The parts of the process that operations use."""

    store: Store
    clock: Clock
    ids: Ids
    logs: LogReader
    owner: Principal
    """The principal who runs this process."""
    make_room: Callable[[], bool] = lambda: False
    """Frees the reserve kept for a full disk, so that work can be cancelled."""
    ready: Callable[[], str | None] = lambda: None
    """Returns what keeps the process from working, if anything."""
    count: Callable[[int, int], None] = lambda _accepted, _rejected: None
    """Counts accepted and rejected jobs in the metrics."""
    nodes: Callable[[], Sequence[Node]] | None = None
    """Lists the nodes that jobs can count on, to refuse what none of them has; by default the reported ones."""
    metrics: Callable[[], bytes] = lambda: b""
    """Renders the metrics of the process in Prometheus' text format."""
    sender: Callable[[], Sender] | None = None
    """Sends notifications; ``None`` if this process cannot."""
    secrets: Secrets | None = None
    """Keeps the values of secret variables; ``None`` if they cannot be kept safely."""
    blobs: Blobs | None = None
    """Keeps files that are sent with jobs; ``None`` if their programs would not find them."""
    calls: CallRunner | None = None
    """Runs the calls that clients of doors launch; ``None`` if this server runs none."""
    account: Callable[[str], Principal | None] = lambda _: None
    """Finds the Unix account of a name, with its groups; may take a while."""
    is_group: Callable[[str], bool] = lambda _: True
    """Whether the machine has a group of a name; may take a while."""
    as_submitters: bool = False
    """Whether programs run as their submitters."""
    reload: Callable[[Caller], tuple[FileSettings, bool] | None] = lambda _: None
    """Reads the configuration file again; returns it and whether it is new, or ``None`` if there is no file."""

    @cached_property
    def explainer(self) -> Explainer:
        """Explains decisions. Cached, as it keeps compiled policies."""
        from holdfast.service.explain import Explainer

        return Explainer(self.store)

    @cached_property
    def access(self) -> AccessBook:
        """Knows the rights of callers. Cached, as it keeps what it read."""
        return AccessBook(self.store, self.clock, self.owner, self.account)

    def seeing(self, caller: Caller) -> Seeing:
        """Restrict queries to what ``caller`` may see."""
        from holdfast.service.operations.seeing import Seeing

        return Seeing(self.store, self.access, caller)

    def submitter(self, caller: Caller, catalogue: Catalogue | None = None) -> Submitter:
        """Return the submitter for a caller; ``catalogue`` saves reading it."""
        from holdfast.service.submit import Submitter

        finder = self.seeing(caller)
        return Submitter(
            self.store,
            self.clock,
            self.ids,
            nodes=self.nodes,
            secrets=self.secrets,
            blobs=self.blobs,
            caller=caller,
            finder=finder,
            catalogue=catalogue,
        )

    def caller(self, principal: Principal, *, origin: str, request_id: str) -> Caller:
        """Return the caller of a request, with their roles; operations refuse callers without roles everything.

        Raises:
            Unavailable: The store cannot be read right now.
        """
        recognized = (
            evolve(principal, roles=(Role.ADMIN,)) if principal == self.owner else self.access.recognized(principal)
        )
        return Caller(recognized, self.clock.now(), origin, request_id, self._unable(recognized))

    def _unable(self, principal: Principal) -> str:
        if self.as_submitters and principal.uid is None:
            return f"programs run as their submitter here, and {principal.name} has no Unix account"
        if self.as_submitters and principal.uid == 0 and principal.limit is not None:
            return "programs run as their submitter here, and as root only what root itself submits, without a token"
        return ""

    def telling(self) -> Sender:
        """Return the sender of notifications.

        Raises:
            Unavailable: This process cannot send any.
        """
        if self.sender is None:
            msg = "this process cannot send notifications"
            raise Unavailable(msg)
        return self.sender()
