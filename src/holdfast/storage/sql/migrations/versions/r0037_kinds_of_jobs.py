"""The kind of each job, which until now followed from where it stands and from its specification."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import sqlalchemy as sa
from alembic import op

if TYPE_CHECKING:
    from collections.abc import Iterator

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None
_PAGE = 1000
_JOBS = sa.table("jobs", sa.column("spec"), sa.column("replicated_job"), sa.column("kind"))
_SPECS = sa.table("specs", sa.column("digest"), sa.column("body"))


def upgrade() -> None:
    """Bring a database to 0037: jobs of job sets and Kubernetes Jobs are made of pods, all others are gangs."""
    op.add_column("jobs", sa.Column("kind", sa.Text(), nullable=False, server_default="gang"))
    connection = op.get_bind()
    of_pods = _JOBS.update().values(kind="kubejob")
    connection.execute(of_pods.where(_JOBS.c.replicated_job != ""))
    by_spec = of_pods.where(_JOBS.c.spec == sa.bindparam("digest"))
    for page in _with_pods(connection):
        connection.execute(by_spec, [{"digest": digest} for digest in page])


def _with_pods(connection: sa.Connection) -> Iterator[list[bytes]]:
    """Yield the specifications that are Kubernetes Jobs, some at a time."""
    asked = sa.select(_SPECS.c.digest, _SPECS.c.body).where(_SPECS.c.body.like('%"kube":%')).order_by(_SPECS.c.digest)
    rows = connection.execute(asked.limit(_PAGE)).all()
    while rows:
        found = [digest for digest, body in rows if _has_pods(body)]
        if found:
            yield found
        rows = connection.execute(asked.where(_SPECS.c.digest > rows[-1].digest).limit(_PAGE)).all()


def _has_pods(body: str) -> bool:
    try:
        return json.loads(body)["spec"].get("kube") is not None
    except (ValueError, LookupError, TypeError, AttributeError):
        return False  # it cannot be read, and says so itself
