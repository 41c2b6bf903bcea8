"""Reads sessions of Backend.AI's users and their kernels; the controller writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from holdfast.errors import NotFound
from holdfast.storage.sql import codec, tables
from holdfast.storage.sql.batch import chunks
from holdfast.storage.sql.part import StorePart
from holdfast.storage.sql.rows.conditions import seen_by

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.access.grants import Seen
    from holdfast.domain.lifecycle import EntityKind, HistoryRow
    from holdfast.domain.sessions.model import Kernel, Session

_SESSIONS, _KERNELS, _JOBS = tables.sessions, tables.kernels, tables.jobs


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
            message = f"there is no session {key!r}"
            raise NotFound(message)
        return codec.Reader().session(row)

    def chains(self, job_ids: Sequence[str]) -> Mapping[str, Sequence[Session]]:
        """Return the sessions of jobs, by the job's id, in order."""
        chains: dict[str, list[Session]] = {}
        read = codec.Reader()
        query = select(_SESSIONS).order_by(_SESSIONS.c.retry_count)
        with self._database.reading() as connection:
            for ids in chunks(job_ids):
                for row in connection.execute(query.where(_SESSIONS.c.job_id.in_(ids))):
                    session = read.session(row)
                    chains.setdefault(session.job_id, []).append(session)
        return chains

    def kernels_of(self, session_ids: Sequence[str]) -> Mapping[str, Sequence[Kernel]]:
        """Return the kernels of sessions, by the session's id, in order of rank."""
        kernels: dict[str, list[Kernel]] = {}
        read = codec.Reader()
        query = select(_KERNELS).order_by(_KERNELS.c.rank)
        with self._database.reading() as connection:
            for ids in chunks(session_ids):
                for row in connection.execute(query.where(_KERNELS.c.session_id.in_(ids))):
                    kernel = read.kernel(row)
                    kernels.setdefault(kernel.session_id, []).append(kernel)
        return kernels

    def steps_of(self, kind: EntityKind, name: str) -> Sequence[HistoryRow]:
        """Return the history of a session or a kernel, in order."""
        steps, read = tables.history, codec.Reader()
        query = select(steps).where(steps.c.kind == kind.value, steps.c.id == name).order_by(steps.c.seq)
        with self._database.reading() as connection:
            return [*map(read.history, connection.execute(query))]
