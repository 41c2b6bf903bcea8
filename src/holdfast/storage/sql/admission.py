"""Checks that must hold in the transaction that accepts work, whatever its caller saw before.

Each check locks the rows it read until the commit. A writer that would change them waits, and then sees the new work.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, delete, or_, select, text

from holdfast.compiled.codec import load_spec
from holdfast.compiled.records import dump_json, load_json, storable
from holdfast.domain.access.group import Grouped
from holdfast.domain.job import JOB_TERMINAL
from holdfast.domain.terms.workload_kinds import JOBSET
from holdfast.domain.workloads.dependencies import (
    GONE,
    AwaitedState,
    OnUnmet,
    check,
    met_again,
    met_before,
    state_of,
)
from holdfast.domain.workloads.jobset.model import clash
from holdfast.domain.workloads.spec import DEFAULT_QUEUE
from holdfast.errors import AlreadyExists, Conflict, NotFound, Problem, VersionConflict
from holdfast.ports.requests import RequestKind
from holdfast.storage.sql import codec, declared, tables
from holdfast.storage.sql.batch import chunks
from holdfast.storage.sql.query import owners
from holdfast.storage.sql.rows.conditions import in_group
from holdfast.storage.sql.rows.job_lists import JOBS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from sqlalchemy import Connection

    from holdfast.domain.job import Job
    from holdfast.domain.workloads.dependencies import Dependency
    from holdfast.ports.names import ExternalName
    from holdfast.ports.requests import Request
    from holdfast.ports.workloads import Rerun
    from holdfast.storage.sql.batch import Batches

_OVERRULING = (RequestKind.RETRY.value, RequestKind.CANCEL.value)
_ENDED_STATES = frozenset(state.value for state in JOB_TERMINAL)
AFTER = '"after"'
"""Appears in the stored specification of everything that waits for other work."""
_SPECS_LOCK = 0x_401D_5BEC
"""Shared by submissions, which may reuse a specification; exclusive for deleting unused ones."""


def share_specs(connection: Connection) -> None:
    """Keep others from deleting specifications until the commit."""
    if connection.dialect.name == "postgresql":  # SQLite has one writer at a time
        connection.execute(text("SELECT pg_advisory_xact_lock_shared(:lock)"), {"lock": _SPECS_LOCK})


def lock_specs(connection: Connection) -> None:
    """Keep others from submitting anything until the commit."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _SPECS_LOCK})


def require_queues(connection: Connection, batches: Batches, names: Collection[str]) -> None:
    """Make sure that the queues exist, and keep them until the commit."""
    named = {*names} - {DEFAULT_QUEUE}
    if not named:
        return
    gone = named - batches.known_queues.among(connection, named)
    if gone:
        message = f"queue {min(gone)!r} does not exist any more"
        raise Conflict(message, hint="create it again, or name another queue")


def require_policies(connection: Connection, batches: Batches, names: Collection[str]) -> None:
    """Make sure that the retry policies exist, and keep them until the commit; they may still be changed."""
    if not names:
        return
    gone = {*names} - batches.known_policies.among(connection, names)
    if gone:
        message = f"retry policy {min(gone)!r} does not exist any more"
        raise Conflict(message, hint="create it again, or name another one")


def require_awaited(connection: Connection, keys: Collection[str]) -> None:
    """Make sure that what the submission waits for exists; shared specifications keep it until the commit."""
    existing = set[str]()
    for some in chunks([*keys]):
        for column in (tables.jobs.c.id, tables.workloads.c.id):
            existing.update(connection.execute(select(column).where(column.in_(some))).scalars())
    gone = {*keys} - existing
    if gone:
        message = f"{min(gone)!r}, which this waits for, was deleted meanwhile"
        raise Conflict(message, hint="submit it again without waiting")


def require_retriable(connection: Connection, batches: Batches, request: Request) -> None:
    """Make sure that a job can be retried: it exists, and no other retry is pending.

    What it waits for must exist and still be able to happen; all of it is kept until the commit.
    """
    [key] = request.targets
    held = JOBS.where(tables.jobs.c.id == storable(key)).with_for_update(key_share=True, of=tables.jobs)
    row = connection.execute(held).first()
    if row is None:
        message = f"job {key!r} was deleted meanwhile"
        raise NotFound(message)
    if _about_to_be_retried(connection, [key]):
        message = f"job {key!r} is about to be retried already"
        raise Conflict(message, hint=f"holdfast wait {key}")
    if row.state in _ENDED_STATES and AFTER in (spec := request.payload or row.body):
        after = load_spec(spec).after
        _refuse_unmet(codec.Reader().job(row), after, _standings(connection, after))
    require_queues(connection, batches, {row.queue})


