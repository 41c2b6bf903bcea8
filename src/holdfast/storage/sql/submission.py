"""Writes what the APIs submit: jobs, workloads made of jobs, and requests."""

from __future__ import annotations

import hashlib
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, exists, select, update

from holdfast.compiled.records import dump_json, load_json
from holdfast.compiled.workloads import needs_of
from holdfast.domain.access.people import Role
from holdfast.domain.audit import Act, AuditedChange, on_device, on_job, on_submission, on_workload
from holdfast.domain.event_mapping import submitted_event
from holdfast.domain.events.registry import EventRecord
from holdfast.domain.events.workloads import JobSetCreated
from holdfast.domain.record import evolve
from holdfast.domain.sessions.records import first_kernels
from holdfast.domain.terms.kinds import info_of
from holdfast.domain.terms.workload_kinds import GANG, JOBSET
from holdfast.errors import AlreadyExists, Conflict, NotFound, Problem, VersionConflict
from holdfast.ports.requests import OF_DEVICES, Request, RequestKind
from holdfast.storage.sql import codec, tables
from holdfast.storage.sql.admission import (
    claim_tasks,
    lock_specs,
    refuse_known,
    require_awaited,
    require_newest,
    require_own_jobs,
    require_policies,
    require_queues,
    require_retriable,
    share_specs,
    take_names,
)
from holdfast.storage.sql.batch import REQUEST_NEW, chunks
from holdfast.storage.sql.catalogue.intake import look, take_in
from holdfast.storage.sql.damage import left_of_owner
from holdfast.storage.sql.logs import append_audited, append_events
from holdfast.storage.sql.part import StorePart
from holdfast.storage.sql.rows.requests import request_row

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import Connection

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Job
    from holdfast.domain.sessions.model import Session
    from holdfast.domain.workloads.base import Workload
    from holdfast.ports.store import Submission
    from holdfast.storage.sql.batch import Batches

Rows = list[tuple[Any, ...]]


_DIGEST_BYTES = 24
_ACTS = {kind: Act(kind.value) for kind in RequestKind if kind.value in {*Act}}
_ACTS[RequestKind.CANCEL_UNLESS_STARTED] = Act.CANCEL
_ACTS_WHERE_SUSPENDED = {**_ACTS, RequestKind.HOLD: Act.SUSPEND, RequestKind.RELEASE: Act.RESUME}


