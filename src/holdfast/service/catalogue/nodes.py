"""Cordons nodes, drains them, and lets work onto them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.audit import Act, Subject
from holdfast.domain.placement.cordon import Cordon
from holdfast.domain.record import Struct
from holdfast.service.audit import audited
from holdfast.service.naming import not_found

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Node
    from holdfast.ports.clock import Clock
    from holdfast.ports.store import Store


class Nodes(Struct, frozen=True):
    """The nodes, and which of them get work."""

    store: Store
    clock: Clock

    def cordon(self, name: str, reason: str = "", *, drain: bool = False, by: Caller | None = None) -> Sequence[Node]:
        """Place nothing on a node any more, and with ``drain`` stop what runs there; returns the nodes of that name.

        One that is drained stays so, whatever it is told about a cordon, until it is uncordoned.

        Raises:
            NotFound: There is none.
        """
        with audited(self.store, by, Act.DRAIN if drain else Act.CORDON, Subject.NODE, name):
            found = self._named(name)
            self.store.put_cordon(Cordon(name, self.clock.now(), drain, reason), by=by)
            return found

    def uncordon(self, name: str, *, by: Caller | None = None) -> Sequence[Node]:
        """Let work onto a node again; one that is not cordoned is left alone.

        Raises:
            NotFound: There is none.
        """
        with audited(self.store, by, Act.UNCORDON, Subject.NODE, name):
            found: Sequence[Node] = ()
            if name not in self.store.catalogue().cordons:
                return self._named(name)
            found = [node for node in self.store.nodes() if node.name == name]
            self.store.delete_cordon(name, by=by)
            return found

    def _named(self, name: str) -> Sequence[Node]:
        nodes = self.store.nodes()
        found = [node for node in nodes if node.name == name]
        if not found:
            raise not_found(name, [node.name for node in nodes], "node")
        return found
