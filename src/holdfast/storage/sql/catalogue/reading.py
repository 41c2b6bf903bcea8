"""Reads the catalogue; what cannot be read has a stand-in, so that the rest stays in force."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from sqlalchemy import select

from holdfast.compiled.codec import OperatorSettings, load_entry
from holdfast.domain.access import Role
from holdfast.domain.access.grants import NOBODY
from holdfast.domain.access.tokens import ApiToken
from holdfast.domain.category import FailureCategory
from holdfast.domain.job import Queue
from holdfast.domain.notifier import Medium, Notifier
from holdfast.domain.placement.cordon import Cordon
from holdfast.domain.placement.pause import Pause
from holdfast.domain.policy.model import Action, RetryPolicy, Rule
from holdfast.domain.record import evolve
from holdfast.domain.workloads.spec import DEFAULT_QUEUE
from holdfast.errors import UnreadableSpec
from holdfast.ports import presence
from holdfast.ports.catalogue import Catalogue
from holdfast.storage.sql import declared

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from holdfast.compiled.codec import E

SETTINGS = "settings"
# Statements that are built once keep their cache key, which costs SQLAlchemy as much as SQLite's work on a few rows.
_SETTINGS = select(declared.settings.c.catalogue_version, declared.settings.c.body, declared.settings.c.paused)
_PAUSED = select(declared.settings.c.paused)
_POLICIES = (
    select(
        declared.policies.c.name,
        declared.policies.c.revision,
        declared.policy_revisions.c.body,
        declared.policies.c.submitted_by,
    )
    .join(declared.policy_revisions)
    .order_by(declared.policies.c.name)
)
_QUEUES, _CATEGORIES, _CORDONS, _TOKENS, _NOTIFIERS = (
    select(table).order_by(table.c.name)
    for table in (
        declared.queues,
        declared.categories,
        declared.cordons,
        declared.api_tokens,
        declared.notifiers,
    )
)


def read_pause(connection: Connection) -> Pause | None:
    """Read why nothing is started, if so."""
    return _pause(connection.execute(_PAUSED).scalar(), _EntryReader())


class _EntryReader:
    """Reads entries; one that cannot be read has a stand-in, so that the others stay in force."""

    def __init__(self) -> None:
        self.unreadable: dict[str, str] = {}
        self.submitters: dict[str, str] = {}

    def entry(self, kind: type[E], text: str, what: str, instead: E, submitter: str = "") -> E:
        if submitter:
            self.submitters[what] = submitter
        try:
            return load_entry(kind, text)
        except UnreadableSpec as error:
            self.unreadable[what] = error.message
            return instead


def _policy_instead(name: str, revision: int) -> RetryPolicy:
    hold = Rule(Action.HOLD, "unreadable", hold_reason=f"retry policy {name!r} cannot be read; write it again")
    return RetryPolicy(name, (hold,), revision=revision)


def read_catalogue(connection: Connection) -> Catalogue:
    """Read all of it."""
    read = _EntryReader()
    version, body, pause = connection.execute(_SETTINGS).one()
    set_ = OperatorSettings()
    if body is not None:
        set_ = read.entry(OperatorSettings, body, SETTINGS, set_)
    policies = {
        name: read.entry(RetryPolicy, text, f"{presence.POLICY} {name}", _policy_instead(name, revision), submitter)
        for name, revision, text, submitter in connection.execute(_POLICIES)
    }
    queues = {DEFAULT_QUEUE: Queue(DEFAULT_QUEUE)}
    for name, text, submitter in connection.execute(_QUEUES):
        instead = Queue(name, paused=True, permissions=NOBODY)
        queues[name] = read.entry(Queue, text, f"{presence.QUEUE} {name}", instead, submitter)
    categories = [
        read.entry(FailureCategory, text, f"{presence.CATEGORY} {name}", FailureCategory(name, ()), submitter)
        for name, text, submitter in connection.execute(_CATEGORIES)
    ]
    categories.sort(key=attrgetter("precedence", "name"))
    notifiers = _notifiers(connection, read)
    cordons = {
        name: read.entry(Cordon, text, f"cordon {name}", Cordon(name, 0.0))
        for name, text in connection.execute(_CORDONS)
    }
    own = (set_.settings, set_.default_policy)
    settings, default_policy = own if set_.configured is None else set_.configured.over(*own)
    return Catalogue(
        version,
        queues,
        policies,
        categories,
        settings,
        default_policy,
        notifiers,
        cordons,
        _pause(pause, read),
        read.unreadable,
        set_.access,
        _tokens(connection, read),
        set_.configured,
        None if set_.configured is None else own,
        read.submitters,
    )


def _pause(text: str | None, read: _EntryReader) -> Pause | None:
    instead = Pause(0.0, "there is a pause whose reason cannot be read")
    return None if text is None else read.entry(Pause, text, "pause", instead)


def _tokens(connection: Connection, read: _EntryReader) -> dict[str, ApiToken]:
    """Read the tokens; one that cannot be read opens nothing."""
    rows = connection.execute(_TOKENS)
    instead = ApiToken("", "", "", "", None, Role.VIEWER, revoked_at=0.0)
    return {name: read.entry(ApiToken, text, f"token {name}", evolve(instead, name=name)) for name, text in rows}


def _notifiers(connection: Connection, read: _EntryReader) -> dict[str, Notifier]:
    """Read the notifiers; nothing stands in for one that cannot be read, and what is to be told there is given up."""
    notifiers = {}
    for name, text, submitter in connection.execute(_NOTIFIERS):
        what = f"{presence.NOTIFIER} {name}"
        notifier = read.entry(Notifier, text, what, Notifier(name, Medium.WEBHOOK), submitter)
        if what not in read.unreadable:
            notifiers[name] = notifier
    return notifiers
