"""The indexes of what is active say what is not without a list, which SQLite would make again for every row."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_ACTIVE = sa.text("status <> 'CANCELLED' AND status <> 'ERROR' AND status <> 'TERMINATED'")


def upgrade() -> None:
    """Bring a database to 0016; no row changes."""
    for name in ("attempts", "runs"):
        op.drop_index(f"ix_{name}_active", name)
        op.create_index(f"ix_{name}_active", name, ["job_id"], sqlite_where=_ACTIVE, postgresql_where=_ACTIVE)
