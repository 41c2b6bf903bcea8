"""Workloads of every kind: their rows, and queries for the controller and readers."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, cast

from sqlalchemy import or_, select

from holdfast.compiled.records import dump_json, load_json, record_of
from holdfast.compiled.workloads import COMMON, dump_state, load_workload
from holdfast.domain.workloads.jobset.state import Event, SetDecision, SetLogEntry
from holdfast.errors import HoldfastError, Internal
from holdfast.ports.store import ASKED_OF_SETS, AskedOf, Request
from holdfast.storage.refusals import no_such_workload
from holdfast.storage.sql import codec, selects, tables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection, Row, Select

    from holdfast.domain.job import Job
    from holdfast.domain.workloads.base import Workload
    from holdfast.ports.workloads import W
    from holdfast.storage.sql.engine import Database

_TABLE = tables.workloads
_IN_ORDER = select(_TABLE).order_by(_TABLE.c.name, _TABLE.c.id)
_GOING_ON = _IN_ORDER.join(tables.jobs, tables.jobs.c.id == _TABLE.c.id, isouter=True).where(
    or_(tables.jobs.c.id.is_(None), selects.STATE_UNINDEXED.in_(selects.ACTIVE_STATES))
)
_FACTS: Mapping[str, type[SetDecision | Event]] = {"decision": SetDecision, "event": Event}
_FACT_OF = {kind: name for name, kind in _FACTS.items()}


def workload_row(workload: Workload) -> tuple[Any, ...]:
    """Return a workload's row."""
    return (
        workload.id,
        workload.kind,
        workload.owner or None,
        workload.name or None,
        workload.generation,
        workload.spec,
        workload.manifest,
        workload.deleting,
        workload.expires_at,
        workload.version,
        workload.created_at,
        workload.updated_at,
        dump_state(workload),
    )


def read_workload(row: Sequence[Any]) -> Workload:
    """Build a workload from its row.

    Raises:
        Internal: It cannot be read, or is of a kind or version this one does not know.
    """
    key, kind, owner, name, *rest, state = row
    return load_workload(kind, dict(zip(COMMON, (key, owner or "", name or "", *rest), strict=True)), state)


def log_row(entry: SetLogEntry) -> tuple[Any, ...]:
    """Return an entry's row without ``seq``."""
    return (entry.set_id, entry.at, _FACT_OF[type(entry.what)], dump_json(entry.what))


def read_log(row: Sequence[Any]) -> SetLogEntry:
    """Build an entry from its row.

    Raises:
        Internal: It is of a kind this version does not know.
    """
    seq, set_id, at, kind, body = row
    if kind not in _FACTS:
        message = f"the log of a job set holds {kind!r}, which this version of Holdfast does not know"
        raise Internal(message, hint="a newer Holdfast wrote it, or the database is damaged")
    return SetLogEntry(set_id=set_id, at=at, what=record_of(_FACTS[kind], load_json(body)), seq=seq)


class SqlWorkloadStore:
    """The part of the store about workloads."""

    def __init__(self, database: Database) -> None:
        """Work on an open database whose schema is current."""
        self._database = database

    def workload(self, kind: type[W], reference: str) -> W:
        """Find a workload by id, or by name.

        Raises:
            NotFound: None matches.
        """
        with self._database.reading() as connection:
            return _find(connection, kind, reference)

    def workloads(self, kind: type[W], *, after: str = "", limit: int | None = None) -> Sequence[W]:
        """List workloads that have names by name, those whose name comes after ``after``."""
        with self._database.reading() as connection:
            return _page(connection, kind, after, limit)

    def workloads_by_id(self, kind: type[W], ids: Sequence[str]) -> Mapping[str, W]:
        """Return those workloads, by id; others are left out."""
        found: list[W] = []
        with self._database.reading() as connection:
            for some in selects.chunks([*{*ids}]):
                found += _read(connection, kind, select(_TABLE).where(_TABLE.c.id.in_(some)))
        return {each.id: each for each in found}

    def asked_of(self, kind: type[W], reference: str) -> AskedOf[W]:
        """Find a workload by id, or by name, with its pending requests.

        Raises:
            NotFound: None matches.
        """
        with self._database.reading() as connection:
            (found,) = _asked_of(connection, [_find(connection, kind, reference)])
        return found

    def all_asked_of(self, kind: type[W], *, after: str = "", limit: int | None = None) -> Sequence[AskedOf[W]]:
        """List workloads as ``workloads`` does, each with its pending requests."""
        with self._database.reading() as connection:
            return _asked_of(connection, _page(connection, kind, after, limit))

    def children_of(self, owner: str) -> Sequence[Job]:
        """Return every job of a workload, in order of submission."""
        read = codec.Reader()
        query = selects.JOBS.where(tables.jobs.c.set_id == owner).order_by(tables.jobs.c.seq)
        return [read.job(row) for row in self._rows(query)]

    def set_log(self, set_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[SetLogEntry]:
        """List what was logged of a job set, in order, entries with ``seq > after``; an unknown set has none."""
        table = tables.set_log
        query = select(table).where(table.c.set_id == codec.storable(set_id), table.c.seq > after)
        return [read_log(row) for row in self._rows(query.order_by(table.c.seq).limit(limit))]

    def _rows(self, query: Select[Any]) -> Sequence[Row[*tuple[Any, ...]]]:
        with self._database.reading() as connection:
            return connection.execute(query).all()


def _read(connection: Connection, kind: type[W], query: Select[Any]) -> list[W]:
    rows = connection.execute(query.where(_TABLE.c.kind == kind.kind))
    return [cast("W", read_workload(row)) for row in rows]


def _find(connection: Connection, kind: type[W], reference: str) -> W:
    wanted = codec.storable(reference)
    found = _read(connection, kind, select(_TABLE).where(or_(_TABLE.c.id == wanted, _TABLE.c.name == wanted)))
    if not found:
        raise no_such_workload(kind, reference)
    return next((each for each in found if each.id == wanted), found[0])


def _page(connection: Connection, kind: type[W], after: str, limit: int | None) -> list[W]:
    return _read(connection, kind, _IN_ORDER.where(_TABLE.c.name > codec.storable(after)).limit(limit))


def _asked_of(connection: Connection, workloads: Sequence[W]) -> list[AskedOf[W]]:
    """Add the pending requests of workloads; each of these requests is about one."""
    table, asked = tables.requests, defaultdict[str, list[Request]](list)
    for ids in selects.chunks([dump_json((each.id,)) for each in workloads]):
        query = select(table).where(table.c.kind.in_(ASKED_OF_SETS), table.c.job_ids.in_(ids)).order_by(table.c.id)
        for request in map(codec.read_request, connection.execute(query)):
            asked[request.targets[0]].append(request)
    return [AskedOf(each, asked[each.id]) for each in workloads]


def going_on(connection: Connection) -> tuple[dict[str, Workload], dict[str, tuple[str, HoldfastError]]]:
    """Read the workloads of all jobs that are not terminal, and all that are no job's; and why some cannot be read."""
    found: dict[str, Workload] = {}
    unreadable: dict[str, tuple[str, HoldfastError]] = {}
    for row in connection.execute(_GOING_ON):
        try:
            found[row.id] = read_workload(row)
        except HoldfastError as error:
            unreadable[row.id] = (row.kind, error)
    return found, unreadable
