"""The calls about entries of the catalogue, the same for every kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote

from holdfast.client.connection import once
from holdfast.domain.terms.entries import CATEGORY, NOTIFIER, POLICY, QUEUE
from holdfast.wire.base import API
from holdfast.wire.entries import CategoryView, EntryView, NotifierView, PolicyView, QueueView, models_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.client.connection import Connection
    from holdfast.domain.terms.entries import EntryInfo

V = TypeVar("V", bound=EntryView)


class EntryCalls(Generic[V]):
    """The entries of one kind; manifests are mappings, in any dialect that has the kind."""

    def __init__(self, connection: Connection, info: EntryInfo, view: type[V]) -> None:
        self._connection, self._view, self._page = connection, view, models_of(info).page
        self._all = f"{API}/{info.plural}"

    def list(self) -> list[V]:
        """List all, by name; failure categories in order of evaluation."""
        page: Any = self._connection.get(self._all, self._page)
        views: list[V] = page.items
        return views

    def get(self, name: str) -> V:
        """Read an entry."""
        return self._connection.get(self._one(name), self._view)

    def create(self, manifest: Mapping[str, Any]) -> V:
        """Create a new entry."""
        return self._connection.call(self._view, "POST", self._all, json=manifest)

    def put(
        self, name: str, manifest: Mapping[str, Any], *, must_exist: bool = False, if_match: str | None = None
    ) -> V:
        """Create or replace an entry, with ``must_exist`` only replace it; ``if_match`` is its expected revision."""
        params = {"must_exist": "true"} if must_exist else {}
        return self._connection.call(self._view, "PUT", self._one(name), json=manifest, params=params, **once(if_match))

    def delete(self, name: str, *, if_match: str | None = None) -> None:
        """Delete an entry; ``if_match`` is the revision it must have."""
        self._connection.send("DELETE", self._one(name), **once(if_match))

    def _one(self, name: str) -> str:
        return f"{self._all}/{quote(name, safe='')}"


class OfEntries:
    """The entries of each kind. Changing a policy makes a new revision."""

    _connection: Connection

    def entries(self, info: EntryInfo) -> EntryCalls[EntryView]:
        """Return the calls about the entries of a kind."""
        return EntryCalls(self._connection, info, models_of(info).view)

    @property
    def policies(self) -> EntryCalls[PolicyView]:
        """The retry policies."""
        return EntryCalls(self._connection, POLICY, PolicyView)

    @property
    def queues(self) -> EntryCalls[QueueView]:
        """The queues."""
        return EntryCalls(self._connection, QUEUE, QueueView)

    @property
    def categories(self) -> EntryCalls[CategoryView]:
        """The failure categories."""
        return EntryCalls(self._connection, CATEGORY, CategoryView)

    @property
    def notifiers(self) -> EntryCalls[NotifierView]:
        """The notifiers."""
        return EntryCalls(self._connection, NOTIFIER, NotifierView)
