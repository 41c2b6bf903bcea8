"""Sessions of Backend.AI's users and their kernels; jobs from before are none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None

_KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the tables, unless they are there already."""
    if sa.inspect(op.get_bind()).has_table("sessions"):
        return
    op.create_table(
        "sessions",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("job_id", _KEY, nullable=False),
        sa.Column("root_id", _KEY, nullable=False),
        sa.Column("retry_count", sa.Integer, nullable=False, server_default="0"),
        sa.Column("parent_session_id", _KEY),
        sa.Column("creation_id", _KEY, nullable=False),
        sa.Column("name", _KEY, nullable=False),
        *(sa.Column(name, _KEY, nullable=False) for name in ("tag", "type")),
        sa.Column("user_name", _KEY, nullable=False),
        *(
            sa.Column(name, _KEY, nullable=False)
            for name in ("access_key", "project", "domain", "resource_group", "image", "cluster_mode")
        ),
        sa.Column("cluster_size", sa.Integer, nullable=False),
        sa.Column("priority", sa.BigInteger, nullable=False),
        sa.Column("job_priority", sa.Integer, nullable=False),
        sa.Column("is_preemptible", sa.Boolean, nullable=False),
        sa.Column("batch_timeout", sa.Integer),
        sa.Column("starts_at", sa.Double),
        sa.Column("max_retries", sa.Integer, nullable=False, server_default="0"),
        sa.Column("retry_policy", sa.Text),
        sa.Column("first_attempt", sa.Integer, nullable=False),
        sa.Column("status", _KEY, nullable=False),
        sa.Column("status_since", sa.Double, nullable=False),
        sa.Column("status_info", sa.Text, nullable=False),
        sa.Column("result", _KEY, nullable=False),
        sa.Column("retry_cause", _KEY),
        sa.Column("retry_state", _KEY, nullable=False),
        sa.Column("retry_at", sa.Double),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("started_at", sa.Double),
        sa.Column("terminated_at", sa.Double),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_sessions_job_id", ondelete="CASCADE"),
        sa.UniqueConstraint("creation_id", name="uq_sessions_creation_id"),
        sa.UniqueConstraint("root_id", "retry_count", name="uq_sessions_root_id_retry_count"),
        sa.CheckConstraint("retry_count >= 0 AND max_retries >= 0", name=op.f("ck_sessions_counts")),
    )
    for columns in (
        ("job_id", "retry_count"),
        ("created_at", "id"),
        ("status", "created_at", "id"),
        ("user_name", "created_at", "id"),
        ("project", "created_at", "id"),
        ("name",),
    ):
        op.create_index(f"ix_sessions_{'_'.join(columns)}", "sessions", columns)
    op.create_table(
        "kernels",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("session_id", _KEY, nullable=False),
        sa.Column("job_id", _KEY, nullable=False),
        sa.Column("retry_count", sa.Integer, nullable=False),
        sa.Column("rank", sa.Integer, nullable=False),
        sa.Column("run", _KEY, nullable=False),
        sa.Column("status", _KEY, nullable=False),
        sa.Column("status_since", sa.Double, nullable=False),
        sa.Column("status_info", sa.Text, nullable=False),
        *(sa.Column(name, _KEY, nullable=False) for name in ("executor", "node")),
        sa.Column("exit_code", sa.Integer),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("started_at", sa.Double),
        sa.Column("terminated_at", sa.Double),
        sa.PrimaryKeyConstraint("id", name="pk_kernels"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_kernels_job_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_kernels_session_id", ondelete="CASCADE"),
        sa.UniqueConstraint("session_id", "rank", name="uq_kernels_session_id_rank"),
        sa.CheckConstraint("rank >= 0", name=op.f("ck_kernels_rank")),
    )
    for columns in (("job_id",), ("created_at", "id"), ("node", "created_at", "id")):
        op.create_index(f"ix_kernels_{'_'.join(columns)}", "kernels", columns)
    of_sessions = sa.text("kind <> 'attempt'")
    op.create_index(
        "ix_history_of_sessions",
        "history",
        ("kind", "created_at", "id", "seq"),
        sqlite_where=of_sessions,
        postgresql_where=of_sessions,
    )


def downgrade() -> None:
    """Drop the tables, and the history of what was in them; the jobs stay."""
    op.drop_index("ix_history_of_sessions", "history")
    op.execute("DELETE FROM history WHERE kind IN ('session', 'kernel')")
    op.drop_table("kernels")
    op.drop_table("sessions")
