"""Nodes can be short of something."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring a database to 0024; no node is short of anything yet, and no row is rewritten."""
    op.add_column("nodes", sa.Column("short", sa.Text()))
