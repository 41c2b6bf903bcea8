"""Databases that an earlier version left, and what a database says of its own schema.

``tests/data/stored`` has one of each kind at the schema where the steps begin, with a bit of everything in it.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from sqlalchemy import text

from holdfast.storage.sql import migrations
from holdfast.storage.sql.migrations import steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from alembic.config import Config
    from sqlalchemy import Connection

STORED = Path(__file__).parent / "data" / "stored"
_OF_POSTGRESQL = (
    """SELECT table_name, column_name, column_default, is_nullable, data_type, character_maximum_length, collation_name
    FROM information_schema.columns WHERE table_schema = 'public'""",
    """SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace""",
    "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "SELECT sequencename, data_type::text, start_value, increment_by, max_value FROM pg_sequences",
)


def fill(url: str) -> None:
    """Fill an empty database as the version before the first step left it."""
    kind = "postgresql" if url.startswith("postgresql") else "sqlite"
    left = (STORED / f"database-{migrations.BASE}.{kind}.sql").read_text()
    if kind == "postgresql":
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(left.encode())
        return
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
        file.executescript(left)


def described(connection: Connection) -> set[tuple[object, ...]]:
    """Return what a database says of its tables, indexes and constraints, in whatever order it has them."""
    if connection.dialect.name == "postgresql":
        return {tuple(row) for query in _OF_POSTGRESQL for row in connection.execute(text(query))}
    rows = connection.execute(text("SELECT type, name, sql FROM sqlite_master")).all()
    return {(kind, name, *sorted(_parts(sql or ""))) for kind, name, sql in rows}


def _parts(sql: str) -> Iterator[str]:
    """Cut a statement at its commas, other than those within parentheses of its own."""
    part, depth = "", 0
    for character in re.sub(r"\s+", " ", sql.replace('"', "")):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 1:
            yield part.strip()
            part = ""
        elif not (character in "()" and depth + (character == ")") == 1):
            part += character
        else:
            yield part.strip()
            part = ""
    yield part.strip()


STEP = """
import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "{number:04d}", "{before:04d}", None, None


def upgrade() -> None:
    op.add_column("entries", sa.Column("of_{number:04d}", sa.Text()))
"""


def go_on(folder: Path, count: int) -> None:
    """Have this process know that many steps more; the folder takes them."""
    newest = int(migrations.HEAD)
    for number in range(newest + 1, newest + 1 + count):
        (folder / f"r{number:04d}.py").write_text(STEP.format(number=number, before=number - 1))
    migrations.HEAD = f"{newest + count:04d}"
    packaged = steps.configuration

    def with_those(connection: Connection | None = None) -> Config:
        config = packaged(connection)
        config.set_main_option("path_separator", "os")
        config.set_main_option("version_locations", f"{Path(steps.__file__).parent / 'versions'}:{folder}")
        return config

    steps.configuration = with_those
