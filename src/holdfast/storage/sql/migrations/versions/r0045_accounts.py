"""Whether programs run as who submits them; the next leader says so."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column; nothing else changes."""
    op.add_column("leadership", sa.Column("as_submitters", sa.Boolean, nullable=False, server_default=sa.false()))
