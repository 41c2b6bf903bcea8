"""Where the steps begin; older databases are refused, and new ones are made from the tables without any step."""

from __future__ import annotations

revision = "0046"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Do nothing: a database that gets here has this schema."""
