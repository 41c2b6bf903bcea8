"""The relational schema, for every supported database.

Statuses have no CHECK: new statuses get added, and widening a CHECK rebuilds the table in SQLite. The codec refuses
unknown ones.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from holdfast.domain.job import JOB_WAITING, JobState
from holdfast.domain.lifecycle import ATTEMPT_TERMINAL, RUN_TERMINAL, EntityKind
from holdfast.domain.terms.workload_kinds import GANG

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Counter = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers rows by itself only in a column declared INTEGER."""
Key = Text().with_variant(Text(collation="C"), "postgresql")
"""Compared byte by byte everywhere, so that a range of keys is a prefix."""


def _not_among(column: str, words: frozenset[str]) -> str:
    """Exclude values without ``IN``: for every row of such an index SQLite would build a table of the list again."""
    return " AND ".join(f"{column} <> '{word}'" for word in sorted(words))


ATTEMPT_ACTIVE = text(_not_among("attempts.status", frozenset(ATTEMPT_TERMINAL)))
RUN_ACTIVE = text(_not_among("runs.status", frozenset(RUN_TERMINAL)))
"""Literal, not bound: a partial index serves a query only if both conditions read the same."""
_BEGUN = frozenset(JobState) - JOB_WAITING - {JobState.WAITING}
JOB_WAITS = text(_not_among("jobs.state", _BEGUN))
"""Whether a job counts against a queue's limit of waiting jobs; literal, as above."""
_INDEXED_ATTEMPT = text(_not_among("status", frozenset(ATTEMPT_TERMINAL)))
_INDEXED_RUN = text(_not_among("status", frozenset(RUN_TERMINAL)))
_INDEXED_WAITING = text(_not_among("state", _BEGUN))


def _resources() -> tuple[Column[Any], ...]:
    return (
        Column("cpu_m", BigInteger, nullable=False),
        Column("memory", BigInteger, nullable=False),
        Column("gpu", Integer, nullable=False),
        Column("named", Text),
    )


def _job_reference() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE")


specs = Table(
    "specs",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("body", Text, nullable=False),
)
"""Specifications by digest: equal ones are stored once, and a job's mutable row stays short."""

jobs = Table(
    "jobs",
    metadata,
    Column("seq", Counter, primary_key=True, autoincrement=True),
    Column("id", Key, nullable=False, unique=True),
    Column("name", Text, nullable=False, index=True),
    Column("queue", Text, nullable=False),
    Column("priority", BigInteger, nullable=False),
    Column("submitted_at", Double, nullable=False),
    Column("spec", LargeBinary, ForeignKey("specs.digest"), nullable=False, index=True),
    Column("gang", Integer, nullable=False),
    *_resources(),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("queued_at", Double, nullable=False),
    Column("retry_at", Double),
    Column("updated_at", Double, nullable=False),
    Column("started_at", Double),
    Column("ended_at", Double),
    Column("counters", Text, nullable=False),
    Column("retries", Integer, nullable=False),
    Column("avoid_node", Text),
    Column("cancel_requested", Boolean, nullable=False),
    Column("set_id", Key),  # No foreign key: a set's jobs outlive it.
    Column("replicated_job", Text),
    Column("job_index", Integer),
    Column("ready_at", Double),
    Column("met", Text),
    Column("avoid_devices", Text),
    Column("avoid_nodes", Text),
    Column("tried", Text),
    Column("submitted_by", Key, nullable=False, server_default=""),
    Column("submitter_uid", BigInteger),
    Column("group_name", Key),
    Column("kind", Text, nullable=False, server_default=GANG),
    Column("parent", Key),  # No foreign key: a child may be deleted later than its parent.
    Index(None, "state", "seq"),
    Index(None, "submitted_by", "seq"),
    CheckConstraint("gang >= 1", name="gang"),
    CheckConstraint("attempt >= 0 AND retries >= 0", name="counts"),
    sqlite_autoincrement=True,  # The number of a deleted job is never used again.
)
_grouped = jobs.c.group_name.is_not(None)
Index("ix_jobs_group_name_seq", jobs.c.group_name, jobs.c.seq, sqlite_where=_grouped)
JOB_CHILD = ("set_id", "replicated_job", "job_index")
"""A job's place in its job set; all NULL outside a set."""
JOB_SUBMITTER = ("submitted_by", "submitter_uid")
"""The submitter of a job or workload."""
JOB_GROUP = ("group_name",)
"""Further fields to filter by; NULL if empty, which no index holds."""
_FIXED_FIRST = ("id", "name", "queue", "priority", "submitted_at", "spec", "gang", "named")
JOB_FIXED = (*_FIXED_FIRST, *JOB_CHILD, *JOB_SUBMITTER, *JOB_GROUP, "kind", "parent")
"""Written once, when the job is submitted."""
JOB_CHANGING = tuple(column.name for column in jobs.columns if column.name not in JOB_FIXED and not column.primary_key)
JOB_NEW = tuple(column.name for column in jobs.columns if not column.primary_key)
# PostgreSQL creates these partial indexes itself (see migrations): declaring them here would import its dialect each
# time.
_in_a_set = text("set_id IS NOT NULL")
Index("ix_jobs_of_sets", jobs.c.set_id, jobs.c.seq, sqlite_where=_in_a_set)
Index("ix_jobs_waiting", jobs.c.queue, jobs.c.submitted_by, sqlite_where=_INDEXED_WAITING)

