"""Reads sessions of Backend.AI's users, their kernels and the history of both; the controller writes them."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, and_, cast, delete, false, or_, select, update

from holdfast.compiled.records import storable
from holdfast.domain.failure import Cause
from holdfast.domain.job import JOB_TERMINAL
from holdfast.domain.lifecycle import EntityKind, RunStatus
from holdfast.domain.sessions.model import RetryState, SessionResult, SessionStatus, step_of
from holdfast.errors import AlreadyExists, InvalidRequest, NotFound
from holdfast.ports.sessions import Comparison, KernelField, SessionField, StepField
from holdfast.storage.sql import codec, declared, tables
from holdfast.storage.sql.batch import chunks
from holdfast.storage.sql.damage import refuse, sound
from holdfast.storage.sql.part import StorePart
from holdfast.storage.sql.rows.conditions import begins_with, seen_by
from holdfast.storage.sql.rows.searches import Search, compared

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Column, ColumnElement, Connection, Select

    from holdfast.domain.access.grants import Seen
    from holdfast.domain.job import Job
    from holdfast.domain.lifecycle import HistoryRow
    from holdfast.domain.sessions.model import Kernel, Session
    from holdfast.ports.sessions import Compare, Condition, ListPage, PageRequest, SessionRename
    from holdfast.storage.sql.batch import Batches
    from holdfast.storage.sql.rows.searches import Elsewhere, Field

_SESSIONS, _KERNELS, _JOBS, _STEPS = tables.sessions, tables.kernels, tables.jobs, tables.history
_ENDED_STATES = sorted(state.value for state in JOB_TERMINAL)


class SqlSessionStore(StorePart):
    """``SessionStore``: sessions, kernels and their history."""

    def session(self, key: str, *, seen: Seen | None = None) -> Session:
        """Find a session by its id."""
        query = select(_SESSIONS).where(_SESSIONS.c.id == key)
        if seen is not None:
            query = query.join(_JOBS, _JOBS.c.id == _SESSIONS.c.job_id).where(seen_by(seen, _JOBS))
        with self._database.reading() as connection:
            row = connection.execute(query).first()
        if row is None:
            raise _no_session(key)
        [session] = sound([row], codec.Reader().session, refuse)
        return session

    def chains(self, job_ids: Sequence[str]) -> Mapping[str, Sequence[Session]]:
        """Return the sessions of jobs, by the job's id, in order."""
        chains: dict[str, list[Session]] = {}
        read = codec.Reader()
        query = select(_SESSIONS).order_by(_SESSIONS.c.retry_count)
        with self._database.reading() as connection:
            for ids in chunks(job_ids):
                for session in sound(connection.execute(query.where(_SESSIONS.c.job_id.in_(ids))), read.session):
                    chains.setdefault(session.job_id, []).append(session)
        return chains

    def kernels_of(self, session_ids: Sequence[str]) -> Mapping[str, Sequence[Kernel]]:
        """Return the kernels of sessions, by the session's id, in order of rank."""
        kernels: dict[str, list[Kernel]] = {}
        read = codec.Reader()
        query = select(_KERNELS).order_by(_KERNELS.c.rank)
        with self._database.reading() as connection:
            for ids in chunks(session_ids):
                for kernel in sound(connection.execute(query.where(_KERNELS.c.session_id.in_(ids))), read.kernel):
                    kernels.setdefault(kernel.session_id, []).append(kernel)
        return kernels

    def search_sessions(self, where: Condition, page: PageRequest, *, seen: Seen | None = None) -> ListPage[Session]:
        """List sessions, by default the newest first."""
        with self._database.reading() as connection:
            return _OF_SESSIONS.page(connection, where, page, *_seen_sessions(seen))

    def search_kernels(self, where: Condition, page: PageRequest, *, seen: Seen | None = None) -> ListPage[Kernel]:
        """List kernels, by default the newest first."""
        with self._database.reading() as connection:
            return _OF_KERNELS.page(connection, where, page, *_seen_kernels(seen))

    def search_steps(
        self, kind: EntityKind, where: Condition, page: PageRequest, *, seen: Seen | None = None
    ) -> ListPage[HistoryRow]:
        """List the history of all sessions or all kernels, by default the newest first."""
        search, names, visible = _OF_SESSION_STEPS, _SESSION_NAMES, _seen_sessions(seen)
        if kind is EntityKind.KERNEL:
            search, names, visible = _OF_KERNEL_STEPS, _KERNEL_NAMES, _seen_kernels(seen)
        of_kind = and_(_STEPS.c.kind == kind.value, tables.STEP_OF_SESSION)
        also = (of_kind, _STEPS.c.id.in_(names.where(*visible))) if visible else (of_kind,)
        with self._database.reading() as connection:
            return search.page(connection, where, page, *also)

    def rename_session(self, key: str, rename: SessionRename, now: float) -> Session:
        """Change the name or the tag of a session."""
        values = {"name": rename.name, "tag": rename.tag}
        changed = {column: storable(text) for column, text in values.items() if text is not None}
        with self._database.writing() as connection:
            row = connection.execute(select(_SESSIONS).where(_SESSIONS.c.id == storable(key)).with_for_update()).first()
            if row is None:
                raise _no_session(key)
            if rename.external_name:
                _rename_job(connection, self._batches, row.job_id, rename.external_name, now)
            if changed:
                update_row = update(_SESSIONS).where(_SESSIONS.c.id == row.id).values(changed)
                row = connection.execute(update_row.returning(*_SESSIONS.c)).one()
        [session] = sound([row], codec.Reader().session, refuse)
        return session


