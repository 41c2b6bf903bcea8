"""A run says why it was told to stop, if it did nothing wrong."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring a database to 0020; no row is rewritten: nothing was interrupted."""
    op.add_column("runs", sa.Column("interrupted", sa.Text()))