class SqlSubmissionStore(StorePart):
    """``SubmissionStore``: writes for the APIs."""

    def require_room(self, submission: Submission, now: float) -> None:
        with self._database.reading() as connection:
            look(connection, submission, now)

    def submit(self, submission: Submission) -> tuple[str, ...]:
        ids = _ids_of(submission)
        owner = submission.owner
        if not ids and owner is None:
            return ()
        now = _request_of(submission).created_at
        with self._database.writing() as connection:
            earlier = self._claim_key(connection, submission, ids, now)
            if earlier is not None:
                return earlier
            claimed = self._claimed(connection, submission, now)
            ids = tuple(claimed.get(submitted, submitted) for submitted in ids)
            submission = _without(submission, claimed.keys())
            if not _ids_of(submission) and owner is None:
                return ids
            require_queues(connection, self._batches, _queues_of(submission))
            take_in(connection, submission, now)
            require_policies(connection, self._batches, submission.policies)
            share_specs(connection)  # From here on nothing that the submission relies on is deleted.
            require_awaited(connection, submission.awaited)
            # Inserting first lets the database settle a race for a name.
            if owner is not None and self._batches.new_workloads.run(connection, [codec.workload_row(owner)]) != 1:
                raise _known_workload(owner)
            for submitted in submission.also:
                if self._batches.new_workloads.run(connection, [codec.workload_row(submitted)]) != 1:
                    raise _known_workload(submitted)
            if submission.rerun is not None:
                claim_tasks(connection, self._batches, submission.rerun)
            refuse_known(connection, self._batches, tuple(job.id for job in submission.jobs))
            if owner is not None and (first := _first_jobs(submission)):
                require_own_jobs(connection, owner.name, first)
            if submission.newest is not None:
                require_newest(connection, submission.jobs[0].name, submission.newest)
            append_jobs(connection, self._batches, submission.jobs)
            append_sessions(connection, self._batches, submission.sessions)
            labels: Rows = [
                (job_id, key, value) for job_id, pairs in submission.labels.items() for key, value in pairs.items()
            ]
            self._batches.new_labels.run(connection, labels)
            _append(connection, self._batches, _request_of(submission))
            _append_ends(connection, self._batches, submission)
            append_events(connection, self._batches, _submission_events(submission))
            append_audited(connection, self._batches, _audited_submission(submission))
        return ids

    def _claim_key(
        self, connection: Connection, submission: Submission, ids: tuple[str, ...], now: float
    ) -> tuple[str, ...] | None:
        """Take the idempotency key, or return the result of the first call with it.

        Inserting first lets the database settle a race between two equal calls.
        """
        key = submission.idempotency_key
        if key is None:
            return None
        kept = _kept_key(key, submission.caller)
        row = (kept, submission.fingerprint, dump_json(ids), now)
        if self._batches.keys.run(connection, [row]) == 1:
            return None
        table = tables.idempotency
        earlier = connection.execute(select(table).where(table.c.key == kept)).one()
        if earlier.fingerprint != submission.fingerprint:
            message = f"idempotency key {key!r} was used for another request"
            raise Conflict(message, hint="use a new key for a new request")
        return tuple(load_json(earlier.job_ids))

    def _claimed(self, connection: Connection, submission: Submission, now: float) -> dict[str, str]:
        """Take the keys and names of jobs. Returns the job that already holds each, by the new job's id."""
        claims = {job_id: _kept_key(key, submission.caller) for job_id, key in submission.claims.items()}
        claimed = self._claim_each(connection, claims, now) if claims else {}
        if submission.names:
            claimed |= take_names(connection, self._batches, submission.names, now)
        return claimed

    def _claim_each(self, connection: Connection, claims: Mapping[str, str], now: float) -> dict[str, str]:
        """Take the keys of single jobs. Returns the job that already holds each, by the new job's id."""
        rows = [(key, "", dump_json([job_id]), now) for job_id, key in claims.items()]
        if self._batches.keys.run(connection, rows) == len(rows):
            return {}
        table, earlier = tables.idempotency, {}
        for keys in chunks(list(claims.values())):
            claimed = connection.execute(select(table.c.key, table.c.job_ids).where(table.c.key.in_(keys)))
            earlier.update({key: load_json(ids)[0] for key, ids in claimed})
        return {job_id: earlier[key] for job_id, key in claims.items() if earlier[key] != job_id}

    def append(self, request: Request, *, caller: Caller | None = None, version: int | None = None) -> None:
        with self._database.writing() as connection:
            if request.kind is RequestKind.RETRY:
                require_retriable(connection, self._batches, request)
            named = _move_versions(connection, request, version)
            _append(connection, self._batches, request)
            append_audited(connection, self._batches, _audited_changes(request, caller, named))


def _move_versions(connection: Connection, request: Request, version: int | None) -> dict[str, str]:
    """Advance the versions of the named workloads that a request concerns; the rows stay locked until the commit.

    Returns:
        Their kinds, by id.
    """
    table, kinds = tables.workloads, {}
    for keys in chunks(request.targets):
        named = table.c.id.in_(keys) & table.c.name.is_not(None)
        locked = connection.execute(select(table).where(named).with_for_update()) if version is not None else ()
        by_id = {row.id: row for row in locked}
        for key in keys if version is not None else ():
            if key not in by_id:
                message = f"{key!r} was deleted meanwhile"
                raise NotFound(message)
            _require_version(left_of_owner(by_id[key]), version or 0)
        moved = update(table).where(named).values(version=table.c.version + 1).returning(table.c.id, table.c.kind)
        kinds.update({row.id: row.kind for row in connection.execute(moved)})
    return kinds


