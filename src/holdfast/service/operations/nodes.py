"""Lists, cordons, drains and uncordons nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.access.grants import Right
from holdfast.domain.audit import Act, Subject
from holdfast.domain.placement.cordon import Cordon
from holdfast.domain.record import Struct
from holdfast.service.access.asking import asks
from holdfast.service.naming import not_found
from holdfast.service.refusals import audited

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Node, Run
    from holdfast.ports.clock import Clock
    from holdfast.ports.store import Store


class NodesInUse(Struct, frozen=True):
    """Nodes, the runs on all nodes, and the cordons."""

    nodes: Sequence[Node]
    running: Sequence[Run]
    cordons: Mapping[str, Cordon]


class Nodes(Struct, frozen=True):
    """The operations on nodes."""

    store: Store
    clock: Clock

    @asks(Right.WATCH, Subject.NODE)
    def list(self, _caller: Caller) -> NodesInUse:
        """Read all nodes, and what runs on them."""
        return self._with_what_runs(self.store.nodes())

    def _with_what_runs(self, nodes: Sequence[Node]) -> NodesInUse:
        return NodesInUse(nodes, [*self.store.running()], self.store.catalogue().cordons)

    @asks(Right.CHANGE, Subject.NODE)
    def cordon(self, caller: Caller, name: str, reason: str = "", *, drain: bool = False) -> NodesInUse:
        """Cordon a node, so that nothing more is placed on it; with ``drain`` also stop its runs.

        Returns the nodes of that name. A drained node stays drained until it is uncordoned, even if it is cordoned.

        Raises:
            NotFound: No node has that name.
        """
        with audited(self.store, caller, Act.DRAIN if drain else Act.CORDON, Subject.NODE, name):
            nodes = self._named(name)
            self.store.put_cordon(Cordon(name, self.clock.now(), drain, reason), caller=caller)
            return self._with_what_runs(nodes)

    @asks(Right.CHANGE, Subject.NODE)
    def uncordon(self, caller: Caller, name: str) -> NodesInUse:
        """Uncordon a node, if it is cordoned.

        Raises:
            NotFound: No node has that name.
        """
        with audited(self.store, caller, Act.UNCORDON, Subject.NODE, name):
            if name not in self.store.catalogue().cordons:
                return self._with_what_runs(self._named(name))
            nodes = [node for node in self.store.nodes() if node.name == name]
            self.store.delete_cordon(name, caller=caller)
            return self._with_what_runs(nodes)

    def _named(self, name: str) -> Sequence[Node]:
        nodes = self.store.nodes()
        matching = [node for node in nodes if node.name == name]
        if not matching:
            raise not_found(name, [node.name for node in nodes], "node")
        return matching
