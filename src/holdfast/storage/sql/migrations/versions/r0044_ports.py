"""The ports of runs; those that run now have theirs told once more by their executors."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column; nothing else changes."""
    op.add_column("runs", sa.Column("ports", sa.Text))