def _about_to_be_retried(connection: Connection, keys: Sequence[str]) -> set[str]:
    """Return the jobs for which a retry was requested, and no cancellation since."""
    requests, last = tables.requests.c, dict[str, str]()
    for some in chunks(keys):
        texts = [dump_json((key,)) for key in some]
        query = select(requests.kind, requests.job_ids).where(
            requests.kind.in_(_OVERRULING), requests.job_ids.in_(texts)
        )
        last.update((load_json(row.job_ids)[0], row.kind) for row in connection.execute(query.order_by(requests.id)))
    return {key for key, kind in last.items() if kind == RequestKind.RETRY.value}


def _standings(connection: Connection, after: Sequence[Dependency]) -> list[AwaitedState]:
    """Read and lock the states of what is waited for; a job about to be retried counts as not ended."""
    jobs, keys = tables.jobs.c, sorted({dependency.id for dependency in after})
    states: dict[str, AwaitedState] = {}
    for some in chunks(keys):
        columns = select(jobs.id, jobs.state, jobs.started_at, jobs.reason).where(jobs.id.in_(some)).order_by(jobs.id)
        for row in connection.execute(columns.with_for_update(read=True, key_share=True)):
            outcome = row.state if row.state in _ENDED_STATES else ""
            states[row.id] = AwaitedState(outcome, row.started_at is not None, row.reason)
        states.update((owner.id, state_of(owner)) for owner in owners(connection, tables.workloads.c.id.in_(some)))
    states.update(dict.fromkeys(_about_to_be_retried(connection, [*states]), AwaitedState()))
    return [states.get(dependency.id, GONE) for dependency in after]


def is_retried_in(connection: Connection, queue: str) -> bool:
    """Whether an ended job of the queue is about to be retried."""
    jobs, requests = tables.jobs.c, tables.requests.c
    texts = connection.execute(select(requests.job_ids).where(requests.kind == RequestKind.RETRY.value)).scalars()
    keys = [load_json(text)[0] for text in texts]
    theirs = (select(jobs.id).where(jobs.id.in_(some), jobs.queue == queue).limit(1) for some in chunks(keys))
    return any(connection.execute(query).first() is not None for query in theirs)


def claim_tasks(connection: Connection, batches: Batches, rerun: Rerun) -> None:
    """Make sure that nobody else reruns these tasks; the table's key refuses a second rerun of the same number."""
    workloads, table = tables.workloads, tables.reruns
    query = select(workloads.c.id).where(workloads.c.id == rerun.of).with_for_update(read=True, key_share=True)
    if connection.execute(query).first() is None:
        message = f"{rerun.of!r} was deleted meanwhile"
        raise NotFound(message)
    for ids in chunks(rerun.existing):
        if len(connection.execute(select(tables.jobs.c.id).where(tables.jobs.c.id.in_(ids))).all()) != len(ids):
            message = "tasks were deleted at the same time"
            raise VersionConflict(message, hint="look which are left, and rerun those")
    rows: list[tuple[Any, ...]] = [(rerun.root, index, rerun.number, rerun.array) for index in sorted(rerun.indexes)]
    if batches.reruns.run(connection, rows) != len(rows):
        raise _reran_meanwhile()
    former = (table.c.number == rerun.number - 1) & (table.c.array != rerun.of)
    others = select(table.c.task).where(table.c.root == rerun.root, (table.c.number > rerun.number) | former)
    if not {*rerun.indexes}.isdisjoint(connection.execute(others).scalars()):
        raise _reran_meanwhile()


def refuse_known(connection: Connection, batches: Batches, ids: tuple[str, ...]) -> None:
    """Make sure that every id is new."""
    repeated = {job_id for job_id, times in Counter(ids).items() if times > 1}
    for some in chunks(ids):
        repeated |= batches.known_jobs.among(connection, some)
    if repeated:
        problems = [Problem("id", f"job {job_id!r} exists already") for job_id in sorted(repeated)]
        message = "a job of that id exists already"
        raise AlreadyExists(message, problems=problems)


