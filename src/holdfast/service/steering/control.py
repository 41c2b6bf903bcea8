"""Requests that the controller act on a piece of work of any kind.

A request that the work's state does not allow is refused here, so that the caller hears it at once; only the controller
changes the work. A new request is compared with the state after all requests accepted before it, never with the state
in force. The order of acceptance is the order of versions: with ``if_match`` a request is accepted only while the
workload has one of these versions, else ``VersionConflict``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from holdfast.compiled.codec import dump_spec
from holdfast.domain.audit import Act
from holdfast.domain.record import Struct, evolve
from holdfast.errors import AlreadyExists, Internal, Unavailable, VersionConflict
from holdfast.ports.requests import CANCELS, Request, RequestKind
from holdfast.service.refusals import audited

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Job
    from holdfast.domain.workloads.base import Owner
    from holdfast.ports.clock import Clock
    from holdfast.ports.store import Store
    from holdfast.ports.workloads import AskedOf

T = TypeVar("T")
W = TypeVar("W", bound="Job | Owner")
R = TypeVar("R", bound="Owner")
_KINDS = {Act.SUSPEND: RequestKind.HOLD, Act.RESUME: RequestKind.RELEASE}
"""Requests whose names differ from their acts."""
NOTHING: Mapping[str, Any] = MappingProxyType({})
Versions: TypeAlias = "frozenset[str] | None"
"""Resource versions, one of which a workload must have; ``None``: any."""
_MOST_TRIES = 100
"""One caller gets through in each round, so only that many concurrent callers could use these up."""


class Steering(ABC, Generic[W]):
    """The rules for steering one kind of work."""

    kind: type[W]

    @abstractmethod
    def find(self, store: Store, reference: str, act: Act) -> W:
        """Find the work with all pending requests applied.

        Raises:
            NotFound: It does not exist.
        """

    @abstractmethod
    def allow(self, control: Control[W], act: Act, row: W, what: Mapping[str, Any]) -> str | None:
        """Return the payload of the request; ``None`` if there is nothing to do.

        Raises:
            Conflict: The work's state does not allow the act.
        """

    def request_kind(self, act: Act, what: Mapping[str, Any]) -> RequestKind:
        """Return the request's kind; ``what`` is as in ``allow``."""
        del what
        return _KINDS.get(act) or RequestKind(act.value)

    def accepted(self, row: W, request: Request) -> W:
        """Return the work as it is answered once the request is accepted."""
        del request
        return row


class OwnerSteering(Steering[R]):
    """The rules for steering a kind of work that consists of jobs."""

    @abstractmethod
    def done(self, row: R, request: Request) -> R:
        """Apply a request as the controller does, as far as later requests are compared with it."""

    @abstractmethod
    def read(self, row: R) -> object:
        """Read the specification.

        Raises:
            UnreadableSpec: It is damaged.
        """

    @abstractmethod
    def nothing(self, name: str) -> object:
        """Return the specification that stands in for a damaged one; such work can only be deleted."""

    def as_accepted(self, pending: AskedOf[R]) -> R:
        """Return one as it is once all that was asked of it is done; how its jobs stand is left as it is."""
        return reduce(self.done, pending.requests, pending.workload)

    def find(self, store: Store, reference: str, act: Act) -> R:
        """Find the work with all pending requests applied. Damaged work can be found only to delete it."""
        try:
            row = self.as_accepted(store.asked_of(self.kind, reference))
            self.read(row)
        except Internal:
            if act is not Act.DELETE:
                raise
            left = store.left_of(self.kind, reference)
            return evolve(left, spec=dump_spec(self.nothing(left.name)))
        return row


class Control(Struct, Generic[W], frozen=True):
    """Requests acts on work of one kind."""

    rules: Steering[W]
    store: Store
    clock: Clock
    actor: str = ""
    """The actor of requests whose call names no caller."""
    make_room: Callable[[], bool] = lambda: False
    """Frees the reserve kept for a full disk; returns whether there is more room now."""

    def ask(
        self,
        act: Act,
        reference: str,
        reason: str = "",
        *,
        caller: Caller | None = None,
        if_match: Versions = None,
        what: Mapping[str, Any] = NOTHING,
    ) -> W:
        """Request an act on a piece of work, unless there is nothing to do.

        Args:
            act: The act.
            reference: Name or id of the work.
            reason: A reason for people.
            caller: The caller.
            if_match: Versions, one of which the work must have.
            what: Further arguments of the kind's rules, such as a part of the work, or a change.

        Raises:
            NotFound: The work, or that part of it, does not exist.
            Conflict: The work's state does not allow the act.
        """
        with audited(self.store, caller, act, self.rules.kind.info.subject, reference):
            return in_order(lambda: self._asked(act, reference, reason, caller, if_match, what), if_match)

    def _asked(
        self, act: Act, reference: str, reason: str, caller: Caller | None, if_match: Versions, what: Mapping[str, Any]
    ) -> W:
        row = self.rules.find(self.store, reference, act)
        require_match(row, if_match)
        payload = self.rules.allow(self, act, row, what)
        if payload is None:
            return row
        version = getattr(row, "version", None)
        kind = self.rules.request_kind(act, what)
        return self.rules.accepted(
            row, self.send(kind, (row.id,), reason, caller=caller, payload=payload, version=version)
        )

    def send(
        self,
        kind: RequestKind,
        targets: tuple[str, ...],
        reason: str = "",
        *,
        caller: Caller | None = None,
        payload: str = "",
        version: int | None = None,
    ) -> Request:
        """Append one request for several targets, in one transaction. Where it does not apply, nothing happens."""
        actor = self.actor if caller is None else caller.actor
        request = Request(kind, targets, self.clock.now(), actor=actor, reason=reason, payload=payload)
        try:
            self.store.append(request, caller=caller, version=version)
        except Unavailable:
            # Users must be able to cancel the very work that fills the disk.
            if kind not in CANCELS or not self.make_room():
                raise
            self.store.append(request, caller=caller, version=version)
        return request


def require_match(row: Job | Owner, versions: Versions) -> None:
    """Check that a workload has one of the versions that its caller knows.

    Raises:
        VersionConflict: It has another.
    """
    current = "" if versions is None else getattr(row, "resource_version", "")
    if versions is not None and current not in versions:
        raise VersionConflict.of(row.info.noun, row.name, current=current)


def in_order(ask: Callable[[], T], versions: Versions = None) -> T:
    """Call ``ask``, and again when another caller changed the same workload meanwhile.

    Raises:
        VersionConflict: Another caller changed it, and ``versions`` says which it must have; or too many did.
    """
    for _ in range(_MOST_TRIES):
        try:
            return ask()
        except AlreadyExists:
            continue
        except VersionConflict:
            if versions is not None:
                raise
    return ask()
