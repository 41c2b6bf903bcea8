"""What the APIs may write, jobs, job sets and requests; and what is deleted of it when jobs are long over."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, bindparam, delete, exists, func, insert, select, text, update

from holdfast.compiled.records import dump_json, load_json
from holdfast.domain.job import JOB_TERMINAL
from holdfast.ports.retention import FinishedJob
from holdfast.storage.rules import (
    audited_changes,
    gone_workload,
    ids_of,
    known_workload,
    queues_of,
    request_of,
    require_version,
    reused_key,
    submission_events,
)
from holdfast.storage.sql import codec, tables
from holdfast.storage.sql.admission import SPECS_LOCK, claim_tasks, refuse_known, require_newest, require_queues
from holdfast.storage.sql.logs import append_audited, append_events
from holdfast.storage.sql.query import STATE_UNINDEXED, chunks, history_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sqlalchemy import Connection, Select

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Job
    from holdfast.ports.store import Request, Submission
    from holdfast.storage.sql.batch import Batches
    from holdfast.storage.sql.engine import Database

Rows = list[tuple[Any, ...]]


_ENDED_STATES = tuple(sorted(state.value for state in JOB_TERMINAL))
_FORGET_HISTORY = delete(tables.history).where(history_of(bindparam("job", type_=Text)))
_DIGEST_BYTES = 24
_SPECS_PER_PART = 1000


class SqlSubmissionStore:
    """The part of the store for the APIs."""

    def __init__(self, database: Database, batches: Batches) -> None:
        """Work on an open database whose schema is current."""
        self._database = database
        self._batches = batches

    def submit(self, submission: Submission) -> tuple[str, ...]:
        """Append jobs and the request to take them in, in one transaction; ``seq`` is given here.

        Raises:
            Conflict: The idempotency key is known with another fingerprint, or a queue is gone.
            AlreadyExists: A job of that id is there already, a newer one of that name where that is checked, or a
                job set of that name.
            NotFound, VersionConflict: An array whose tasks are to run again is gone, or another runs one of them again.
        """
        ids = ids_of(submission)
        owner = submission.owner
        if not ids and owner is None:
            return ()
        labels: Rows = [
            (job_id, key, value) for job_id, pairs in submission.labels.items() for key, value in pairs.items()
        ]
        request = request_of(submission)
        with self._database.writing() as connection:
            known = self._claim_key(connection, submission, ids, request.created_at)
            if known is not None:
                return known
            require_queues(connection, queues_of(submission))
            # Inserting first lets the database settle a race between two of one name.
            if owner is not None and self._batches.new_workloads.run(connection, [codec.workload_row(owner)]) != 1:
                raise known_workload(owner)
            for each in submission.also:
                if self._batches.new_workloads.run(connection, [codec.workload_row(each)]) != 1:
                    raise known_workload(each)
            if submission.rerun is not None:
                claim_tasks(connection, self._batches, submission.rerun)
            refuse_known(connection, tuple(job.id for job in submission.jobs))
            if submission.newest is not None:
                require_newest(connection, submission.jobs[0].name, submission.newest)
            append_jobs(connection, self._batches, submission.jobs)
            self._batches.new_labels.run(connection, labels)
            _append(connection, request)
            append_events(connection, self._batches, submission_events(submission))
        return ids

    def _claim_key(
        self, connection: Connection, submission: Submission, ids: tuple[str, ...], now: float
    ) -> tuple[str, ...] | None:
        """Take the idempotency key, or return what its first call returned.

        Inserting first lets the database settle a race between two equal calls.
        """
        key = submission.idempotency_key
        if key is None:
            return None
        row = (key, submission.fingerprint, dump_json(ids), now)
        if self._batches.keys.run(connection, [row]) == 1:
            return None
        table = tables.idempotency
        known = connection.execute(select(table).where(table.c.key == key)).one()
        if known.fingerprint != submission.fingerprint:
            raise reused_key(key)
        return tuple(load_json(known.job_ids))

    def append(self, request: Request, *, by: Caller | None = None, version: int | None = None) -> None:
        """Append a request; with a caller, also to the audit log.

        The version of a workload that has a name of its own grows by one.

        Raises:
            NotFound: A version is given, and the workload is gone.
            VersionConflict: It has another version.
        """
        with self._database.writing() as connection:
            named = _move_versions(connection, request, version)
            _append(connection, request)
            append_audited(connection, self._batches, audited_changes(request, by, named))


def _move_versions(connection: Connection, request: Request, version: int | None) -> dict[str, str]:
    """Advance the versions of the named workloads a request is about; until the commit nobody else can make one.

    Returns:
        Their kinds, by id.
    """
    table, kinds = tables.workloads, {}
    for keys in chunks(request.targets):
        named = table.c.id.in_(keys) & table.c.name.is_not(None)
        locked = connection.execute(select(table).where(named).with_for_update()) if version is not None else ()
        found = {row.id: row for row in locked}
        for key in keys if version is not None else ():
            if key not in found:
                raise gone_workload(key)
            require_version(codec.read_workload(found[key]), version or 0)
        moved = update(table).where(named).values(version=table.c.version + 1).returning(table.c.id, table.c.kind)
        kinds.update({row.id: row.kind for row in connection.execute(moved)})
    return kinds


def _append(connection: Connection, request: Request) -> None:
    connection.execute(insert(tables.requests).values(codec.request_row(request)))


def append_jobs(connection: Connection, batches: Batches, jobs: Iterable[Job]) -> None:
    """Append jobs that are new, with their specifications."""
    digests: dict[str, bytes] = {}
    rows: Rows = []
    for job in jobs:
        digest = digests.get(job.spec)
        if digest is None:
            digest = digests[job.spec] = digest_of(job.spec)
        rows.append(codec.new_job_row(job, digest))
    if connection.dialect.name == "postgresql":  # SQLite has one writer at a time
        connection.execute(text("SELECT pg_advisory_xact_lock_shared(:lock)"), {"lock": SPECS_LOCK})
    batches.new_specs.run(connection, [(digest, spec) for spec, digest in digests.items()])
    batches.new_jobs.run(connection, rows)


def change_specs(connection: Connection, batches: Batches, changed: Sequence[Job]) -> None:
    """Write the specifications of jobs that have others now, and delete the former ones unless other jobs have them."""
    jobs = tables.jobs
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": SPECS_LOCK})
    batches.new_specs.run(connection, [(digest_of(spec), spec) for spec in {job.spec for job in changed}])
    ids = [job.id for job in changed]
    former = set(connection.execute(select(jobs.c.spec).where(jobs.c.id.in_(ids))).scalars())
    for job in changed:
        values = {"spec": digest_of(job.spec), "named": codec.named_amounts(job.request)}
        connection.execute(update(jobs).where(jobs.c.id == job.id).values(values))
    _delete_unused(connection, former)


def digest_of(spec: str) -> bytes:
    """Return the key a specification is stored under."""
    return hashlib.blake2b(spec.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()


class SqlRetentionStore:
    """The part of the store for retention: rows that belong to a deleted job are deleted by the schema's cascades."""

    def __init__(self, database: Database) -> None:
        """Work on an open database whose schema is current."""
        self._database = database

    def finished_jobs(self, *, after: int, limit: int) -> Sequence[FinishedJob]:
        """List the first finished jobs with ``seq > after``, in order of submission."""
        jobs = tables.jobs
        query = (
            select(jobs.c.seq, jobs.c.id, jobs.c.updated_at).where(jobs.c.seq > after).order_by(jobs.c.seq).limit(limit)
        )
        with self._database.reading() as connection:
            rows = [
                row for state in _ENDED_STATES for row in connection.execute(query.where(jobs.c.state == state)).all()
            ]
        return [FinishedJob(*row) for row in sorted(rows)[:limit]]

    def count_finished(self) -> int:
        """Count finished jobs."""
        query = select(func.count()).select_from(tables.jobs).where(tables.jobs.c.state.in_(_ENDED_STATES))
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar_one())

    def expired_jobs(self, *, until: float, limit: int) -> Sequence[str]:
        """List ids of finished jobs whose own time to live was over by then, the earliest first."""
        jobs, expiring = tables.jobs, tables.workloads
        due = expiring.c.expires_at.is_not(None) & (expiring.c.expires_at <= until)
        query = select(jobs.c.id).join(expiring, expiring.c.id == jobs.c.id)
        query = query.where(due, STATE_UNINDEXED.in_(_ENDED_STATES))
        with self._database.reading() as connection:
            found = connection.execute(query.order_by(expiring.c.expires_at, jobs.c.id).limit(limit))
            return found.scalars().all()

    def delete_finished(self, job_ids: Sequence[str]) -> int:
        """Delete those jobs with all that is stored about them; jobs that have not ended are left alone."""
        with self._database.writing() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": SPECS_LOCK})
            return sum(_delete(connection, ids) for ids in chunks(job_ids))

    def delete_keys(self, *, before: float, limit: int) -> int:
        """Forget up to ``limit`` idempotency keys first used before that time; returns how many."""
        table = tables.idempotency
        old = select(table.c.key).where(table.c.created_at < before).limit(limit)
        with self._database.writing() as connection:
            return connection.execute(delete(table).where(table.c.key.in_(old))).rowcount

    def specs_with(self, part: str) -> Iterator[str]:
        """Read the specifications of all jobs and workloads that hold a text, in parts of one transaction each."""
        workloads, specs = tables.workloads.c, tables.specs.c
        for key, body in ((specs.digest, specs.body), (workloads.id, workloads.spec)):
            query = select(key, body).where(body.contains(part, autoescape=True)).order_by(key).limit(_SPECS_PER_PART)
            rows = self._rows(query)
            while rows:
                yield from (row[1] for row in rows)
                rows = self._rows(query.where(key > rows[-1][0])) if len(rows) == _SPECS_PER_PART else ()

    def _rows(self, query: Select[Any]) -> Sequence[Any]:
        with self._database.reading() as connection:
            return connection.execute(query).all()


def _delete(connection: Connection, ids: Sequence[str]) -> int:
    jobs = tables.jobs
    chosen = jobs.c.id.in_(ids) & jobs.c.state.in_(_ENDED_STATES)
    found = connection.execute(select(jobs.c.id, jobs.c.spec).where(chosen)).all()
    digests = {digest for _, digest in found}
    if found:  # neither has a foreign key to cascade by
        connection.execute(_FORGET_HISTORY, [{"job": job_id} for job_id, _ in found])
        connection.execute(delete(tables.workloads).where(tables.workloads.c.id.in_(job_id for job_id, _ in found)))
    deleted = connection.execute(delete(jobs).where(chosen)).rowcount
    _delete_unused(connection, digests)
    return deleted


def _delete_unused(connection: Connection, digests: Iterable[bytes]) -> None:
    specs = tables.specs
    unused = ~exists().where(tables.jobs.c.spec == specs.c.digest)
    connection.execute(delete(specs).where(specs.c.digest.in_(digests), unused))
