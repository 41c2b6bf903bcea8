"""What operations work with: the store, the clock, and what else of the process they need."""

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
    """What operations work with."""

    store: Store
    clock: Clock
    ids: Ids
    logs: LogReader
    owner: Principal
    """Whose server it is, or who runs this process."""
    make_room: Callable[[], bool] = lambda: False
    """Gives up what is kept of a full disk, for cancelling."""
    ready: Callable[[], str | None] = lambda: None
    """Says what keeps the process from working, if anything."""
    count: Callable[[int, int], None] = lambda _accepted, _rejected: None
    """Takes note of how many jobs were accepted and how many refused."""
    nodes: Callable[[], Sequence[Node]] | None = None
    """Lists the nodes that jobs can count on, to refuse what none of them has; by default those that were reported."""
    metrics: Callable[[], bytes] = lambda: b""
    """Writes the metrics of the process in Prometheus' text format."""
    sender: Callable[[], Sender] | None = None
    """Tells people; ``None`` where nobody can be told."""
    secrets: Secrets | None = None
    """Where the values of secret variables are; ``None`` where they cannot be kept safely."""
    blobs: Blobs | None = None
    """Where what is sent along with jobs is; ``None`` where their programs would not find it."""
    calls: CallRunner | None = None
    """What runs calls that doors are sent; ``None``: nothing."""
    account: Callable[[str], Principal | None] = lambda _: None
    """Finds the Unix account of a name, with its groups; it may take a while."""
    is_group: Callable[[str], bool] = lambda _: True
    """Whether the machine has a group of a name; it may take a while."""
    as_submitters: bool = False
    """Whether programs run as who submits them."""
    reload: Callable[[Caller], tuple[FileSettings, bool] | None] = lambda _: None
    """Reads the configuration file again, and says what it says and whether that is new; ``None``: there is none."""

    @cached_property
    def explainer(self) -> Explainer:
        """Explains decisions; it keeps what it compiled."""
        from holdfast.service.explain import Explainer

        return Explainer(self.store)

    @cached_property
    def access(self) -> AccessBook:
        """Know who may do what; it keeps what it read."""
        return AccessBook(self.store, self.clock, self.owner, self.account)

    def seeing(self, caller: Caller) -> Seeing:
        """Look with the eyes of who calls."""
        from holdfast.service.operations.seeing import Seeing

        return Seeing(self.store, self.access, caller)

    def submitter(self, caller: Caller, catalogue: Catalogue | None = None) -> Submitter:
        """Return what submits for who calls, by what operators have written if that was just read."""
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
        """Return who calls now, with their roles; without them, operations refuse everything.

        Raises:
            Unavailable: The store cannot be read right now.
        """
        recognized = (
            evolve(principal, roles=(Role.ADMIN,)) if principal == self.owner else self.access.recognized(principal)
        )
        return Caller(recognized, self.clock.now(), origin, request_id, self._unable(recognized))

    def _unable(self, principal: Principal) -> str:
        if self.as_submitters and principal.uid is None:
            return f"programs run as who submits them here, and {principal.name} has no Unix account"
        if self.as_submitters and principal.uid == 0 and principal.limit is not None:
            return "programs run as who submits them here, and as root only what root itself submits, not by a token"
        return ""

    def telling(self) -> Sender:
        """Return what tells people.

        Raises:
            Unavailable: Nobody can be told from here.
        """
        if self.sender is None:
            msg = "nobody can be told from here"
            raise Unavailable(msg)
        return self.sender()
