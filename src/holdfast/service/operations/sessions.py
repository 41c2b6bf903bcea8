"""Sessions of Backend.AI's users: enqueue, read, search, change and end them, and read their logs and history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.compiled.codec import load_spec
from holdfast.domain.access.grants import Right
from holdfast.domain.audit import Subject
from holdfast.domain.record import Struct, evolve
from holdfast.domain.sessions.model import RetryState, SessionStatus, session_id
from holdfast.errors import Internal, NotFound
from holdfast.ports.sessions import SessionRename
from holdfast.ports.store import JobFilter
from holdfast.service.access.asking import asks
from holdfast.service.logs import MOST_LINES, LogQuery, Logs
from holdfast.service.operations.batches import JobBatches
from holdfast.service.sessions.directory import Directory
from holdfast.service.sessions.enqueue import NewSession, external_name, new_session

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.lifecycle import EntityKind, HistoryRow
    from holdfast.domain.sessions.model import Kernel, Session
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.ports.catalogue import Catalogue
    from holdfast.ports.sessions import Condition, ListPage, PageRequest
    from holdfast.service.operations.backend import Backend

_MOST_PARTS = 4
"""Parts of a log that are answered at once."""
_TERMINATED = "terminated by {}"


class SessionDetail(Struct, frozen=True):
    """A session, and what belongs to it."""

    session: Session
    chain: Sequence[Session]
    """All sessions of its chain, oldest first."""
    spec: JobSpec


class KernelDetail(Struct, frozen=True):
    """A kernel, and its session."""

    kernel: Kernel
    session: Session
    spec: JobSpec


class Terminated(Struct, frozen=True):
    """What is done about each of the sessions to end."""

    cancelled: Sequence[str] = ()
    terminating: Sequence[str] = ()
    skipped: Sequence[str] = ()


class SessionOperations(Struct, frozen=True):
    """The operations on sessions."""

    backend: Backend

    @asks(Right.SUBMIT, Subject.JOB)
    def read(
        self, caller: Caller, request: Mapping[str, Any], *, access_key: str = "", catalogue: Catalogue | None = None
    ) -> NewSession:
        """Read a request for a session; see ``new_session``.

        Args:
            caller: The caller.
            request: The fields that its client set.
            access_key: The caller's keypair.
            catalogue: The current catalogue; by default it is read.
        """
        store = self.backend.store
        awaited = [self._find(caller, key).job_id for key in request.get("dependencies") or ()]
        key = external_name(caller.principal.name, str(request["session_name"]))
        holder = store.named([key]).get(key)
        return new_session(
            caller,
            request,
            catalogue or store.catalogue(),
            access_key=access_key,
            awaited=store.jobs_by_id(awaited) if awaited else (),
            holder=next(iter(store.jobs_by_id([holder.job_id])), None) if holder is not None else None,
        )

    @asks(Right.WATCH, Subject.JOB)
    def directory(self, caller: Caller) -> Directory:
        """Return what can be named by ids."""
        catalogue = self.backend.store.catalogue()
        users = {caller.principal.name, self.backend.owner.name, *catalogue.submitters.values()}
        return Directory(catalogue, frozenset(users))

    @asks(Right.WATCH, Subject.JOB)
    def get(self, caller: Caller, key: str) -> SessionDetail:
        """Read a session.

        Raises:
            NotFound: There is none.
        """
        details = self._details(caller, [self._find(caller, key)])
        if not details:
            msg = f"there is no session {key!r}"
            raise NotFound(msg)
        return details[0]

    @asks(Right.WATCH, Subject.JOB)
    def first(self, caller: Caller, job_id: str) -> SessionDetail:
        """Read the first session of a chain, by the id of its job."""
        return self.get(caller, session_id(job_id, 0))

    @asks(Right.WATCH, Subject.JOB)
    def kernels_of(self, _caller: Caller, sessions: Sequence[Session]) -> Mapping[str, Sequence[Kernel]]:
        """Return the kernels of sessions from a list, by the session's id."""
        return self.backend.store.kernels_of([session.id for session in sessions])

    @asks(Right.WATCH, Subject.JOB)
    def search(self, caller: Caller, where: Condition, page: PageRequest) -> ListPage[SessionDetail]:
        """Search among the sessions that the caller may see."""
        result = self.backend.store.search_sessions(where, page, seen=self.backend.seeing(caller).readable())
        return _page(result, self._details(caller, result.items))

    @asks(Right.WATCH, Subject.JOB)
    def search_kernels(self, caller: Caller, where: Condition, page: PageRequest) -> ListPage[KernelDetail]:
        """Search among the kernels of sessions that the caller may see."""
        result = self.backend.store.search_kernels(where, page, seen=self.backend.seeing(caller).readable())
        chains = self.backend.store.chains([*dict.fromkeys(kernel.job_id for kernel in result.items)])
        sessions = {session.id: session for chain in chains.values() for session in chain}
        specs = self._specs(caller, [*chains])
        return _page(
            result,
            [
                KernelDetail(kernel, sessions[kernel.session_id], specs[kernel.job_id])
                for kernel in result.items
                if kernel.job_id in specs and kernel.session_id in sessions
            ],
        )

    @asks(Right.WATCH, Subject.JOB)
    def search_steps(
        self, caller: Caller, kind: EntityKind, where: Condition, page: PageRequest
    ) -> ListPage[HistoryRow]:
        """Search the history of the sessions that the caller may see, or of their kernels."""
        return self.backend.store.search_steps(kind, where, page, seen=self.backend.seeing(caller).readable())

    @asks(Right.CHANGE, Subject.JOB)
    def update(self, caller: Caller, key: str, *, name: str | None = None, tag: str | None = None) -> SessionDetail:
        """Change the name or the tag of a session.

        Raises:
            NotFound: There is none.
            AlreadyExists: Another live session of its user has the name.
        """
        session = self._find(caller, key)
        self.backend.seeing(caller).job(Right.CHANGE, session.job_id)
        external = "" if name is None else external_name(session.user, name)
        self.backend.store.rename_session(key, SessionRename(name, tag, external), self.backend.clock.now())
        return self.get(caller, key)

    @asks(Right.CANCEL, Subject.JOB)
    def terminate(self, caller: Caller, keys: Sequence[str]) -> Terminated:
        """End sessions, and with each what is pending of its chain.

        Raises:
            Forbidden: The caller may not end one of them.
        """
        cancelled, terminating, skipped, jobs = [], [], [], set[str]()
        for key in dict.fromkeys(keys):
            try:
                session = self._find(caller, key)
            except (NotFound, Internal):  # One that cannot be read keeps no other from its end.
                skipped.append(key)
                continue
            if session.status is SessionStatus.PENDING or session.retry_state is RetryState.PENDING:
                cancelled.append(key)
            elif session.terminal:
                skipped.append(key)
                continue
            else:
                terminating.append(key)
            jobs.add(session.job_id)
        if jobs:
            where, reason = JobFilter(ids=frozenset(jobs)), _TERMINATED.format(caller.principal.name)
            JobBatches(self.backend).cancel(caller, where, reason)
        return Terminated(cancelled, terminating, skipped)

    @asks(Right.LOGS, Subject.JOB)
    def logs(self, caller: Caller, key: str, kernel: str | None = None) -> str:
        """Read the end of the output of a kernel; by default of the main one.

        Raises:
            NotFound: The session has no such kernel.
        """
        store, session = self.backend.store, self._find(caller, key)
        self.backend.seeing(caller).job(Right.LOGS, session.job_id)
        rank = 0
        if kernel is not None:
            ranks = {record.id: record.rank for record in store.kernels_of([key]).get(key, ())}
            if kernel not in ranks:
                msg = f"session {key} has no kernel {kernel}"
                raise NotFound(msg)
            rank = ranks[kernel]
        attempt = self._last_attempt(session)
        return "" if attempt is None else self._text(session.job_id, attempt, rank)

    def _last_attempt(self, session: Session) -> int | None:
        """Return the number of the last of its job's attempts that is a part of a session, if there is one yet."""
        store = self.backend.store
        chain = store.chains([session.job_id]).get(session.job_id, ())
        following = next((other for other in chain if other.retry_count == session.retry_count + 1), None)
        if following is not None:
            return following.first_attempt - 1
        last = store.job(session.job_id).attempt
        return last if last >= session.first_attempt else None

    def _text(self, job_id: str, attempt: int, rank: int) -> str:
        logs, texts = Logs(self.backend.store, self.backend.logs), list[str]()
        query = LogQuery(attempt=attempt, rank=rank, tail=MOST_LINES)
        for _ in range(_MOST_PARTS):
            part = logs.read(job_id, query)
            texts.append(part.text)
            if part.finished or not part.text:
                break
            query = LogQuery(attempt=attempt, rank=rank, offset=part.next_offset)
        return "".join(texts)

    def _find(self, caller: Caller, key: str) -> Session:
        return self.backend.store.session(key, seen=self.backend.seeing(caller).readable())

    def _details(self, caller: Caller, sessions: Sequence[Session]) -> list[SessionDetail]:
        chains = self.backend.store.chains([*dict.fromkeys(session.job_id for session in sessions)])
        specs = self._specs(caller, [*chains])
        # A session whose job has been deleted meanwhile is left out.
        remaining = [session for session in sessions if session.job_id in specs]
        return [SessionDetail(session, chains[session.job_id], specs[session.job_id]) for session in remaining]

    def _specs(self, caller: Caller, job_ids: Sequence[str]) -> Mapping[str, JobSpec]:
        jobs = self.backend.seeing(caller).jobs(self.backend.store.jobs_by_id(job_ids)) if job_ids else ()
        return {job.id: load_spec(job.spec) for job in jobs}


def _page(result: ListPage[Any], items: Sequence[Any]) -> ListPage[Any]:
    return evolve(result, items=items)
