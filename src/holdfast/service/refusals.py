"""Writes refusals to the audit log.

The store itself writes what was done, in the transaction that did it; a refusal has no transaction. Refusals for a
missing right can be many, so repeated ones are counted and written once a minute.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary

from holdfast.domain.audit import Act, AuditEntry
from holdfast.domain.record import Struct, evolve
from holdfast.errors import HoldfastError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.domain.audit import Caller
    from holdfast.domain.terms.kinds import SubjectName
    from holdfast.ports.events import AuditStore


@contextmanager
def audited(store: AuditStore, caller: Caller | None, act: Act, subject: SubjectName, name: str) -> Iterator[None]:
    """Write an error that refuses what the context does to the audit log, and raise it again."""
    try:
        yield
    except Unavailable:
        raise  # Nothing was decided, and nothing could be written now.
    except HoldfastError as error:
        if caller is not None:
            store.record(AuditEntry(caller, act, subject, name, outcome=error.code, detail=error.message))
        raise


def put_act(*, create: bool | None) -> Act:
    """Return the act that the audit log records when a write is refused."""
    return {True: Act.CREATE, False: Act.UPDATE, None: Act.APPLY}[create]


TOLD_EVERY_S = 60.0
MOST_NAMES = 20
"""Names of each kind that are recorded for one caller in a minute; further names are counted together."""
_MOST_KEPT = 4096
_Key: TypeAlias = tuple[str, str, str, str, str]
"""Actor, act, subject, detail and name; the name is empty for all beyond ``MOST_NAMES``."""


class _Repeated(Struct, gc=True):
    """A refusal that was written, and its repetitions since."""

    since: float
    last: AuditEntry
    more: int = 0


class Repeats:
    """Writes refusals to the audit log: a new one at once, repeated ones once a minute with their count."""

    def __init__(self) -> None:
        self._written: dict[_Key, _Repeated] = {}
        self._lock = Lock()

    def record(self, store: AuditStore, entry: AuditEntry) -> None:
        """Write a refusal, or count it if it is repeated."""
        for due in self._to_write(entry):
            store.record(due)

    def _to_write(self, entry: AuditEntry) -> list[AuditEntry]:
        now = entry.caller.at
        entries: list[AuditEntry] = []
        with self._lock:
            due = [key for key, earlier in self._written.items() if not 0.0 <= now - earlier.since < TOLD_EVERY_S]
            for key in due:
                earlier = self._written.pop(key)
                entries += [_summed(earlier)] if earlier.more else []
            key = self._key(entry)
            repeated = self._written.get(key)
            if repeated is None:
                if len(self._written) < _MOST_KEPT:
                    self._written[key] = _Repeated(now, entry)
                entries.append(entry)
            else:
                repeated.last, repeated.more = entry, repeated.more + 1
        return entries

    def _key(self, entry: AuditEntry) -> _Key:
        key = (entry.caller.actor, entry.act, entry.subject, entry.detail, entry.name)
        if key in self._written:
            return key
        return key if sum(written[:-1] == key[:-1] for written in self._written) < MOST_NAMES else (*key[:-1], "")


def _summed(repeated: _Repeated) -> AuditEntry:
    """Return the last refusal with the number of repetitions since the first, which was written."""
    return evolve(
        repeated.last,
        detail=f"{repeated.last.detail} ({repeated.more} more within a minute, this is the last)".lstrip(),
    )


_OF_STORES: WeakKeyDictionary[AuditStore, Repeats] = WeakKeyDictionary()


def record_once(store: AuditStore, entry: AuditEntry) -> None:
    """Write an entry to the store's audit log; repeated ones are counted and written once a minute."""
    repeats = _OF_STORES.get(store)
    if repeats is None:
        repeats = _OF_STORES.setdefault(store, Repeats())
    repeats.record(store, entry)
