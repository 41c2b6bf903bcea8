"""The calls about arrays: submit, read, explain, rerun, hold, cancel, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import quote

from holdfast.client.connection import new_key
from holdfast.client.workloads import WorkloadsWanted, listed
from holdfast.wire.arrays import ArrayAccepted, ArrayApplied, ArrayPage, ArrayRerun, ArrayView, ArrayWhy
from holdfast.wire.base import API
from holdfast.wire.jobs import JobSummary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from holdfast.client.connection import Connection
    from holdfast.wire.problems import UnreadableView

_ARRAYS = f"{API}/arrays"


def _path(reference: str, rest: str = "") -> str:
    return f"{_ARRAYS}/{quote(reference, safe='')}{rest}"


class ArrayCalls:
    """Arrays, referred to by name or id."""

    _connection: Connection

    def submit_array(self, manifest: Mapping[str, Any], *, key: str | None = None) -> ArrayAccepted:
        """Submit a job that has ``array``; safe to send again with the same idempotency key."""
        headers = {"Idempotency-Key": key or new_key()}
        return self._connection.call(ArrayAccepted, "POST", _ARRAYS, repeatable=True, json=manifest, headers=headers)

    def check_array(self, manifest: Mapping[str, Any]) -> ArrayAccepted:
        """Check an array as if it were submitted; nothing is stored."""
        return self._connection.call(
            ArrayAccepted, "POST", _ARRAYS, repeatable=True, params={"dry_run": "true"}, json=manifest
        )

    def put_array(self, reference: str, manifest: Mapping[str, Any]) -> ArrayApplied:
        """Change an array's limits to what its manifest says, which may differ in nothing else."""
        return self._connection.call(ArrayApplied, "PUT", _path(reference), repeatable=True, json=manifest)

    def array(self, reference: str) -> ArrayView:
        """Read an array and its progress."""
        return self._connection.get(_path(reference), ArrayView)

    def arrays(
        self,
        *,
        limit: int | None = None,
        unreadable: Callable[[UnreadableView], object] = lambda _: None,
        **filters: Unpack[WorkloadsWanted],
    ) -> Iterator[ArrayView]:
        """List arrays by name, page by page; without a limit, all. See ``listed``."""
        return listed(self._connection, _ARRAYS, ArrayPage, limit, filters, unreadable)

    def array_task(self, reference: str, index: int) -> JobSummary:
        """Read the job of an array's task."""
        return self._connection.get(_path(reference, f"/tasks/{index}"), JobSummary)

    def array_why(self, reference: str) -> ArrayWhy:
        """Explain where an array is, its failed tasks grouped by how they failed and what was decided."""
        return self._connection.get(_path(reference, "/why"), ArrayWhy)

    def rerun_array(self, reference: str, rerun: ArrayRerun, *, dry_run: bool = False) -> ArrayAccepted:
        """Submit an array of some tasks of another one, or only have that checked.

        They keep their indexes and take over the checkpoint folders. Sent twice, the second finds them rerun already.
        """
        params = {"dry_run": "true"} if dry_run else {}
        body = rerun.model_dump(mode="json", exclude_unset=True)
        path = _path(reference, "/rerun")
        return self._connection.call(ArrayAccepted, "POST", path, repeatable=dry_run, params=params, json=body)

    def cancel_array(self, reference: str, *, reason: str = "") -> ArrayView:
        """Cancel an array: its tasks are cancelled, and no more are created."""
        return self._steer_array(reference, "cancel", reason, repeatable=True)

    def hold_array(self, reference: str, *, reason: str = "") -> ArrayView:
        """Hold an array: no more tasks start until it is released; running ones continue."""
        return self._steer_array(reference, "hold", reason, repeatable=True)

    def release_array(self, reference: str, *, reason: str = "") -> ArrayView:
        """Release a held array."""
        return self._steer_array(reference, "release", reason, repeatable=False)

    def preempt_array(self, reference: str, *, reason: str = "") -> ArrayView:
        """Preempt all running tasks of an array; policies decide which of them run again."""
        return self._steer_array(reference, "preempt", reason, repeatable=False)

    def _steer_array(self, reference: str, verb: str, reason: str, *, repeatable: bool) -> ArrayView:
        path = _path(reference, f"/{verb}")
        return self._connection.call(ArrayView, "POST", path, repeatable=repeatable, json={"reason": reason})

    def delete_array(self, reference: str, *, reason: str = "") -> ArrayView:
        """Cancel and delete an array; its tasks stay as history."""
        params = {"reason": reason} if reason else {}
        return self._connection.call(ArrayView, "DELETE", _path(reference), repeatable=True, params=params)
