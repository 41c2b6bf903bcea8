"""Draws jobs, arrays and job sets as a tree of their dependencies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.render.references import references

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holdfast.cli.render.words import Table
    from holdfast.wire.arrays import ArrayView
    from holdfast.wire.jobs import DependencyView, JobSummary
    from holdfast.wire.jobsets import JobSetSummary

    Node = JobSummary | ArrayView | JobSetSummary

_MOST_DEEP = 40
"""Levels that are indented; deeper ones stay at the last level."""


def tree_table(
    jobs: Sequence[JobSummary], arrays: Sequence[ArrayView] = (), sets: Sequence[JobSetSummary] = ()
) -> Table:
    """Tabulate jobs, arrays and job sets, each below the last one of its dependencies that is listed.

    The jobs of a set are below the set.
    """
    everything: list[Node] = [*sets, *arrays, *jobs]
    nodes = {node.id: node for node in sorted(everything, key=_since)}
    children: dict[str, list[Node]] = {}
    roots: list[Node] = []
    for node in nodes.values():
        above = [getattr(node, "job_set", None), *(item.id for item in node.depends_on)]
        parent = next((item for item in reversed(above) if item in nodes), None)
        (roots if parent is None else children.setdefault(parent, [])).append(node)
    called = references((node.id, node.name) for node in nodes.values())
    called |= {item.id: f"jobset/{item.name}" for item in sets}
    rows = [
        (f"{indent}{called[node.id]}", node.state, ", ".join(awaited(node.depends_on)), node.reason)
        for indent, node in _drawn(roots, children)
    ]
    return ("NAME", "STATE", "AFTER", "REASON"), rows


def _since(node: Node) -> str:
    """Return when a node was submitted, which is never before its dependencies."""
    return str(getattr(node, "submitted_at", None) or getattr(node, "created_at", ""))


def _drawn(roots: Sequence[Node], children: dict[str, list[Node]]) -> Iterator[tuple[str, Node]]:
    """Yield all nodes from the top, each with its branch; a loop, because chains may exceed the depth of calls."""
    left = [(node, "", "", 0) for node in reversed(roots)]
    while left:
        node, branch, below, depth = left.pop()
        yield branch, node
        last = len(children.get(node.id, ())) - 1
        for place in range(last, -1, -1):
            child = children[node.id][place]
            if depth >= _MOST_DEEP:
                left.append((child, branch, below, depth))
            elif place == last:
                left.append((child, f"{below}└─ ", f"{below}   ", depth + 1))
            else:
                left.append((child, f"{below}├─ ", f"{below}│  ", depth + 1))


def awaited(depends_on: Iterable[DependencyView]) -> Iterator[str]:
    """Write dependencies as ``--after`` takes them."""
    for dependency in depends_on:
        kind = f"{dependency.kind}/" if dependency.kind == "jobset" else ""
        condition = "" if dependency.condition == "ok" else f":{dependency.condition}"
        yield f"{kind}{dependency.name}{condition}{':index' if dependency.by_index else ''}"
