"""Retries avoid the GPUs that a failed run had."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring a database to 0022; no job avoids a GPU yet, and no row is rewritten."""
    op.add_column("jobs", sa.Column("avoid_devices", sa.Text()))
