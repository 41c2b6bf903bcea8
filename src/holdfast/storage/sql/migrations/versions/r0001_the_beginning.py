"""Jobs, attempts, runs, history, requests and the catalogue: the schema Holdfast begins with."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_ACTIVE = sa.text("status NOT IN ('CANCELLED', 'ERROR', 'TERMINATED')")


def upgrade() -> None:
    """Bring an empty database to 0001."""
    _create_specs()
    _create_jobs()
    _create_job_labels()
    _create_attempts()
    _create_runs()
    _create_history()
    _create_nodes()
    _create_requests()
    _create_idempotency()
    _create_policy_revisions()
    _create_policies()
    _create_queues()
    _create_categories()
    _create_settings()


def _create_specs() -> None:
    op.create_table(
        "specs",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_specs")),
    )


def _create_jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("seq", _COUNTER, autoincrement=True, nullable=False),
        sa.Column("id", _KEY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("priority", sa.BigInteger(), nullable=False),
        sa.Column("submitted_at", sa.Double(), nullable=False),
        sa.Column("spec", sa.LargeBinary(), nullable=False),
        sa.Column("gang", sa.Integer(), nullable=False),
        sa.Column("cpu_m", sa.BigInteger(), nullable=False),
        sa.Column("memory", sa.BigInteger(), nullable=False),
        sa.Column("gpu", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("queued_at", sa.Double(), nullable=False),
        sa.Column("retry_at", sa.Double()),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double()),
        sa.Column("ended_at", sa.Double()),
        sa.Column("counters", sa.Text(), nullable=False),
        sa.Column("retries", sa.Integer(), nullable=False),
        sa.Column("avoid_node", sa.Text()),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.CheckConstraint("attempt >= 0 AND retries >= 0", name=op.f("ck_jobs_counts")),
        sa.CheckConstraint("gang >= 1", name=op.f("ck_jobs_gang")),
        sa.ForeignKeyConstraint(["spec"], ["specs.digest"], name=op.f("fk_jobs_spec")),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_jobs")),
        sa.UniqueConstraint("id", name=op.f("uq_jobs_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_jobs_name"), "jobs", ["name"], unique=False)
    op.create_index(op.f("ix_jobs_spec"), "jobs", ["spec"], unique=False)
    op.create_index(op.f("ix_jobs_state_seq"), "jobs", ["state", "seq"], unique=False)


def _create_job_labels() -> None:
    op.create_table(
        "job_labels",
        sa.Column("job_id", _KEY, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_job_labels_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "key", name=op.f("pk_job_labels")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_job_labels_key_value"), "job_labels", ["key", "value"], unique=False)


def _create_attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("job_id", _KEY, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("status_since", sa.Double(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("dispatch", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double()),
        sa.Column("ended_at", sa.Double()),
        sa.Column("cpu_m", sa.BigInteger(), nullable=False),
        sa.Column("memory", sa.BigInteger(), nullable=False),
        sa.Column("gpu", sa.Integer(), nullable=False),
        sa.Column("ending", sa.Text()),
        sa.Column("failure", sa.Text()),
        sa.Column("decision", sa.Text()),
        sa.Column("retry_at", sa.Double()),
        sa.Column("message", sa.Text(), nullable=False),
        sa.CheckConstraint("number >= 1", name=op.f("ck_attempts_number")),
        sa.CheckConstraint("tries >= 0 AND dispatch >= 0", name=op.f("ck_attempts_counts")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_attempts_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "number", name=op.f("pk_attempts")),
    )
    op.create_index(
        "ix_attempts_active", "attempts", ["job_id"], unique=False, sqlite_where=_ACTIVE, postgresql_where=_ACTIVE
    )


def _create_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("uid", _KEY, nullable=False),
        sa.Column("job_id", _KEY, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("dispatch", sa.Integer(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("status_since", sa.Double(), nullable=False),
        sa.Column("executor", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("cpu_m", sa.BigInteger(), nullable=False),
        sa.Column("memory", sa.BigInteger(), nullable=False),
        sa.Column("gpu", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.Double()),
        sa.Column("ended_at", sa.Double()),
        sa.Column("outcome", sa.Text()),
        sa.CheckConstraint("attempt >= 1 AND dispatch >= 0 AND rank >= 0", name=op.f("ck_runs_place")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_runs_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("uid", name=op.f("pk_runs")),
    )
    op.create_index("ix_runs_active", "runs", ["job_id"], unique=False, sqlite_where=_ACTIVE, postgresql_where=_ACTIVE)
    op.create_index(op.f("ix_runs_job_id"), "runs", ["job_id"], unique=False)


def _create_history() -> None:
    op.create_table(
        "history",
        sa.Column("job_id", _KEY, nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("from_status", sa.Text(), nullable=False),
        sa.Column("to_status", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.Column("error_code", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.CheckConstraint("attempts >= 1", name=op.f("ck_history_merged")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_history_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "attempt", "seq", name=op.f("pk_history")),
        sqlite_with_rowid=False,
    )


def _create_nodes() -> None:
    op.create_table(
        "nodes",
        sa.Column("executor", _KEY, nullable=False),
        sa.Column("name", _KEY, nullable=False),
        sa.Column("cpu_m", sa.BigInteger(), nullable=False),
        sa.Column("memory", sa.BigInteger(), nullable=False),
        sa.Column("gpu", sa.Integer(), nullable=False),
        sa.Column("labels", sa.Text(), nullable=False),
        sa.Column("seen_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("executor", "name", name=op.f("pk_nodes")),
    )


def _create_requests() -> None:
    op.create_table(
        "requests",
        sa.Column("id", _COUNTER, autoincrement=True, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("job_ids", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_requests")),
        sqlite_autoincrement=True,
    )


def _create_idempotency() -> None:
    op.create_table(
        "idempotency",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("job_ids", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_idempotency")),
    )


def _create_policy_revisions() -> None:
    op.create_table(
        "policy_revisions",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.CheckConstraint("revision >= 1", name=op.f("ck_policy_revisions_revision")),
        sa.PrimaryKeyConstraint("name", "revision", name=op.f("pk_policy_revisions")),
    )


def _create_policies() -> None:
    op.create_table(
        "policies",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["name", "revision"],
            ["policy_revisions.name", "policy_revisions.revision"],
            name=op.f("fk_policies_name_revision"),
        ),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_policies")),
    )


def _create_queues() -> None:
    op.create_table(
        "queues",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_queues")),
    )


def _create_categories() -> None:
    op.create_table(
        "categories",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_categories")),
    )


def _create_settings() -> None:
    op.create_table(
        "settings",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("catalogue_version", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.Text()),
        sa.CheckConstraint("id = 1", name=op.f("ck_settings_one_row")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_settings")),
    )
    op.execute("INSERT INTO settings (id, catalogue_version) VALUES (1, 0)")
