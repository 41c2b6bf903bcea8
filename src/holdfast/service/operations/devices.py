"""Lists, cordons and uncordons GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.access.grants import Right
from holdfast.domain.audit import Act, Subject
from holdfast.domain.record import Struct
from holdfast.errors import Conflict, NotFound
from holdfast.ports.requests import Request, RequestKind
from holdfast.ports.store import JobFilter
from holdfast.service.access.asking import asks
from holdfast.service.operations.seeing import Seeing
from holdfast.service.refusals import audited

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.devices import Device
    from holdfast.domain.job import Node, Run
    from holdfast.ports.clock import Clock
    from holdfast.ports.store import Store
    from holdfast.service.access.book import AccessBook


class DeviceList(Struct, frozen=True):
    """Nodes with their GPUs, the runs that hold any, and the names of these runs' jobs by id."""

    nodes: Sequence[Node]
    holders: Sequence[Run]
    names: Mapping[str, str]


class DeviceOperations(Struct, frozen=True):
    """The operations on GPUs."""

    store: Store
    clock: Clock
    access: AccessBook | None = None
    """Limits answers to what the caller may see."""

    @asks(Right.WATCH, Subject.DEVICE)
    def list(self, caller: Caller) -> DeviceList:
        """Read the GPUs of all nodes, and which runs hold them."""
        holders = [run for run in self.store.running() if run.devices]
        jobs = self.store.jobs(JobFilter(ids=frozenset(run.job_id for run in holders)))
        seeing = Seeing(self.store, self.access, caller)
        return DeviceList(self.store.nodes(), *seeing.holders(holders, jobs))

    @asks(Right.CHANGE, Subject.DEVICE)
    def cordon(self, caller: Caller, reference: str, reason: str) -> tuple[Node, Device]:
        """Cordon a GPU: no further run gets it. A run that holds it keeps it.

        Raises:
            NotFound: No GPU has that id.
            Conflict: Several nodes have a GPU of that id.
        """
        return self._ask(RequestKind.CORDON, Act.CORDON, reference, reason, caller)

    @asks(Right.CHANGE, Subject.DEVICE)
    def uncordon(self, caller: Caller, reference: str, reason: str = "") -> tuple[Node, Device]:
        """Uncordon a GPU, if it is cordoned.

        Raises:
            NotFound: No GPU has that id.
            Conflict: Several nodes have a GPU of that id.
        """
        return self._ask(RequestKind.UNCORDON, Act.UNCORDON, reference, reason, caller)

    def _ask(self, kind: RequestKind, act: Act, reference: str, reason: str, caller: Caller) -> tuple[Node, Device]:
        with audited(self.store, caller, act, Subject.DEVICE, reference):
            node, device = self._find(reference)
            target = f"{node.executor} {node.name} {device.id}"
            self.store.append(
                Request(kind, (target,), self.clock.now(), actor=caller.actor, reason=reason), caller=caller
            )
            return node, device

    def _find(self, reference: str) -> tuple[Node, Device]:
        """Find a GPU by its id, or by ID@NODE if several nodes have one of that id."""
        devices = [(node, device) for node in self.store.nodes() for device in node.devices]
        matching = [pair for pair in devices if reference in {pair[1].id, f"{pair[1].id}@{pair[0].name}"}]
        if not matching:
            msg = f"no GPU has the id {reference!r}"
            raise NotFound(msg, hint="holdfast get devices")
        if len(matching) > 1:
            names = ", ".join(f"{device.id}@{node.name}" for node, device in matching)
            msg = f"more than one GPU has the id {reference!r}: {names}"
            raise Conflict(msg, hint="write ID@NODE")
        return matching[0]
