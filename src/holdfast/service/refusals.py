"""Writes what was refused to the audit log.

What was done is written by the store, in the transaction that did it; a refusal has no transaction.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from holdfast.domain.audit import Act, AuditEntry
from holdfast.errors import HoldfastError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.domain.audit import Caller
    from holdfast.domain.terms.kinds import SubjectName
    from holdfast.ports.events import AuditStore


@contextmanager
def audited(store: AuditStore, caller: Caller | None, act: Act, subject: SubjectName, name: str) -> Iterator[None]:
    """Write a refusal of what is done in the context to the audit log, and let it pass on."""
    try:
        yield
    except Unavailable:
        raise  # nothing could be written now, and nobody decided anything
    except HoldfastError as error:
        if caller is not None:
            store.record(AuditEntry(caller, act, subject, name, outcome=error.code, detail=error.message))
        raise


def put_act(*, create: bool | None) -> Act:
    """Return what a refused write was meant to be."""
    return {True: Act.CREATE, False: Act.UPDATE, None: Act.APPLY}[create]