def _no_session(key: str) -> NotFound:
    return NotFound(f"there is no session {key!r}")


def _rename_job(connection: Connection, batches: Batches, job_id: str, name: str, now: float) -> None:
    """Give a job another external name, which a job that has ended yields.

    Raises:
        AlreadyExists: A job that has not ended has it.
    """
    names, jobs = declared.names, tables.jobs
    ended = select(jobs.c.id).where(jobs.c.id == names.c.job_id, jobs.c.state.in_(_ENDED_STATES))
    yielded = (names.c.name == name) & ended.correlate(names).exists()
    connection.execute(delete(names).where((names.c.job_id == job_id) | yielded))
    if batches.names.run(connection, [(name, job_id, b"", now)]) != 1:
        message = f"another job that has not ended is named {name!r}"
        raise AlreadyExists(message, hint="choose another name, or end that one first")


def _seen_sessions(seen: Seen | None) -> tuple[ColumnElement[bool], ...]:
    """Match the sessions that a caller may know of."""
    if seen is None or (seen.everyones and seen.places is None):
        return ()
    job = select(_JOBS.c.id).where(_JOBS.c.id == _SESSIONS.c.job_id, seen_by(seen)).correlate(_SESSIONS).exists()
    if seen.everyones:
        return (job,)
    # A session knows its owner and queue, too, and has an index of each.
    own = _SESSIONS.c.user_name == storable(seen.owner)
    if seen.queues:
        own = or_(own, _SESSIONS.c.project.in_(sorted(seen.queues)))
    return (own,) if seen.uid is None and seen.places is None else (own, job)


def _seen_kernels(seen: Seen | None) -> tuple[ColumnElement[bool], ...]:
    sessions = select(_SESSIONS.c.id).where(*_seen_sessions(seen))
    return () if sessions.whereclause is None else (_KERNELS.c.session_id.in_(sessions),)


def _on_node(compare: Compare, dialect: str) -> ColumnElement[bool]:
    return _SESSIONS.c.id.in_(select(_KERNELS.c.session_id).where(compared(_KERNELS.c.node, compare, dialect)))


def _through(names: Select[Any], column: Column[Any]) -> Elsewhere:
    """Find the steps of the sessions or kernels that have a value."""
    return lambda compare, dialect: _STEPS.c.id.in_(names.where(compared(column, compare, dialect)))


