"""Reads the catalogue; an unreadable entry gets a stand-in, so that the others stay in force."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import select

from holdfast.compiled.codec import OperatorSettings, load_entry
from holdfast.domain.access import Role
from holdfast.domain.access.tokens import ApiToken
from holdfast.domain.audit import Subject
from holdfast.domain.placement.cordon import Cordon, Pause
from holdfast.domain.record import evolve
from holdfast.domain.terms.entries import ENTRIES
from holdfast.errors import UnreadableSpec
from holdfast.ports.catalogue import Catalogue
from holdfast.ports.entries import E, kind_of
from holdfast.storage.sql import declared

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Connection

    from holdfast.ports.entries import EntryKind

T = TypeVar("T")
CORDON = "cordon"
"""The kind of the rows of cordons."""


SETTINGS = "settings"
# Statements built once keep their cache key, which costs SQLAlchemy as much as SQLite's work on a few rows.
_SETTINGS = select(declared.settings.c.catalogue_version, declared.settings.c.body, declared.settings.c.paused)
_PAUSED = select(declared.settings.c.paused)
_POLICIES = (
    select(
        declared.policies.c.name,
        declared.policy_revisions.c.body,
        declared.policies.c.submitted_by,
        declared.policies.c.revision,
    )
    .join(declared.policy_revisions)
    .order_by(declared.policies.c.name)
)
_ENTRIES = select(
    declared.entries.c.kind, declared.entries.c.name, declared.entries.c.body, declared.entries.c.submitted_by
).order_by(declared.entries.c.kind, declared.entries.c.name)


def read_pause(connection: Connection) -> Pause | None:
    """Read why nothing is started, if the database is paused."""
    return _pause(connection.execute(_PAUSED).scalar(), _EntryReader())


class _EntryReader:
    """Reads entries; an unreadable one gets a stand-in."""

    def __init__(self) -> None:
        self.unreadable: dict[str, str] = {}
        self.submitters: dict[str, str] = {}

    def entry(self, kind: type[T], text: str, what: str, instead: T) -> T:
        try:
            return load_entry(kind, text)
        except UnreadableSpec as error:
            self.unreadable[what] = error.message
            return instead

    def entries(self, kind: EntryKind[E], rows: Iterable[Sequence[Any]]) -> dict[str, E]:
        entries_read = {} if kind.default is None else {kind.default.name: kind.default}
        for name, text, submitter, *revision in rows:
            what = f"{kind.info.noun} {name}"
            if submitter:
                self.submitters[what] = submitter
            instead: Any = kind.stand_in(name)
            if revision:
                instead = evolve(instead, revision=revision[0])
            entry: E | None = self.entry(kind.model, text, what, instead)
            if entry is not None:
                entries_read[name] = entry
        return entries_read


def read_catalogue(connection: Connection) -> Catalogue:
    """Read the whole catalogue."""
    read = _EntryReader()
    version, body, pause = connection.execute(_SETTINGS).one()
    set_ = OperatorSettings()
    if body is not None:
        set_ = read.entry(OperatorSettings, body, SETTINGS, set_)
    rows: dict[str, list[Sequence[Any]]] = {Subject.POLICY: [*connection.execute(_POLICIES)]}
    for kind, *row in connection.execute(_ENTRIES):
        rows.setdefault(kind, []).append(row)
    entries = {subject: read.entries(kind_of(info), rows.get(subject, ())) for subject, info in ENTRIES.items()}
    categories = sorted(entries[Subject.CATEGORY].values(), key=attrgetter("precedence", "name"))
    entries[Subject.CATEGORY] = {category.name: category for category in categories}
    cordons = {
        name: read.entry(Cordon, text, f"cordon {name}", Cordon(name, 0.0)) for name, text, _ in rows.get(CORDON, ())
    }
    own = (set_.settings, set_.default_policy)
    settings, default_policy = own if set_.configured is None else set_.configured.over(*own)
    return Catalogue(
        version,
        entries,
        settings,
        default_policy,
        cordons,
        _pause(pause, read),
        read.unreadable,
        set_.access,
        _tokens(rows.get(Subject.TOKEN, ()), read),
        set_.configured,
        None if set_.configured is None else own,
        read.submitters,
    )


def _pause(text: str | None, read: _EntryReader) -> Pause | None:
    instead = Pause(0.0, "there is a pause whose reason cannot be read")
    return None if text is None else read.entry(Pause, text, "pause", instead)


def _tokens(rows: Iterable[Sequence[Any]], read: _EntryReader) -> dict[str, ApiToken]:
    """Read the tokens; an unreadable one opens nothing."""
    instead = ApiToken("", "", "", "", None, Role.VIEWER, revoked_at=0.0)
    return {name: read.entry(ApiToken, text, f"token {name}", evolve(instead, name=name)) for name, text, _ in rows}
