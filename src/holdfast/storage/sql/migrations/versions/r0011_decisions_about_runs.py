"""A run keeps its own failure and what was decided about it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring a database to 0011; nothing was decided about any run by itself, and no row is rewritten."""
    op.add_column("runs", sa.Column("failure", sa.Text()))
    op.add_column("runs", sa.Column("decision", sa.Text()))
