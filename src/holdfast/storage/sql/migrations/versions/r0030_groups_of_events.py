"""Groups of what events are about."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

_KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Bring a database to 0030; events of jobs in groups are in these, and few are."""
    op.add_column("events", sa.Column("group_name", _KEY))
    events = sa.table("events", sa.column("job_id"), sa.column("group_name"))
    jobs = sa.table("jobs", sa.column("id"), sa.column("group_name"))
    theirs = sa.select(jobs.c.group_name).where(jobs.c.id == events.c.job_id).scalar_subquery()
    some = events.c.job_id.in_(sa.select(jobs.c.id).where(jobs.c.group_name.is_not(None)))
    op.execute(events.update().where(some).values(group_name=theirs))
    grouped = sa.text("group_name IS NOT NULL")
    op.create_index(
        "ix_events_group_name_seq", "events", ["group_name", "seq"], sqlite_where=grouped, postgresql_where=grouped
    )
