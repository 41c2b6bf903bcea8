"""The tables of what operators declare; with those of ``tables`` they are the whole schema."""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKeyConstraint, Integer, Table, Text

from holdfast.storage.sql import tables

metadata = tables.metadata
"""Of the whole schema, once this module has been imported."""

settings = Table(
    "settings",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("catalogue_version", BigInteger, nullable=False),
    Column("body", Text),
    Column("paused", Text),
    CheckConstraint("id = 1", name="one_row"),
)
"""One row, there from the first migration on; locking it serialises edits of the catalogue."""

policies = Table(
    "policies",
    metadata,
    Column("name", Text, primary_key=True),
    Column("revision", Integer, nullable=False),
    ForeignKeyConstraint(["name", "revision"], ["policy_revisions.name", "policy_revisions.revision"]),
)

policy_revisions = Table(
    "policy_revisions",
    metadata,
    Column("name", Text, primary_key=True),
    Column("revision", Integer, primary_key=True, autoincrement=False),
    Column("body", Text, nullable=False),
    CheckConstraint("revision >= 1", name="revision"),
)

queues, categories, notifiers, cordons = (
    Table(name, metadata, Column("name", Text, primary_key=True), Column("body", Text, nullable=False))
    for name in ("queues", "categories", "notifiers", "cordons")
)
