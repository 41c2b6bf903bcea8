"""One operation for all acts on existing work, of all kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from holdfast.domain.record import Struct
from holdfast.service.access.asking import RIGHTS, asks_by_act
from holdfast.service.steering.control import NOTHING, Control

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.access.grants import Right
    from holdfast.domain.audit import Act, Caller
    from holdfast.domain.job import Job
    from holdfast.domain.workloads.base import Owner
    from holdfast.ports.workloads import Unreadable
    from holdfast.service.operations.backend import Backend
    from holdfast.service.steering.control import Steering, Versions

W = TypeVar("W", bound="Job | Owner")
P = TypeVar("P")


class OwnerPage(Struct, Generic[P], frozen=True):
    """A part of a list of work that consists of jobs."""

    rows: Sequence[P]
    next_after: str | None
    """Where the list continues; ``None`` on the last page."""
    unreadable: Sequence[Unreadable] = ()
    """Rows of this part that cannot be read, and are left out."""

    @classmethod
    def until(cls, last: str | None, rows: Sequence[P], unreadable: Sequence[Unreadable]) -> OwnerPage[P]:
        """Return the part that ends with the name ``last``, or the last part."""
        return cls(rows, last, [item for item in unreadable if last is None or item.name <= last])


class Steers(Struct, Generic[W], frozen=True):
    """The operations that act on existing work of one kind."""

    backend: Backend

    rules: ClassVar[Steering[Any]]
    """The rules of its kind."""

    def _control(self) -> Control[W]:
        return Control(self.rules, self.backend.store, self.backend.clock, make_room=self.backend.make_room)

    def _named(self, caller: Caller, right: Right, ref: str) -> str:
        return self.backend.seeing(caller).named(right, self.rules.kind, ref)

    @asks_by_act
    def ask(
        self,
        caller: Caller,
        act: Act,
        /,
        ref: str,
        reason: str = "",
        *,
        if_match: Versions = None,
        what: Mapping[str, Any] = NOTHING,
    ) -> W:
        """Request an act on a piece of work; see ``Control.ask``.

        Raises:
            NotFound: The work, or that part of it, does not exist.
            Conflict: The work's state does not allow the act.
        """
        ref = self._named(caller, RIGHTS[act], ref)
        return self._control().ask(act, ref, reason, caller=caller, if_match=if_match, what=what)
