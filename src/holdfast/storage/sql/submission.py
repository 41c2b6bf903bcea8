"""What the APIs may write: jobs, job sets and requests."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select, update

from holdfast.compiled.records import dump_json, load_json
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.ports.store import ASKED_OF_SETS
from holdfast.storage.refusals import known_jobs, known_workload, no_such_workload, require_version, reused_key
from holdfast.storage.requests import audited_changes, request_of, submission_events
from holdfast.storage.sql import codec, selects, tables
from holdfast.storage.sql.logs import append_audited, append_events
from holdfast.storage.sql.retention import keep_specs
from holdfast.storage.sql.workloads import read_workload, workload_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Job
    from holdfast.ports.store import Request, Submission
    from holdfast.storage.sql.batch import Batches
    from holdfast.storage.sql.engine import Database

Rows = list[tuple[Any, ...]]


class SqlSubmissionStore:
    """The part of the store for the APIs."""

    def __init__(self, database: Database, batches: Batches) -> None:
        """Work on an open database whose schema is current."""
        self._database = database
        self._batches = batches

    def submit(self, submission: Submission) -> tuple[str, ...]:
        """Append jobs and the request to take them in, in one transaction; ``seq`` is given here.

        Raises:
            Conflict: The idempotency key is known with another fingerprint.
            AlreadyExists: A job of that id is there already, or a job set of that name.
        """
        ids = tuple(job.id for job in submission.jobs)
        if not ids and submission.owner is None:
            return ()
        specs, jobs = _job_rows(submission.jobs)
        labels: Rows = [
            (job_id, key, value) for job_id, pairs in submission.labels.items() for key, value in pairs.items()
        ]
        request = request_of(submission)
        with self._database.writing() as connection:
            known = self._claim_key(connection, submission, ids, request.created_at)
            if known is not None:
                return known
            # Inserting first lets the database settle a race between two of one name.
            if (owner := submission.owner) and self._batches.new_workloads.run(connection, [workload_row(owner)]) != 1:
                raise known_workload(owner)
            _refuse_known(connection, ids)
            keep_specs(connection)
            self._batches.new_specs.run(connection, specs)
            self._batches.new_jobs.run(connection, jobs)
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
        """Append a request; with a caller, also to the audit log. The version of a job set it is about grows by one.

        Raises:
            NotFound: A version is given, and the job set is gone.
            VersionConflict: It has another version.
        """
        with self._database.writing() as connection:
            if request.kind in ASKED_OF_SETS:
                _move_versions(connection, request, version)
            _append(connection, request)
            append_audited(connection, self._batches, audited_changes(request, by))


def _move_versions(connection: Connection, request: Request, version: int | None) -> None:
    """Advance the versions of the sets a request is about; until the commit nobody else can make one."""
    table = tables.workloads
    for set_id in request.targets:
        if version is not None:
            row = connection.execute(select(table).where(table.c.id == set_id).with_for_update()).one_or_none()
            if row is None:
                raise no_such_workload(JobSet, set_id)
            require_version(read_workload(row), version)
        connection.execute(update(table).where(table.c.id == set_id).values(version=table.c.version + 1))


def _append(connection: Connection, request: Request) -> None:
    connection.execute(insert(tables.requests).values(codec.request_row(request)))


def _job_rows(jobs: Sequence[Job]) -> tuple[Rows, Rows]:
    """Return the rows of distinct specifications and of jobs."""
    digests: dict[str, bytes] = {}
    rows: Rows = []
    for job in jobs:
        digest = digests.get(job.spec)
        if digest is None:
            digest = digests[job.spec] = codec.digest(job.spec)
        rows.append(codec.new_job_row(job, digest))
    return [(digest, spec) for spec, digest in digests.items()], rows


def _refuse_known(connection: Connection, ids: tuple[str, ...]) -> None:
    """Make sure that every id is new."""
    known = {job_id for job_id, times in Counter(ids).items() if times > 1}
    for some in selects.chunks(ids):
        known.update(connection.execute(select(tables.jobs.c.id).where(tables.jobs.c.id.in_(some))).scalars())
    if known:
        raise known_jobs(known)
