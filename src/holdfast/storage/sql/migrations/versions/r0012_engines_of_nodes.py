"""Nodes say which engine they have, and what it is capable of."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring a database to 0012; executors report what they have when they start, and no row is rewritten."""
    op.add_column("nodes", sa.Column("engine", sa.Text(), nullable=False, server_default=""))
    op.add_column("nodes", sa.Column("capabilities", sa.Text(), nullable=False, server_default=""))
