"""What each run last said of how far it is."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring a database to 0008; runs that are there have said nothing yet, and no row is rewritten."""
    op.add_column("runs", sa.Column("progress", sa.Text(), nullable=False, server_default=""))
