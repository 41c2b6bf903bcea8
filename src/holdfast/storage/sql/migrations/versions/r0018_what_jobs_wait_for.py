"""When jobs became ready that waited for others, and what of that has happened."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring a database to 0018; jobs that are there waited for nothing, and no row is rewritten."""
    op.add_column("jobs", sa.Column("ready_at", sa.Double()))
    op.add_column("jobs", sa.Column("met", sa.Text()))
