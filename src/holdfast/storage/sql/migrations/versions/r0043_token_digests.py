"""What tells the tokens of runs; those that are there have none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column; nothing else changes."""
    op.add_column("runs", sa.Column("token_digest", sa.Text))
