"""Job sets: the sets, what was decided about them, their jobs' place in them, and what is remembered of pods."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_IN_A_SET = sa.text("set_id IS NOT NULL")
_EXPIRING = sa.text("expires_at IS NOT NULL")


def upgrade() -> None:
    """Bring a database from 0003 to 0004; jobs that are there already are in no set, and no row is rewritten."""
    op.add_column("jobs", sa.Column("set_id", _KEY))
    op.add_column("jobs", sa.Column("replicated_job", sa.Text()))
    op.add_column("jobs", sa.Column("job_index", sa.Integer()))
    op.create_index("ix_jobs_of_sets", "jobs", ["set_id", "seq"], sqlite_where=_IN_A_SET, postgresql_where=_IN_A_SET)
    op.add_column("requests", sa.Column("payload", sa.Text(), nullable=False, server_default=""))
    op.create_table(
        "job_sets",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("name", _KEY, nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("manifest", sa.Text(), nullable=False),
        sa.Column("lenient", sa.Boolean(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.Column("deleting", sa.Boolean(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.CheckConstraint("generation >= 1", name=op.f("ck_job_sets_generation")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job_sets")),
        sa.UniqueConstraint("name", name=op.f("uq_job_sets_name")),
    )
    op.create_table(
        "set_log",
        sa.Column("seq", _COUNTER, autoincrement=True, nullable=False),
        sa.Column("set_id", _KEY, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["set_id"], ["job_sets.id"], name=op.f("fk_set_log_set_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_set_log")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_set_log_set_id_seq"), "set_log", ["set_id", "seq"])
    op.create_table(
        "pod_jobs",
        sa.Column("job_id", _KEY, nullable=False),
        sa.Column("restart", sa.Integer(), nullable=False),
        sa.Column("job_restart", sa.Integer(), nullable=False),
        sa.Column("present", sa.Boolean(), nullable=False),
        sa.Column("suspended", sa.Boolean(), nullable=False),
        sa.Column("deleting_since", sa.Double()),
        sa.Column("domain", sa.Text(), nullable=False),
        sa.Column("parallelism", sa.Integer()),
        sa.Column("completions", sa.Integer()),
        sa.Column("expires_at", sa.Double()),
        sa.Column("record", sa.Text(), nullable=False),
        sa.CheckConstraint("restart >= 0 AND job_restart >= 0", name=op.f("ck_pod_jobs_restarts")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_pod_jobs_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_pod_jobs")),
    )
    op.create_index(
        "ix_pod_jobs_expiring", "pod_jobs", ["expires_at"], sqlite_where=_EXPIRING, postgresql_where=_EXPIRING
    )
