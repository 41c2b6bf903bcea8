"""The audit log: who did what, and what was refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.access.grants import Right
from holdfast.domain.access.people import Role
from holdfast.domain.audit import Act, AuditEntry, Subject
from holdfast.domain.record import Struct
from holdfast.service.access.asking import asks
from holdfast.service.access.repeats import record_once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.audit import Caller, StoredAuditEntry
    from holdfast.ports.events import AuditStore

LARGEST_PAGE = 1000


class Audit(Struct, frozen=True):
    """The audit log."""

    store: AuditStore

    @asks(Right.WATCH, Subject.AUDIT)
    def page(self, caller: Caller, *, after: int = 0, limit: int = LARGEST_PAGE) -> Sequence[StoredAuditEntry]:
        """List the oldest entries after a place, in order; that somebody reads who is no admin is one itself."""
        found = self.store.audit(after=after, limit=limit)
        if Role.ADMIN not in caller.principal.roles:
            record_once(self.store, AuditEntry(caller, Act.READ, Subject.AUDIT, "audit"))
        return found
