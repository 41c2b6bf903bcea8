"""Keeps what is refused again and again from filling the audit log: it is counted, and told once a minute."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary

from holdfast.domain.record import Struct, evolve

if TYPE_CHECKING:
    from holdfast.domain.audit import AuditEntry
    from holdfast.ports.events import AuditStore

TOLD_EVERY_S = 60.0
MOST_NAMES = 20
"""So many names one caller is told to have tried in a minute, of each kind; others are counted together."""
_MOST_KEPT = 4096
_Key: TypeAlias = tuple[str, str, str, str, str]
"""Who, what they did, to which kind, in words, and the name; that is empty for all beyond ``MOST_NAMES``."""


class _Repeated(Struct, gc=True):
    """What was written of something, and what has happened since."""

    since: float
    last: AuditEntry
    more: int = 0


class Repeats:
    """Writes refusals to the audit log: each at once when it is new, and what is repeated once a minute, counted."""

    def __init__(self) -> None:
        """Start with nothing told."""
        self._recent: dict[_Key, _Repeated] = {}
        self._lock = Lock()

    def record(self, store: AuditStore, entry: AuditEntry) -> None:
        """Take note of a refusal."""
        for due in self._to_write(entry):
            store.record(due)

    def _to_write(self, entry: AuditEntry) -> list[AuditEntry]:
        now = entry.caller.at
        entries: list[AuditEntry] = []
        with self._lock:
            due = [key for key, earlier in self._recent.items() if not 0.0 <= now - earlier.since < TOLD_EVERY_S]
            for key in due:
                earlier = self._recent.pop(key)
                entries += [_summed(earlier)] if earlier.more else []
            key = self._key(entry)
            repeated = self._recent.get(key)
            if repeated is None:
                if len(self._recent) < _MOST_KEPT:
                    self._recent[key] = _Repeated(now, entry)
                entries.append(entry)
            else:
                repeated.last, repeated.more = entry, repeated.more + 1
        return entries

    def _key(self, entry: AuditEntry) -> _Key:
        key = (entry.caller.actor, entry.act, entry.subject, entry.detail, entry.name)
        if key in self._recent:
            return key
        return key if sum(key_kept[:-1] == key[:-1] for key_kept in self._recent) < MOST_NAMES else (*key[:-1], "")


def _summed(repeated: _Repeated) -> AuditEntry:
    """Return the last refusal with how many there were since the first, which was written."""
    return evolve(
        repeated.last,
        detail=f"{repeated.last.detail} ({repeated.more} more within a minute, this is the last)".lstrip(),
    )


_OF_STORES: WeakKeyDictionary[AuditStore, Repeats] = WeakKeyDictionary()


def record_once(store: AuditStore, entry: AuditEntry) -> None:
    """Write to the audit log of a store what was refused or read, unless it is the same again."""
    repeats = _OF_STORES.get(store)
    if repeats is None:
        repeats = _OF_STORES.setdefault(store, Repeats())
    repeats.record(store, entry)
