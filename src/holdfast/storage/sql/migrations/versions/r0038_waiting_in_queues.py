"""What waits in a queue is counted by an index of its own, however much waits elsewhere."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring a database from 0037 to 0038; no row is rewritten."""
    waiting = sa.text("state <> 'Cancelled' AND state <> 'Failed' AND state <> 'Running' AND state <> 'Succeeded'")
    op.create_index(
        "ix_jobs_waiting", "jobs", ["queue", "submitted_by"], sqlite_where=waiting, postgresql_where=waiting
    )
