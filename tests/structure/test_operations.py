"""No operation can be called by somebody who may not: each asks, and doors reach the store by operations only."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from holdfast.api.http import endpoints
from holdfast.domain.audit import Subject
from holdfast.domain.record import Struct
from holdfast.domain.rights import TABLE, WORK
from holdfast.service import operations
from holdfast.service.access.asking import BY_ACT, REQUIRED_RIGHT, RIGHTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OF_CATALOGUE = (Subject.QUEUE, Subject.POLICY, Subject.CATEGORY, Subject.NOTIFIER)
MADE_OF = {"asking", "backend", "filters"}
"""Modules that operations are made of."""
OPEN = {"readyz": "catalogue_version"}
"""What needs no right: whether the server works."""


def public_operations() -> Iterator[tuple[str, Callable[..., object]]]:
    for module in sorted({one.name for one in iter_modules(operations.__path__)} - MADE_OF):
        found = import_module(f"{operations.__name__}.{module}")
        for holder in vars(found).values():
            if inspect.isclass(holder) and issubclass(holder, Struct) and holder.__module__ == found.__name__:
                for name, member in vars(holder).items():
                    if inspect.isfunction(member) and not name.startswith("_"):
                        yield f"{module}.{holder.__name__}.{name}", member


def test_every_operation_takes_who_calls_first_and_asks_the_table() -> None:
    found = dict(public_operations())
    assert len(found) > 60, "they are somewhere else now"
    without = [
        name for name, one in found.items() if list(inspect.signature(one).parameters)[1] not in {"caller", "_caller"}
    ]
    assert without == [], "who calls comes first"
    silent = [name for name, one in found.items() if not hasattr(one, REQUIRED_RIGHT)]
    assert silent == [], "say with @asks what it takes"
    asked = {name: getattr(one, REQUIRED_RIGHT) for name, one in found.items()}
    plain = {name: each for name, each in asked.items() if each != BY_ACT}
    assert asked.keys() - plain.keys() == {"steering.Steers.ask"}
    assert [
        name
        for name, (right, kind) in plain.items()
        for each in ([kind] if kind else OF_CATALOGUE)
        if right not in TABLE.get(each, {})
    ] == []
    assert all(right in TABLE[kind] for right in RIGHTS.values() for kind in WORK)


def test_endpoints_reach_the_store_by_operations_only() -> None:
    found = []
    for file in sorted(Path(endpoints.__path__[0]).glob("*.py")):
        for function in ast.walk(ast.parse(file.read_text())):
            if isinstance(function, ast.FunctionDef):
                found += [
                    f"{file.name}: {function.name} calls {ast.unparse(node.func)}"
                    for node in ast.walk(function)
                    if isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and ast.unparse(node.func).startswith("backend.store.")
                    and OPEN.get(function.name) != node.func.attr
                ]
    assert found == []
