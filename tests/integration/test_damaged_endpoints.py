"""An endpoint whose row cannot be read is not found, and hides no other."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from sqlalchemy import create_engine, update

from holdfast.storage.sql import declared, open_store
from tests import databases
from tests.contract.test_store_endpoints import begin, names, of, register

if TYPE_CHECKING:
    from pathlib import Path


def test_an_endpoint_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    path = databases.migrated(tmp_path / "holdfast.db")
    with closing(open_store(path)) as store:
        begin(store, "j1")
        for name in ("a", "b"):
            register(store, of("j1", name, name))
        engine = create_engine(f"sqlite:///{path}")
        with engine.begin() as connection:
            connection.execute(update(declared.endpoints).where(declared.endpoints.c.id == "a").values(metadata="{"))
        engine.dispose()
        assert (names(store), store.endpoint("a")) == (["b"], None)
        store.remove_endpoint("a")
