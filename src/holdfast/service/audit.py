"""Reads the audit log, and writes to it what was refused.

What was done is written by the store, in the transaction that did it; a refusal has no transaction.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from holdfast.domain.audit import Act, AuditEntry
from holdfast.domain.record import Struct
from holdfast.errors import HoldfastError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.domain.audit import Caller, StoredAuditEntry, Subject
    from holdfast.ports.events import AuditStore

LARGEST_PAGE = 1000


class Audit(Struct, frozen=True):
    """The audit log."""

    store: AuditStore

    def page(self, *, after: int = 0, limit: int = LARGEST_PAGE) -> Sequence[StoredAuditEntry]:
        """List the oldest entries after a place, in order."""
        return self.store.audit(after=after, limit=limit)


@contextmanager
def audited(store: AuditStore, by: Caller | None, act: Act, subject: Subject, name: str) -> Iterator[None]:
    """Write a refusal of what is done in the context to the audit log, and let it pass on."""
    try:
        yield
    except Unavailable:
        raise  # nothing could be written now, and nobody decided anything
    except HoldfastError as error:
        if by is not None:
            store.record(AuditEntry(by, act, subject, name, outcome=error.code, detail=error.message))
        raise


def put_act(*, create: bool | None) -> Act:
    """Return what a refused write was meant to be."""
    return {True: Act.CREATE, False: Act.UPDATE, None: Act.APPLY}[create]
