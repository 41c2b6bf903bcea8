"""API tokens, of which a hash is kept."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring a database to 0031; there are no tokens yet."""
    op.create_table(
        "api_tokens",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("body", sa.Text(), nullable=False),
    )
