"""GPUs are known one by one, runs have theirs, and anything else that is counted has a name."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring a database to 0017; no row is rewritten: what runs was given no devices, and asks for nothing by name."""
    for table in ("jobs", "attempts", "runs", "nodes"):
        op.add_column(table, sa.Column("named", sa.Text()))
    op.add_column("runs", sa.Column("devices", sa.Text()))
    op.add_column("nodes", sa.Column("devices", sa.Text(), nullable=False, server_default="[]"))
