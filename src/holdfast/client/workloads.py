"""Calls that every kind of workload supports: lists by filter, page by page, and requests about one by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict, Unpack
from urllib.parse import quote

from holdfast.client.connection import new_key
from holdfast.wire.base import API
from holdfast.wire.workloads import WorkloadPage, WorkloadView, WorkloadWhy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pydantic import BaseModel

    from holdfast.client.connection import Connection
    from holdfast.domain.terms.kinds import KindInfo
    from holdfast.wire.problems import UnreadableView


REPEATABLE = frozenset({"cancel", "hold", "suspend", "resume"})
"""Requests that may safely be repeated."""


class WorkloadsWanted(TypedDict, total=False):
    """A selection of arrays or job sets; every field that is set must hold."""

    states: Sequence[str]
    """Any of these states."""
    labels: Mapping[str, str] | None
    user: str | None
    """The name of their submitter."""
    group: str | None
    """Their group; a slash at its end includes the groups below it."""


def listed(
    connection: Connection,
    path: str,
    answer: type[BaseModel],
    limit: int | None,
    filters: WorkloadsWanted,
    unreadable: Callable[[UnreadableView], object],
) -> Iterator[Any]:
    """List workloads by name; ``unreadable`` is called with each damaged one, which the list leaves out."""
    labels = label_params(filters.get("labels"))
    where: dict[str, Any] = {"state": list(filters.get("states", ())) or None, "label": labels}
    where |= {"user": filters.get("user"), "group": filters.get("group")}
    page: Any
    for page in connection.pages(path, answer, where, limit):
        for item in page.unreadable:
            unreadable(item)
        yield from page.items


class WorkloadCalls:
    """Calls about workloads of one kind, as far as all kinds are alike; one is referred to by its name or id."""

    def __init__(self, connection: Connection, kind: KindInfo) -> None:
        self._connection, self._plural = connection, f"{API}/{kind.plural}"

    def _path(self, reference: str, rest: str = "") -> str:
        return f"{self._plural}/{quote(reference, safe='')}{rest}"

    def list(
        self,
        *,
        limit: int | None = None,
        unreadable: Callable[[UnreadableView], object] = lambda _: None,
        **filters: Unpack[WorkloadsWanted],
    ) -> Iterator[WorkloadView]:
        """List them by name, page by page; without a limit, all. See ``listed``."""
        return listed(self._connection, self._plural, WorkloadPage, limit, filters, unreadable)

    def get(self, reference: str) -> WorkloadView:
        """Read a workload."""
        return self._connection.get(self._path(reference), WorkloadView)

    def create(self, manifest: Mapping[str, Any], *, key: str | None = None) -> WorkloadView:
        """Create a new workload; safe to repeat with the same idempotency key."""
        headers = {"Idempotency-Key": key or new_key()}
        return self._connection.call(
            WorkloadView, "POST", self._plural, repeatable=True, json=manifest, headers=headers
        )

    def put(self, name: str, manifest: Mapping[str, Any], *, must_exist: bool = False) -> WorkloadView:
        """Create or change a workload; with ``must_exist`` only change it."""
        params = {"must_exist": "true"} if must_exist else {}
        path = self._path(name)
        return self._connection.call(WorkloadView, "PUT", path, repeatable=True, params=params, json=manifest)

    def why(self, reference: str) -> WorkloadWhy:
        """Explain a workload's state."""
        return self._connection.get(self._path(reference, "/why"), WorkloadWhy)

    def ask(self, reference: str, act: str, *, reason: str = "") -> WorkloadView:
        """Send a request about a workload; it must be among the ``acts`` of its kind."""
        path, repeatable = self._path(reference, f"/{act}"), act in REPEATABLE
        return self._connection.call(WorkloadView, "POST", path, repeatable=repeatable, json={"reason": reason})

    def delete(self, reference: str, *, reason: str = "") -> WorkloadView:
        """Delete a workload; its jobs stay as history."""
        params = {"reason": reason} if reason else {}
        return self._connection.call(WorkloadView, "DELETE", self._path(reference), repeatable=True, params=params)


def label_params(labels: Mapping[str, str] | None) -> list[str] | None:
    """Write labels as the query parameters of a list."""
    return [f"{name}={value}" for name, value in labels.items()] if labels else None
