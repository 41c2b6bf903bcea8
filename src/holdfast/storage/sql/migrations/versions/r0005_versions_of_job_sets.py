"""A version of each job set that grows with everything that is asked of it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring a database to 0005; job sets that are there begin with version 1, and no row is rewritten."""
    op.add_column("job_sets", sa.Column("version", sa.Integer(), nullable=False, server_default="1"))
