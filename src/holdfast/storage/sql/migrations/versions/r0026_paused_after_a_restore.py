"""A restored database starts nothing until somebody says so."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring a database to 0026; nothing is paused."""
    op.add_column("settings", sa.Column("paused", sa.Text()))
