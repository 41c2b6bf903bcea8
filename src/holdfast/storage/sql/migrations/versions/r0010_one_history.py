"""One history of everything that moves, by kind and id, with sub-steps; it was of attempts only."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_OLD = "history_of_attempts"
_KEPT = (
    "seq", "phase", "from_status", "to_status", "outcome",
    "created_at", "updated_at", "error_code", "message", "attempts",
)  # fmt: skip


def upgrade() -> None:
    """Bring a database to 0010; every step that was recorded becomes one of its attempt's."""
    op.rename_table("history", _OLD)
    if op.get_context().dialect.name == "postgresql":  # where names of indexes are the schema's, not the table's
        op.execute(f"ALTER TABLE {_OLD} RENAME CONSTRAINT pk_history TO pk_{_OLD}")
    op.create_table(
        "history",
        sa.Column("kind", _KEY, nullable=False),
        sa.Column("id", _KEY, nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("from_status", sa.Text(), nullable=False),
        sa.Column("to_status", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.Column("error_code", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("steps", sa.Text(), nullable=False),
        sa.CheckConstraint("attempts >= 1", name=op.f("ck_history_merged")),
        sa.PrimaryKeyConstraint("kind", "id", "seq", name=op.f("pk_history")),
        sqlite_with_rowid=False,
    )
    names: list[sa.ColumnClause[object]] = [sa.column(name) for name in _KEPT]
    identity = sa.column("job_id").concat("/").concat(sa.cast(sa.column("attempt"), sa.Text()))
    old = sa.select(sa.literal("attempt"), identity, *names, sa.literal("")).select_from(sa.table(_OLD))
    new = sa.table("history", *(sa.column(name) for name in ("kind", "id", *_KEPT, "steps")))
    op.execute(new.insert().from_select(["kind", "id", *_KEPT, "steps"], old))
    op.drop_table(_OLD)