def _step(names: Select[Any], ids: Column[Any], key: str) -> ColumnElement[bool]:
    """Match the step with an id."""
    step = step_of(key)
    if step is None:
        return false()
    owner, seq = step
    return and_(_STEPS.c.id.in_(names.where(begins_with(ids, owner))), _STEPS.c.seq == seq)


def _search_of_steps(
    names: Select[Any], ids: Mapping[StepField, Column[Any]], owner: Column[Any]
) -> Search[HistoryRow]:
    """Describe the history of sessions or kernels.

    Args:
        names: Selects their names in the history.
        ids: The columns there of the ids that steps are found by.
        owner: The one of their own id.
    """

    def has_id(compare: Compare, _: str) -> ColumnElement[bool]:
        if compare.comparison not in {Comparison.EQUALS, Comparison.IN}:
            message = f"the id of a step cannot be compared by {compare.comparison.value!r}"
            raise InvalidRequest(message)
        keys = compare.value if isinstance(compare.value, tuple) else (compare.value,)
        return or_(false(), *(_step(names, owner, str(key)) for key in keys))

    elsewhere: dict[Field, Elsewhere] = {field: _through(names, column) for field, column in ids.items()}
    return Search(
        _STEPS,
        attrgetter("history"),
        {field: _STEPS.c[field.value] for field in StepField if field.value in _STEPS.c},
        (_STEPS.c.id, _STEPS.c.seq),
        partial(_step, names, owner),
        {**elsewhere, StepField.ID: has_id},
    )


_SESSION_NAMES = select(_SESSIONS.c.job_id.concat("/").concat(cast(_SESSIONS.c.retry_count, Text)))
_KERNEL_NAMES = select(
    _KERNELS.c.job_id.concat("/")
    .concat(cast(_KERNELS.c.retry_count, Text))
    .concat("/")
    .concat(cast(_KERNELS.c.rank, Text))
)
_OF_SESSIONS: Search[Session] = Search(
    _SESSIONS,
    attrgetter("session"),
    {field: _SESSIONS.c[field.value] for field in SessionField if field is not SessionField.NODE},
    (_SESSIONS.c.id,),
    lambda key: _SESSIONS.c.id == storable(key),
    {SessionField.NODE: _on_node},
)
_OF_KERNELS: Search[Kernel] = Search(
    _KERNELS,
    attrgetter("kernel"),
    {field: _KERNELS.c[field.value] for field in KernelField},
    (_KERNELS.c.id,),
    lambda key: _KERNELS.c.id == storable(key),
)
_OF_SESSION_STEPS = _search_of_steps(_SESSION_NAMES, {StepField.SESSION_ID: _SESSIONS.c.id}, _SESSIONS.c.id)
_OF_KERNEL_STEPS = _search_of_steps(
    _KERNEL_NAMES, {StepField.SESSION_ID: _KERNELS.c.session_id, StepField.KERNEL_ID: _KERNELS.c.id}, _KERNELS.c.id
)


def end_sessions(connection: Connection, job: Job) -> None:
    """End the session and the kernels of a cancelled job, which may have rows that cannot be read."""
    kernels = (_KERNELS.c.job_id == job.id) & _KERNELS.c.terminated_at.is_(None)
    ended = {"status_since": job.ended_at, "terminated_at": job.ended_at}
    connection.execute(update(_KERNELS).where(kernels).values(status=RunStatus.CANCELLED.value, **ended))
    session = (_SESSIONS.c.job_id == job.id) & _SESSIONS.c.terminated_at.is_(None)
    words = {
        "status": SessionStatus.CANCELLED.value,
        "result": SessionResult.CANCELLED.value,
        "retry_state": RetryState.NONE.value,
        "retry_cause": Cause.USER_CANCELLED.value,
        "status_info": storable(job.reason),
    }
    connection.execute(update(_SESSIONS).where(session).values({**ended, **words}))
    pending = (_SESSIONS.c.job_id == job.id) & (_SESSIONS.c.retry_state == RetryState.PENDING.value)
    connection.execute(update(_SESSIONS).where(pending).values(retry_state=RetryState.CANCELLED.value, retry_at=None))
