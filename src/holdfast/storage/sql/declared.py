"""Tables of the catalogue, of other systems' names for jobs, and of the servers that lead.

With those of ``tables`` they are the schema.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    false,
)

from holdfast.storage.sql import tables

metadata = tables.metadata
"""The metadata of the whole schema, once this module has been imported."""

settings = Table(
    "settings",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("catalogue_version", BigInteger, nullable=False),
    Column("body", Text),
    Column("paused", Text),
    CheckConstraint("id = 1", name="one_row"),
)
"""A single row, present from the beginning; locking it serialises edits of the catalogue."""

policies = Table(
    "policies",
    metadata,
    Column("name", Text, primary_key=True),
    Column("revision", Integer, nullable=False),
    Column("submitted_by", Text, nullable=False, server_default=""),
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

entries = Table(
    "entries",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("body", Text, nullable=False),
    Column("submitted_by", Text, nullable=False, server_default=""),
)
"""Entries of every kind but policies: queues, failure categories, notifiers, cordons and API tokens."""

intake = Table(
    "intake",
    metadata,
    Column("seq", tables.Counter, primary_key=True, autoincrement=True),
    Column("queue", Text, nullable=False),
    Column("submitted_by", tables.Key, nullable=False),
    Column("at", Double, nullable=False),
    Column("count", Integer, nullable=False),
    Index(None, "queue", "submitted_by"),
)
"""Submissions accepted by queues with a rate limit; the next submission deletes older rows."""

places = Table(
    "places",
    metadata,
    Column("id", tables.Key, primary_key=True),
    Column("came_at", Double, nullable=False),
    Column("left_at", Double),
    sqlite_with_rowid=False,
)
"""Data directories whose servers lead or led; they hold the files of the jobs of that time."""

discards = Table(
    "discards",
    metadata,
    Column("place", tables.Key, primary_key=True),
    Column("job_id", tables.Key, primary_key=True),
    sqlite_with_rowid=False,
)
"""Deleted jobs, and where their files may still be; an empty place means anywhere."""

leadership = Table(
    "leadership",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("epoch", BigInteger, nullable=False),
    Column("owner", Text, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("as_submitters", Boolean, nullable=False, server_default=false()),
    CheckConstraint("id = 1", name="one_row"),
)
"""A single row, present from the beginning; its epoch grows with every change of owner.

``as_submitters``: whether programs ran as their submitters under the last owner.
"""

names = Table(
    "names",
    metadata,
    Column("name", tables.Key, primary_key=True),
    Column("job_id", tables.Key, nullable=False, index=True),
    Column("digest", LargeBinary, nullable=False),
    Column("taken_at", Double, nullable=False),
    # No foreign key: the name is taken first, which settles a race, and the job is appended after it.
    ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE", deferrable=True, initially="DEFERRED"),
    sqlite_with_rowid=False,
)
"""Names that other systems give jobs."""

endpoints = Table(
    "endpoints",
    metadata,
    Column("seq", tables.Counter, primary_key=True, autoincrement=True),
    Column("id", tables.Key, nullable=False, unique=True),
    Column("system", tables.Key, nullable=False),
    Column("name", tables.Key, nullable=False),
    Column("address", Text, nullable=False),
    Column("job_id", tables.Key, nullable=False, index=True),
    Column("job_name", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("rank", Integer, nullable=False),
    Column("metadata", Text, nullable=False),
    Column("until", Double),
    ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
    Index(None, "system", "name"),
    sqlite_autoincrement=True,
)
"""Where programs of jobs listen."""
