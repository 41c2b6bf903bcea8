"""Whom to tell, and what they are to be told."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_WAITING = sa.text("state = 'Waiting'")
_SETTLED = sa.text("settled_at IS NOT NULL")


def upgrade() -> None:
    """Bring a database to 0019; nobody is to be told anything yet."""
    op.create_table(
        "notifiers",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_notifiers")),
    )
    op.create_table(
        "notifications",
        sa.Column("seq", _COUNTER, nullable=False, autoincrement=True),
        sa.Column("id", _KEY, nullable=False),
        sa.Column("notifier", sa.Text(), nullable=False),
        sa.Column("about", _KEY, nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("next_at", sa.Double(), nullable=False),
        sa.Column("settled_at", sa.Double()),
        sa.Column("error", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_notifications")),
        sa.UniqueConstraint("id", name=op.f("uq_notifications_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_notifications_about"), "notifications", ["about"])
    for name, column, where in (("waiting", "next_at", _WAITING), ("settled", "settled_at", _SETTLED)):
        op.create_index(
            f"ix_notifications_{name}", "notifications", [column], sqlite_where=where, postgresql_where=where
        )
