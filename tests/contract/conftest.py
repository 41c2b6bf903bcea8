"""The stores every contract test runs against."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from holdfast.storage.sql import open_store
from tests import databases

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holdfast.ports.store import Store


class Place(Protocol):
    """Somewhere a store keeps its data; opening it again finds the same data."""

    def open(self) -> Store: ...

    def close(self) -> None: ...


class SqlPlace:
    """A database; every opening is a connection of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._opened: list[Store] = []

    def open(self) -> Store:
        store = open_store(self.url)
        self._opened.append(store)
        return store

    def close(self) -> None:
        for store in self._opened:
            store.close()


def _make(kind: str, request: pytest.FixtureRequest, folder: Path) -> Place:
    if kind == "postgresql":
        return SqlPlace(request.getfixturevalue("postgres_url"))
    return SqlPlace(f"sqlite:///{databases.migrated(folder / 'h.db')}")


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An empty place of each kind."""
    made = _make(request.param, request, tmp_path)
    yield made
    made.close()


@pytest.fixture
def store(place: Place) -> Store:
    """An empty store of each kind."""
    return place.open()


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqlPlace]:
    """A place on SQLite, for what only a database on a disk can suffer."""
    made = SqlPlace(str(tmp_path / "holdfast.db"))
    yield made
    made.close()
