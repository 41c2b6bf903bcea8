"""Runs migration steps in the caller's transaction, on the connection it is given; only Alembic loads this file."""

from __future__ import annotations

from alembic import context

from holdfast.storage.sql.declared import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,  # SQLite has transactional DDL once the driver leaves transactions alone.
    render_as_batch=True,  # SQLite alters a table by copying it.
)
with context.begin_transaction():
    context.run_migrations()