def require_own_jobs(connection: Connection, name: str, first: Sequence[str]) -> None:
    """Make sure that no other job set has jobs of the same names as a new one.

    Args:
        connection: The submission's transaction.
        name: The new set.
        first: The name of the first job of each of its replicated jobs.
    """
    # Sets whose jobs can share a name share the part of their own names before the first hyphen.
    _lock_name(connection, name.partition("-")[0])
    jobs, sets = tables.jobs.c, tables.workloads.c
    theirs = select(jobs.name, sets.name.label("owner")).join_from(
        tables.jobs, tables.workloads, sets.id == jobs.set_id
    )
    for some in chunks(first):
        clashing = connection.execute(theirs.where(jobs.name.in_(some), sets.kind == JOBSET).limit(1)).first()
        if clashing is not None:
            hint = f"rename one of its replicated jobs, or delete job set {clashing.owner} first"
            raise Conflict(clash(clashing.name, name, clashing.owner), hint=hint)


def require_newest(connection: Connection, name: str, newest: str) -> None:
    """Make sure that no job of this name was submitted since the newest one was looked up."""
    _lock_name(connection, name)
    jobs = tables.jobs
    newest_id = connection.execute(select(jobs.c.id).where(jobs.c.name == name).order_by(jobs.c.seq.desc()).limit(1))
    if (newest_id.scalar_one_or_none() or "") != newest:
        message = f"another job {name!r} was submitted at the same time"
        problem = Problem("metadata.name", message)
        raise AlreadyExists(message, problems=[problem], hint="look at that one, then try again")


def _lock_name(connection: Connection, name: str) -> None:
    """Let only one transaction at a time pass for a name."""
    if connection.dialect.name == "postgresql":
        locked = text("SELECT pg_advisory_xact_lock(:lock, hashtext(:name))")
        connection.execute(locked, {"lock": _SPECS_LOCK, "name": name})


def take_names(
    connection: Connection, batches: Batches, names: Mapping[str, ExternalName], now: float
) -> dict[str, str]:
    """Take the external names of jobs. Returns the present holder of each name already taken, by the new job's id.

    Inserting first lets the database settle a race for a name.
    """
    _give_up_names(connection, [name for name in names.values() if name.replaces])
    rows: list[tuple[Any, ...]] = [(name.name, job_id, name.digest, now) for job_id, name in names.items()]
    table = declared.names
    if batches.names.run(connection, rows) == len(rows):
        return {}
    holders: dict[str, str] = {}
    for some in chunks([name.name for name in names.values()]):
        rows_taken = connection.execute(select(table.c.name, table.c.job_id).where(table.c.name.in_(some)))
        holders.update({row.name: row.job_id for row in rows_taken})
    return {job_id: holders[name.name] for job_id, name in names.items() if holders[name.name] != job_id}


def _give_up_names(connection: Connection, names: Sequence[ExternalName]) -> None:
    """Free the names that their jobs give up, and all names below them; names that others hold now stay."""
    table = declared.names
    for some in chunks(names):
        theirs = or_(
            *(and_(table.c.name == taken_name.name, table.c.job_id == taken_name.replaces) for taken_name in some)
        )
        given_up = connection.execute(delete(table).where(theirs).returning(table.c.name)).scalars().all()
        if given_up:
            below = or_(*(in_group(table.c.name, Grouped(name, below=True)) for name in given_up))
            connection.execute(delete(table).where(below))


def _refuse_unmet(job: Job, after: Sequence[Dependency], standings: Sequence[AwaitedState]) -> None:
    """Check that what a job to be retried waits for has happened or still can.

    Raises:
        Conflict: The job would be cancelled again at once.
    """
    unmet = check(after, met_again(after, met_before(job, after), standings), standings)
    if unmet.unmet is OnUnmet.CANCEL:
        message = f"job {job.name!r} ({job.id}) cannot run: {unmet.reason}"
        hint = f"retry that first, or run this without waiting: holdfast retry {job.id} --set dependsOn="
        raise Conflict(message, hint=hint)


def _reran_meanwhile() -> VersionConflict:
    return VersionConflict("tasks were rerun at the same time", hint="look which, and rerun the others")