def _append(connection: Connection, batches: Batches, request: Request) -> None:
    row = request_row(request)
    batches.requests.run(connection, [tuple(row[name] for name in REQUEST_NEW)])


def _append_ends(connection: Connection, batches: Batches, submission: Submission) -> None:
    for request, caller in _ends_of(submission):
        _append(connection, batches, request)
        append_audited(connection, batches, _audited_changes(request, caller, {}))


def append_jobs(connection: Connection, batches: Batches, jobs: Iterable[Job]) -> None:
    """Insert new jobs with their specifications."""
    digests: dict[str, bytes] = {}
    rows: Rows = []
    for job in jobs:
        digest = digests.get(job.spec)
        if digest is None:
            digest = digests[job.spec] = digest_of(job.spec)
        rows.append(codec.new_job_row(job, digest))
    share_specs(connection)
    batches.new_specs.run(connection, [(digest, spec) for spec, digest in digests.items()])
    batches.new_jobs.run(connection, rows)


def append_sessions(connection: Connection, batches: Batches, sessions: Sequence[Session]) -> None:
    """Insert the first sessions of new jobs, with their kernels."""
    batches.sessions.run(connection, [*map(codec.session_row, sessions)])
    kernels = [codec.kernel_row(kernel) for session in sessions for kernel in first_kernels(session)]
    batches.kernels.run(connection, kernels)


def change_specs(connection: Connection, batches: Batches, changed: Sequence[Job]) -> None:
    """Write the new specifications of jobs, and delete the former ones that no other job uses."""
    jobs = tables.jobs
    lock_specs(connection)
    batches.new_specs.run(connection, [(digest_of(spec), spec) for spec in {job.spec for job in changed}])
    ids = [job.id for job in changed]
    former = set(connection.execute(select(jobs.c.spec).where(jobs.c.id.in_(ids))).scalars())
    for job in changed:
        values = {"spec": digest_of(job.spec), "named": codec.named_amounts(job.request)}
        connection.execute(update(jobs).where(jobs.c.id == job.id).values(values))
    delete_unused(connection, former)


