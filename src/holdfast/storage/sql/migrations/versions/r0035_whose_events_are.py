"""Whose the events of arrays and job sets are."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None

_KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Bring a database to 0035; of what was written before nobody is known, so that only who sees all sees it."""
    op.add_column("events", sa.Column("submitted_by", _KEY))
    op.add_column("events", sa.Column("submitter_uid", sa.BigInteger()))
    op.add_column("events", sa.Column("queue", sa.Text()))