job_labels = Table(
    "job_labels",
    metadata,
    Column("job_id", Key, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
    _job_reference(),
    Index(None, "key", "value"),
    sqlite_with_rowid=False,
)

attempts = Table(
    "attempts",
    metadata,
    Column("job_id", Key, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("status", Text, nullable=False),
    Column("status_since", Double, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("dispatch", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("started_at", Double),
    Column("ended_at", Double),
    *_resources(),
    Column("ending", Text),
    Column("failure", Text),
    Column("decision", Text),
    Column("retry_at", Double),
    Column("message", Text, nullable=False),
    _job_reference(),
    CheckConstraint("number >= 1", name="number"),
    CheckConstraint("tries >= 0 AND dispatch >= 0", name="counts"),
)
Index("ix_attempts_active", attempts.c.job_id, sqlite_where=_INDEXED_ATTEMPT)

runs = Table(
    "runs",
    metadata,
    Column("uid", Key, primary_key=True),
    Column("job_id", Key, nullable=False, index=True),
    Column("attempt", Integer, nullable=False),
    Column("dispatch", Integer, nullable=False),
    Column("rank", Integer, nullable=False),
    Column("status", Text, nullable=False),
    Column("status_since", Double, nullable=False),
    Column("executor", Text, nullable=False),
    Column("node", Text, nullable=False),
    *_resources(),
    Column("started_at", Double),
    Column("ended_at", Double),
    Column("outcome", Text),
    Column("progress", Text, nullable=False, server_default=""),
    Column("failure", Text),
    Column("decision", Text),
    Column("generation", Integer, nullable=False, server_default="1"),
    *(Column(name, Text) for name in ("devices", "interrupted", "token_digest", "ports")),
    _job_reference(),
    CheckConstraint("attempt >= 1 AND dispatch >= 0 AND rank >= 0", name="place"),
)
Index("ix_runs_active", runs.c.job_id, sqlite_where=_INDEXED_RUN)

history = Table(
    "history",
    metadata,
    Column("kind", Key, primary_key=True),
    Column("id", Key, primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("phase", Text, nullable=False),
    Column("from_status", Text, nullable=False),
    Column("to_status", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    Column("error_code", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("steps", Text, nullable=False),
    CheckConstraint("attempts >= 1", name="merged"),
    sqlite_with_rowid=False,
)
"""The steps of every entity, by its kind; no foreign keys, because entities are in many tables."""
_STEP_OF_SESSION = f"kind <> '{EntityKind.ATTEMPT}'"
STEP_OF_SESSION = text(f"history.{_STEP_OF_SESSION}")
"""Literal, as for ``ATTEMPT_ACTIVE``."""
Index(
    "ix_history_of_sessions",
    history.c.kind,
    history.c.created_at,
    history.c.id,
    history.c.seq,
    sqlite_where=text(_STEP_OF_SESSION),
)

sessions = Table(
    "sessions",
    metadata,
    Column("id", Key, primary_key=True),
    Column("job_id", Key, nullable=False),
    Column("root_id", Key, nullable=False),
    Column("retry_count", Integer, nullable=False, server_default="0"),
    Column("parent_session_id", Key),
    Column("creation_id", Key, nullable=False, unique=True),
    Column("name", Key, nullable=False),
    Column("tag", Key, nullable=False),
    Column("type", Key, nullable=False),
    Column("user_name", Key, nullable=False),
    Column("access_key", Key, nullable=False),
    Column("project", Key, nullable=False),
    Column("domain", Key, nullable=False),
    Column("resource_group", Key, nullable=False),
    Column("image", Key, nullable=False),
    Column("cluster_mode", Key, nullable=False),
    Column("cluster_size", Integer, nullable=False),
    Column("priority", BigInteger, nullable=False),
    Column("job_priority", Integer, nullable=False),
    Column("is_preemptible", Boolean, nullable=False),
    Column("batch_timeout", Integer),
    Column("starts_at", Double),
    Column("max_retries", Integer, nullable=False, server_default="0"),
    Column("retry_policy", Text),
    Column("first_attempt", Integer, nullable=False),
    Column("status", Key, nullable=False),
    Column("status_since", Double, nullable=False),
    Column("status_info", Text, nullable=False),
    Column("result", Key, nullable=False),
    Column("retry_cause", Key),
    Column("retry_state", Key, nullable=False),
    Column("retry_at", Double),
    Column("created_at", Double, nullable=False),
    Column("started_at", Double),
    Column("terminated_at", Double),
    _job_reference(),
    UniqueConstraint("root_id", "retry_count"),
    Index(None, "job_id", "retry_count"),
    Index(None, "created_at", "id"),
    Index(None, "status", "created_at", "id"),
    Index(None, "user_name", "created_at", "id"),
    Index(None, "project", "created_at", "id"),
    Index(None, "name"),
    CheckConstraint("retry_count >= 0 AND max_retries >= 0", name="counts"),
)
"""Sessions of Backend.AI's users: each is the stretch of a job that one retry count covers."""
SESSION_NAMED = ("name", "tag")
"""Written once by the controller; clients may change them."""
SESSION_FIXED = (
    "job_id", "root_id", "retry_count", "parent_session_id", "creation_id", *SESSION_NAMED, "type", "user_name",
    "access_key", "project", "domain", "resource_group", "image", "cluster_mode", "cluster_size", "job_priority",
    "is_preemptible", "batch_timeout", "starts_at", "max_retries", "retry_policy", "first_attempt", "created_at",
)  # fmt: skip

kernels = Table(
    "kernels",
    metadata,
    Column("id", Key, primary_key=True),
    Column("session_id", Key, nullable=False),
    Column("job_id", Key, nullable=False, index=True),
    Column("retry_count", Integer, nullable=False),
    Column("rank", Integer, nullable=False),
    Column("run", Key, nullable=False),
    Column("status", Key, nullable=False),
    Column("status_since", Double, nullable=False),
    Column("status_info", Text, nullable=False),
    Column("executor", Key, nullable=False),
    Column("node", Key, nullable=False),
    Column("exit_code", Integer),
    Column("created_at", Double, nullable=False),
    Column("started_at", Double),
    Column("terminated_at", Double),
    _job_reference(),
    ForeignKeyConstraint(["session_id"], ["sessions.id"], ondelete="CASCADE"),
    UniqueConstraint("session_id", "rank"),
    Index(None, "created_at", "id"),
    Index(None, "node", "created_at", "id"),
    CheckConstraint("rank >= 0", name="rank"),
)
"""The kernels of sessions: one for each rank, whose runs come and go."""
KERNEL_FIXED = ("session_id", "job_id", "retry_count", "rank", "created_at")

nodes = Table(
    "nodes",
    metadata,
    Column("executor", Key, primary_key=True),
    Column("name", Key, primary_key=True),
    *_resources(),
    Column("labels", Text, nullable=False),
    Column("seen_at", Double, nullable=False),
    Column("engine", Text, nullable=False, server_default=""),
    Column("capabilities", Text, nullable=False, server_default=""),
    Column("devices", Text, nullable=False, server_default="[]"),
    Column("short", Text),
)

requests = Table(
    "requests",
    metadata,
    Column("id", Counter, primary_key=True, autoincrement=True),
    Column("kind", Text, nullable=False),
    Column("job_ids", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("actor", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("payload", Text, nullable=False, server_default=""),
    sqlite_autoincrement=True,  # The id of a handled request is never used again.
)

workloads = Table(
    "workloads",
    metadata,
    Column("id", Key, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("owner", Key),
    Column("name", Key),
    Column("generation", Integer, nullable=False),
    Column("spec", Text, nullable=False),
    Column("manifest", Text, nullable=False),
    Column("deleting", Boolean, nullable=False),
    Column("expires_at", Double),
    Column("version", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    Column("submitted_by", Key, nullable=False, server_default=""),
    Column("submitter_uid", BigInteger),
    Column("group_name", Key),
    Column("queue", Text, nullable=False, server_default=""),
    Column("state", Text, nullable=False),
    UniqueConstraint("kind", "name"),
    CheckConstraint("generation >= 1", name="generation"),
)
"""Records of workloads of every kind; no foreign keys, because only some belong to a job.

A gang has no record here: ``jobs`` holds all of it.
"""
WORKLOAD_FIXED = ("kind", "owner", "name", "version", "created_at", *JOB_SUBMITTER, *JOB_GROUP, "queue")
"""Written once, except the version, which requests advance."""
_expiring = workloads.c.expires_at.is_not(None)
Index("ix_workloads_expiring", workloads.c.expires_at, sqlite_where=_expiring)

set_log = Table(
    "set_log",
    metadata,
    Column("seq", Counter, primary_key=True, autoincrement=True),
    Column("set_id", Key, nullable=False),
    Column("at", Double, nullable=False),
    Column("kind", Text, nullable=False),
    Column("body", Text, nullable=False),
    ForeignKeyConstraint(["set_id"], ["workloads.id"], ondelete="CASCADE"),
    Index(None, "set_id", "seq"),
    sqlite_autoincrement=True,  # Readers resume by it.
)
"""Decisions about a set's failed jobs, with their facts; deleted with the set."""

reruns = Table(
    "reruns",
    metadata,
    Column("root", Key, primary_key=True),
    Column("task", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("array", Key, nullable=False, index=True),
    ForeignKeyConstraint(["array"], ["workloads.id"], ondelete="CASCADE"),
    sqlite_with_rowid=False,
)
"""Which array reruns a task, counted from the array that ran it first; deleted with the array."""

quarantine = Table(
    "quarantine",
    metadata,
    Column("id", Key, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("since", Double, nullable=False),
    Column("message", Text, nullable=False),
    sqlite_with_rowid=False,
)
"""Workloads left alone because handling them failed."""

events = Table(
    "events",
    metadata,
    Column("seq", Counter, primary_key=True, autoincrement=True),
    Column("job_id", Key),
    Column("job_seq", Integer),
    Column("type", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("at", Double, nullable=False),
    Column("data", Text, nullable=False),
    Column("group_name", Key),
    Column("submitted_by", Key),
    Column("submitter_uid", BigInteger),
    Column("queue", Text),
    _job_reference(),
    UniqueConstraint("job_id", "job_seq"),
    sqlite_autoincrement=True,  # Readers resume by it: a number is never used again.
)
"""The event log; a job's events are deleted with the job.

Events of arrays and job sets outlive them and so name their owner and queue; for events of jobs these are NULL.
"""
EVENT_OWNER = ("submitted_by", "submitter_uid", "queue")
_of_groups = events.c.group_name.is_not(None)
Index("ix_events_group_name_seq", events.c.group_name, events.c.seq, sqlite_where=_of_groups)

audit = Table(
    "audit",
    metadata,
    Column("seq", Counter, primary_key=True, autoincrement=True),
    Column("at", Double, nullable=False),
    Column("actor", Text, nullable=False),
    Column("act", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("request_id", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("detail", Text, nullable=False),
    sqlite_autoincrement=True,
)
"""The audit log; no foreign keys, so that it outlives its subjects."""

idempotency = Table(
    "idempotency",
    metadata,
    Column("key", Text, primary_key=True),
    Column("fingerprint", Text, nullable=False),
    Column("job_ids", Text, nullable=False),
    Column("created_at", Double, nullable=False),
)

notifications = Table(
    "notifications",
    metadata,
    Column("seq", Counter, primary_key=True, autoincrement=True),
    Column("id", Key, nullable=False, unique=True),
    Column("notifier", Text, nullable=False),
    Column("about", Key, nullable=False, index=True),
    Column("created_at", Double, nullable=False),
    Column("body", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("since", Double, nullable=False),
    Column("next_at", Double, nullable=False),
    Column("settled_at", Double),
    Column("error", Text, nullable=False),
    sqlite_autoincrement=True,  # Readers resume by it.
)
"""Notifications; no foreign keys, so that they outlive their jobs until they are forgotten."""
NOTIFICATION_NEW = tuple(column.name for column in notifications.columns if not column.primary_key)
NOTIFICATION_WAITS = text("notifications.state = 'Waiting'")
"""Literal, as for ``ATTEMPT_ACTIVE``."""
Index("ix_notifications_waiting", notifications.c.next_at, sqlite_where=text("state = 'Waiting'"))
_settled = notifications.c.settled_at.is_not(None)
Index("ix_notifications_settled", notifications.c.settled_at, sqlite_where=_settled)