def digest_of(spec: str) -> bytes:
    """Return the key a specification is stored under."""
    return hashlib.blake2b(spec.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()


def delete_unused(connection: Connection, digests: Iterable[bytes]) -> None:
    """Delete specifications that no job uses; requires ``lock_specs``."""
    specs = tables.specs
    unused = ~exists().where(tables.jobs.c.spec == specs.c.digest)
    connection.execute(delete(specs).where(specs.c.digest.in_(digests), unused))


def _kept_key(key: str, caller: Caller | None) -> str:
    """Return the stored form of an idempotency key: each user has their own; admins share theirs."""
    if caller is None or Role.ADMIN in caller.principal.roles:
        return key
    return f"{caller.actor}\n{key}"  # No key contains a line break.


def _request_of(submission: Submission) -> Request:
    """Return the controller's request for a submission."""
    owner = submission.owner
    if owner is not None:
        return Request(RequestKind.SUBMIT, (owner.id,), owner.created_at)
    now = max((*(job.submitted_at for job in submission.jobs), *(workload.created_at for workload in submission.also)))
    return Request(RequestKind.SUBMIT, _ids_of(submission), now)


def _ends_of(submission: Submission) -> Iterator[tuple[Request, Caller | None]]:
    """Yield the requests that end the former holders of names, each with its caller."""
    for job_id, name in submission.names.items():
        yield from ((request, submission.callers.get(job_id, submission.caller)) for request in name.ends)


def _ids_of(submission: Submission) -> tuple[str, ...]:
    """Return the ids of everything a submission appends, except the workload that its jobs belong to."""
    return (*(job.id for job in submission.jobs), *(workload.id for workload in submission.also))


def _without(submission: Submission, existing: Collection[str]) -> Submission:
    """Return a submission without some of its jobs."""
    if not existing:
        return submission
    labels = {job_id: pairs for job_id, pairs in submission.labels.items() if job_id not in existing}
    names = {job_id: name for job_id, name in submission.names.items() if job_id not in existing}
    sessions = [session for session in submission.sessions if session.job_id not in existing]
    jobs = [job for job in submission.jobs if job.id not in existing]
    return evolve(submission, jobs=jobs, labels=labels, names=names, sessions=sessions)


def _first_jobs(submission: Submission) -> list[str]:
    """Return the first job's name of each of a set's replicated jobs: sets that share a job name share one of these."""
    if submission.owner is None or submission.owner.kind != JOBSET:
        return []
    return [job.name for job in submission.jobs if job.child is not None and job.child.index == 0]


def _queues_of(submission: Submission) -> set[str]:
    """Return the queues of everything submitted."""
    owners = [*submission.also, *([] if submission.owner is None else [submission.owner])]
    return {*map(attrgetter("queue"), [*submission.jobs, *map(needs_of, owners)])} - {""}


def _submission_events(submission: Submission) -> Iterator[EventRecord]:
    """Yield the events of a submission: one per job, and one for its job set."""
    owner = submission.owner
    if owner is not None and owner.kind == JOBSET:
        created = JobSetCreated(owner.id, owner.name, len(submission.jobs), owner.submitted_by)
        yield EventRecord(None, owner.created_at, created, owner.group, owner)
    yield from map(submitted_event, submission.jobs)


def _audited_submission(submission: Submission) -> list[AuditedChange]:
    """Return the audit entries of a submission whose caller is known.

    There is one entry, with the first id and the number of each kind, or one per job if jobs have callers of their own.
    """
    owner = submission.owner
    if submission.callers:
        callers = ((job.id, submission.callers.get(job.id, submission.caller)) for job in submission.jobs)
        changes = (on_submission(caller, GANG, job_id, _counted(1, "job")) for job_id, caller in callers)
        return [change for change in changes if change is not None]
    counts = [_counted(len(submission.jobs), "job"), _counted(len(submission.also), "array")]
    key = _ids_of(submission)[0] if owner is None else owner.id
    kind = owner.kind if owner is not None else GANG if submission.jobs else submission.also[0].kind
    change = on_submission(submission.caller, kind, key, ", ".join(filter(None, counts)))
    return [] if change is None else [change]


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}" if count else ""


def _audited_changes(request: Request, caller: Caller | None, named: Mapping[str, str]) -> list[AuditedChange]:
    """Return an audit entry per target of a request with a caller; for submissions see ``_audited_submission``.

    Args:
        request: The request.
        caller: Who makes it.
        named: The kinds of targets with names of their own, by id; all others are jobs.
    """
    kind, audited = request.kind, []
    for key in request.targets if caller is not None and kind in _ACTS else ():
        if kind in OF_DEVICES:
            audited.append(on_device(caller, _ACTS[kind], key.rpartition(" ")[2], request.reason))
        elif key in named:
            act = (_ACTS_WHERE_SUSPENDED if Act.SUSPEND in info_of(named[key]).acts else _ACTS)[kind]
            audited.append(on_workload(caller, act, named[key], key, request.reason))
        else:
            audited.append(on_job(caller, _ACTS[kind], key, request.reason))
    return [change for change in audited if change is not None]


def _require_version(workload: Workload, version: int) -> None:
    """Check that a workload still has the version that the caller read.

    Raises:
        VersionConflict: It was changed meanwhile.
    """
    if workload.version != version:
        raise VersionConflict.of(workload.noun, workload.name, current=workload.resource_version)


def _known_workload(workload: Workload) -> AlreadyExists:
    message = f"{workload.noun} {workload.name!r} exists already"
    return AlreadyExists(message, problems=[Problem("metadata.name", message)], hint="delete it first, or rename this")
