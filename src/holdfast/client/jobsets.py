"""Calls about job sets: create, apply, read, follow, control."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import quote

from holdfast.client.connection import LARGEST_PAGE, new_key, once
from holdfast.client.workloads import WorkloadsWanted, listed
from holdfast.wire.base import API
from holdfast.wire.jobsets import (
    ChildPage,
    ChildView,
    JobSetApplied,
    JobSetLog,
    JobSetLogEntry,
    JobSetPage,
    JobSetSummary,
    JobSetView,
    JobSetWhy,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from holdfast.client.connection import Connection
    from holdfast.wire.problems import UnreadableView

_SETS = f"{API}/jobsets"


def _path(reference: str, rest: str = "") -> str:
    return f"{_SETS}/{quote(reference, safe='')}{rest}"


class JobSetCalls:
    """Calls about job sets, each referred to by its name or id.

    A manifest is a mapping of any kind that is a job set. ``lenient`` accepts what upstream accepts, and the mistakes
    in its documentation's examples, with a warning for each.

    With ``if_match``, a ``resource_version``, a request is accepted only if the set is still at that version; otherwise
    ``VersionConflict`` names the present one.
    """

    _connection: Connection

    def create_job_set(
        self, manifest: Mapping[str, Any], *, lenient: bool = False, key: str | None = None
    ) -> JobSetApplied:
        """Create a new job set; safe to repeat with the same idempotency key."""
        return self._connection.call(
            JobSetApplied,
            "POST",
            _SETS,
            repeatable=True,
            params=_flags(lenient=lenient),
            json=manifest,
            headers={"Idempotency-Key": key or new_key()},
        )

    def put_job_set(
        self,
        name: str,
        manifest: Mapping[str, Any],
        *,
        lenient: bool = False,
        must_exist: bool = False,
        if_match: str | None = None,
    ) -> JobSetApplied:
        """Create or change a job set; with ``must_exist`` only change it."""
        arguments: dict[str, Any] = {"params": _flags(lenient=lenient, must_exist=must_exist), "json": manifest}
        return self._connection.call(JobSetApplied, "PUT", _path(name), **once(if_match), **arguments)

    def check_job_set(
        self, manifest: Mapping[str, Any], *, name: str | None = None, lenient: bool = False
    ) -> JobSetApplied:
        """Check a job set as if it were created or, with a name, applied; nothing is stored."""
        params = _flags(lenient=lenient, dry_run=True)
        if name is not None:
            return self._connection.call(JobSetApplied, "PUT", _path(name), params=params, json=manifest)
        return self._connection.call(JobSetApplied, "POST", _SETS, repeatable=True, params=params, json=manifest)

    def job_set(self, reference: str) -> JobSetView:
        """Read a job set with all its details, and its first 100 jobs."""
        return self._connection.get(_path(reference), JobSetView)

    def job_sets(
        self,
        *,
        limit: int | None = None,
        unreadable: Callable[[UnreadableView], object] = lambda _: None,
        **filters: Unpack[WorkloadsWanted],
    ) -> Iterator[JobSetSummary]:
        """List job sets by name, page by page; without a limit, all. See ``listed``."""
        return listed(self._connection, _SETS, JobSetPage, limit, filters, unreadable)

    def job_set_jobs(self, reference: str, *, limit: int | None = None) -> Iterator[ChildView]:
        """List a set's jobs by replicated job and index, page by page; without a limit, all."""
        for page in self._connection.pages(_path(reference, "/jobs"), ChildPage, {}, limit):
            yield from page.items

    def job_set_log(self, reference: str, *, after: int = 0, limit: int | None = None) -> Iterator[JobSetLogEntry]:
        """List a set's log, decisions and events, in order, page by page; without a limit, all."""
        left = limit
        while left is None or left > 0:
            size = LARGEST_PAGE if left is None else min(left, LARGEST_PAGE)
            part = self._connection.get(_path(reference, "/log"), JobSetLog, {"after": after, "limit": size})
            yield from part.items
            if len(part.items) < size:
                return
            left = None if left is None else left - len(part.items)
            after = part.next

    def last_job_set_log(self, reference: str, *, tail: int = 20) -> list[JobSetLogEntry]:
        """Read the newest entries of a set's log, the oldest of them first."""
        return self._connection.get(_path(reference, "/log"), JobSetLog, {"tail": tail}).items

    def job_set_why(self, reference: str, *, job: str | None = None) -> JobSetWhy:
        """Explain a set's state; with a job's name, only the decisions about that job."""
        return self._connection.get(_path(reference, "/why"), JobSetWhy, {"job": job})

    def suspend_job_set(self, reference: str, *, reason: str = "", if_match: str | None = None) -> JobSetSummary:
        """Suspend a set: its programs are stopped, and it can be resumed."""
        return self._ask(reference, "suspend", {"reason": reason}, once(if_match, otherwise=True))

    def resume_job_set(self, reference: str, *, reason: str = "", if_match: str | None = None) -> JobSetSummary:
        """Resume a suspended set."""
        return self._ask(reference, "resume", {"reason": reason}, once(if_match, otherwise=True))

    def restart_job_set(
        self,
        reference: str,
        *,
        replicated_job: str | None = None,
        index: int | None = None,
        reason: str = "",
        if_match: str | None = None,
    ) -> JobSetSummary:
        """Restart a set, a replicated job or one of its jobs; this counts against no limit."""
        body = {"replicated_job": replicated_job, "index": index, "reason": reason}
        return self._ask(reference, "restart", body, once(if_match, otherwise=False))

    def delete_job_set(self, reference: str, *, reason: str = "", if_match: str | None = None) -> JobSetSummary:
        """Delete a set as soon as its programs have stopped; its jobs stay as history."""
        params = {"reason": reason} if reason else {}
        how = once(if_match, otherwise=True)
        return self._connection.call(JobSetSummary, "DELETE", _path(reference), **how, params=params)

    def _ask(self, reference: str, verb: str, body: Mapping[str, Any], how: Mapping[str, Any]) -> JobSetSummary:
        return self._connection.call(JobSetSummary, "POST", _path(reference, f"/{verb}"), **how, json=body)


def _flags(**flags: bool) -> dict[str, str]:
    return {name: "true" for name, flag in flags.items() if flag}
