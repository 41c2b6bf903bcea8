"""What queues took in within the last minute."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

_KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_COUNTER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Bring a database to 0032; no queue has a limit that what was there before counts against."""
    op.create_table(
        "intake",
        sa.Column("seq", _COUNTER, primary_key=True, autoincrement=True),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("submitted_by", _KEY, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
    )
    op.create_index("ix_intake_queue_submitted_by", "intake", ["queue", "submitted_by"])
