"""The nodes on which a job was tried, and those its next attempt is kept off; of older jobs nothing is known."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add two columns; no table is written anew, and nothing waits for a lock for long."""
    op.add_column("jobs", sa.Column("avoid_nodes", sa.Text))
    op.add_column("jobs", sa.Column("tried", sa.Text))
