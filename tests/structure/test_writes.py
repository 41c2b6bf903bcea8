"""Every write is in the table that says what decides when two are made at one moment (decision 0016)."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from holdfast.api.http.endpoints.endpoint import groups
from holdfast.wire.base import API

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "docs" / "decisions" / "0016-writes-decide-in-their-own-transaction.md"
STORE = ROOT / "src" / "holdfast" / "storage" / "sql"
OPENING = {"writing", "_editing"}
MIGRATING = "migrations"


def listed() -> list[str]:
    """Return what stands in the first column of the table, in code."""
    rows = [line.split(" | ")[0] for line in RECORD.read_text().splitlines() if line.startswith("| ")]
    return [word for row in rows for word in re.findall(r"`([^`]+)`", row)]


def opened(node: ast.FunctionDef) -> set[str]:
    """Return which kinds of transactions a function opens."""
    calls = [item.context_expr for with_ in ast.walk(node) if isinstance(with_, ast.With) for item in with_.items]
    return {call.func.attr for call in calls if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)}


def writing_methods() -> set[str]:
    """Return the methods of the store that open a transaction that writes."""
    trees = [ast.parse(path.read_text()) for path in sorted(STORE.rglob("*.py")) if MIGRATING not in path.parts]
    classes = [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    functions = [node for each in classes for node in each.body if isinstance(node, ast.FunctionDef)]
    return {node.name for node in functions if opened(node) & OPENING} - OPENING


def test_every_route_that_writes_says_what_decides() -> None:
    routes = [f"{one.method} {one.path.removeprefix(API)}" for group in groups() for one in group]
    writing = sorted(route for route in routes if not route.startswith("GET "))
    assert sorted(word for word in listed() if re.match("[A-Z]+ /", word)) == writing


def test_every_method_of_the_store_that_writes_says_what_decides() -> None:
    writing = writing_methods()
    assert writing >= {"submit", "append", "commit", "delete_finished", "edit_entry"}
    assert sorted(writing.difference(listed())) == []
    assert sorted(word for word in {*listed()} if re.fullmatch("[a-z]+(_[a-z]+)+", word) and word not in writing) == []
