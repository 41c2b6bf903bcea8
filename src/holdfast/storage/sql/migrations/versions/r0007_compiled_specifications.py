"""Specifications are stored as what they were compiled into; a job set's manifest stays beside it for people.

A row that cannot be compiled stays as it is, and what it belongs to ends: nobody could run it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from alembic import op

from holdfast.compiled.codec import SetChange, dump_change, dump_set_spec, load_set_spec, with_suspend
from holdfast.dialects.earlier import upgrade_job, upgrade_set
from holdfast.domain.record import evolve
from holdfast.errors import UnreadableSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_AT_ONCE = 1000
_UNREADABLE = "its specification cannot be read by this version of Holdfast"
_TERMINAL = ("Succeeded", "Failed", "Cancelled")
_ENDED = ("TERMINATED", "ERROR", "CANCELLED")
_STEERING = {"set_suspend": True, "set_resume": False}
_SPECS = sa.table("specs", sa.column("digest", sa.LargeBinary), sa.column("body", sa.Text))
_JOBS = sa.table(
    "jobs", *map(sa.column, ("id", "spec", "set_id", "state", "reason", "retry_at", "ended_at", "updated_at"))
)
_SETS = sa.table("job_sets", *map(sa.column, ("id", "manifest", "spec", "state", "updated_at")))
_ATTEMPTS, _RUNS = (sa.table(name, *map(sa.column, ("job_id", "status"))) for name in ("attempts", "runs"))
_REQUESTS = sa.table("requests", *map(sa.column, ("id", "kind", "job_ids", "payload")))


def upgrade() -> None:
    """Bring a database from 0006 to 0007."""
    op.add_column("job_sets", sa.Column("spec", sa.Text(), nullable=False, server_default=""))
    connection = op.get_bind()
    _compile_jobs(connection)
    compiled = dict(_compile_sets(connection))
    _compile_requests(connection, compiled)


def _compile_jobs(connection: sa.Connection) -> None:
    after = b""
    query = sa.select(_SPECS).order_by(_SPECS.c.digest).limit(_AT_ONCE)
    change = sa.update(_SPECS).where(_SPECS.c.digest == sa.bindparam("key")).values(body=sa.bindparam("text"))
    while rows := connection.execute(query.where(_SPECS.c.digest > after)).all():
        after = rows[-1].digest
        changed = []
        for digest, body in rows:
            try:
                changed.append({"key": digest, "text": upgrade_job(body)})
            except UnreadableSpec as error:
                _end_jobs(connection, _JOBS.c.spec == digest, error)
        if changed:
            connection.execute(change, changed)


def _end_jobs(connection: sa.Connection, where: sa.ColumnElement[bool], error: UnreadableSpec) -> None:
    going_on = (where, _JOBS.c.state.not_in(_TERMINAL))
    for table in (_RUNS, _ATTEMPTS):
        theirs = table.c.job_id.in_(sa.select(_JOBS.c.id).where(*going_on))
        change = sa.update(table).where(theirs, table.c.status.not_in(_ENDED))
        connection.execute(change.values(status="CANCELLED"))
    reason = f"{_UNREADABLE}: {error.message}"
    ended = {"state": "Failed", "reason": reason, "retry_at": None, "ended_at": _JOBS.c.updated_at}
    connection.execute(sa.update(_JOBS).where(*going_on).values(ended))


def _compile_sets(connection: sa.Connection) -> Iterator[tuple[str, SetChange]]:
    """Compile every set; yields what each is by now."""
    for row in connection.execute(sa.select(_SETS)).all():
        change = sa.update(_SETS).where(_SETS.c.id == row.id)
        try:
            spec = upgrade_set(row.manifest)
        except UnreadableSpec as error:
            connection.execute(change.values(state=json.dumps(_failed(json.loads(row.state), row.updated_at, error))))
            _end_jobs(connection, _JOBS.c.set_id == row.id, error)
        else:
            connection.execute(change.values(spec=spec))
            yield row.id, SetChange(row.manifest, spec)


def _failed(state: dict[str, Any], at: float, error: UnreadableSpec) -> dict[str, Any]:
    if state.get("terminal"):
        return state
    message = f"{_UNREADABLE}: {error.message}"
    why = {"type": "Failed", "status": True, "reason": "UnreadableSpec", "message": message, "since": at}
    return {**state, "terminal": "Failed", "ended_at": at, "conditions": [*state.get("conditions", ()), why]}


def _compile_requests(connection: sa.Connection, sets: dict[str, SetChange]) -> None:
    """Have what was asked of sets and not done yet say what they become; what changes nothing any more is dropped."""
    asked = sa.select(_REQUESTS).where(_REQUESTS.c.kind.in_(("set_update", *_STEERING))).order_by(_REQUESTS.c.id)
    for row in connection.execute(asked).all():
        (set_id,) = json.loads(row.job_ids)
        change = _wanted(row.kind, row.payload, sets.get(set_id))
        this = _REQUESTS.c.id == row.id
        if change is None:
            connection.execute(sa.delete(_REQUESTS).where(this))
        else:
            sets[set_id] = change
            connection.execute(sa.update(_REQUESTS).where(this).values(payload=dump_change(change)))


def _wanted(kind: str, payload: str, before: SetChange | None) -> SetChange | None:
    if before is None:
        return None
    if kind not in _STEERING:
        try:
            return SetChange(payload, upgrade_set(payload))
        except UnreadableSpec:
            return None
    suspend, spec = _STEERING[kind], load_set_spec(before.spec)
    if spec.suspend is suspend:
        return None
    manifest = with_suspend(before.manifest, suspend=suspend)
    return SetChange(manifest, dump_set_spec(evolve(spec, suspend=suspend)))
