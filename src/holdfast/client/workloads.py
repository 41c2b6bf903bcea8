"""What the calls about all kinds of work have in common: lists by their filters, page by page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pydantic import BaseModel

    from holdfast.client.connection import Connection
    from holdfast.wire.problems import UnreadableView


class WorkloadsWanted(TypedDict, total=False):
    """Which arrays or job sets a list is of; all that is given must hold."""

    states: Sequence[str]
    """Any of these."""
    labels: Mapping[str, str] | None
    user: str | None
    """Name of who submitted them."""
    group: str | None
    """With a slash at its end, also what is below it."""


def listed(
    connection: Connection,
    path: str,
    answer: type[BaseModel],
    limit: int | None,
    wanted: WorkloadsWanted,
    unreadable: Callable[[UnreadableView], object],
) -> Iterator[Any]:
    """List workloads by name; ``unreadable`` is called with each that the list leaves out, because it is damaged."""
    labels = label_params(wanted.get("labels"))
    where = {"state": list(wanted.get("states", ())) or None, "label": labels}
    page: Any
    for page in connection.pages(
        path, answer, {**where, "user": wanted.get("user"), "group": wanted.get("group")}, limit
    ):
        for one in page.unreadable:
            unreadable(one)
        yield from page.items


def label_params(labels: Mapping[str, str] | None) -> list[str] | None:
    """Write labels as lists are filtered by them."""
    return [f"{name}={value}" for name, value in labels.items()] if labels else None
