"""Asks the controller to do something with a piece of work of any kind.

What its state, with everything asked of it before, does not allow is refused here, so that a caller hears it at once;
the controller alone changes the work. A new request is compared with all that was accepted before it, never with what
happens to be in force. The order of acceptance is the order of versions: with ``if_match`` something is asked only
while a workload has one of these, else ``VersionConflict``.
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
"""Requests that are called otherwise than the acts."""
NOTHING: Mapping[str, Any] = MappingProxyType({})
Versions: TypeAlias = "frozenset[str] | None"
"""Resource versions, one of which a workload must have; ``None``: any."""
_MOST_TRIES = 100
"""One caller gets through in each round, so only that many concurrent callers could use these up."""


class Steering(ABC, Generic[W]):
    """How one kind of work is steered."""

    kind: type[W]

    @abstractmethod
    def find(self, store: Store, reference: str, act: Act) -> W:
        """Find one as it is with all that was asked of it, to do so to it.

        Raises:
            NotFound: There is none.
        """

    @abstractmethod
    def allow(self, control: Control[W], act: Act, row: W, what: Mapping[str, Any]) -> str | None:
        """Return the payload of the request; ``None``: it is so already, or about to be, and is left alone.

        Raises:
            Conflict: Its state does not allow it.
        """

    def request_kind(self, act: Act, what: Mapping[str, Any]) -> RequestKind:
        """Return what the controller is asked for; ``what`` is as in ``allow``."""
        del what
        return _KINDS.get(act) or RequestKind(act.value)

    def accepted(self, row: W, request: Request) -> W:
        """Return what is answered once something is asked of it."""
        del request
        return row


class OwnerSteering(Steering[R]):
    """How a kind is steered whose workloads are made of jobs."""

    @abstractmethod
    def done(self, row: R, request: Request) -> R:
        """Do to one what the controller does with a request, as far as others are compared with it."""

    @abstractmethod
    def read(self, row: R) -> object:
        """Read what one should be.

        Raises:
            UnreadableSpec: It is damaged.
        """

    @abstractmethod
    def nothing(self, name: str) -> object:
        """Return what a damaged one is taken for, which can only be deleted."""

    def as_accepted(self, pending: AskedOf[R]) -> R:
        """Return one as it is once all that was asked of it is done; how its jobs stand is left as it is."""
        return reduce(self.done, pending.requests, pending.workload)

    def find(self, store: Store, reference: str, act: Act) -> R:
        """Find one as it is with all that was asked of it; deleting is the way to be rid of a damaged one."""
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
    """Asks for something to be done with work of one kind."""

    rules: Steering[W]
    store: Store
    clock: Clock
    actor: str = ""
    """Who asks, where a call does not say."""
    make_room: Callable[[], bool] = lambda: False
    """Gives up what is kept of a full disk; returns whether there is more room now."""

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
        """Ask for something to be done with one; what is so already, or about to be, is left alone.

        Args:
            act: What is asked for.
            reference: What names it.
            reason: Why, for people.
            caller: Who asks.
            if_match: It must have one of these versions.
            what: What else the rules of its kind take: which part is meant, or what it is changed to.

        Raises:
            NotFound: There is none, or not the part of it that is meant.
            Conflict: Its state does not allow it.
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
        """Append a request, of many by one in one transaction; where it does not apply, nothing happens."""
        actor = self.actor if caller is None else caller.actor
        request = Request(kind, targets, self.clock.now(), actor=actor, reason=reason, payload=payload)
        try:
            self.store.append(request, caller=caller, version=version)
        except Unavailable:
            # The very work that fills the disk must be possible to cancel.
            if kind not in CANCELS or not self.make_room():
                raise
            self.store.append(request, caller=caller, version=version)
        return request


def require_match(row: Job | Owner, versions: Versions) -> None:
    """Check that a workload has one of the versions its caller knows.

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
