"""Finds every mutant of a module."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from tools.mutate.mutants import Kind, Mutant, Place
from tools.mutate.mutators import MUTATORS, OF_PARTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.mutate.mutators import Change

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_NOT_CODE = frozenset({"annotation", "returns", "decorator_list", "bases", "keywords", "type_params"})
"""Fields of definitions and declarations."""
_DECLARED = frozenset({"TypeAlias", "TypeVar", "NewType", "ParamSpec"})
_LOGS = frozenset({"_log", "_LOG", "logging", "log", "logger"})


def mutants_of(file: str, source: bytes) -> list[Mutant]:
    """List every mutant of a module, in the order of its text."""
    reader = _Reader(source)
    reader.visit(ast.parse(source), Place(file, "", 1, 1, is_imported=True))
    return reader.found


class _Reader:
    def __init__(self, source: bytes) -> None:
        self.found: list[Mutant] = []
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._times: Counter[tuple[str, Kind, str, str]] = Counter()

    def visit(self, node: ast.AST, place: Place) -> None:
        """Read a node and all below it."""
        if isinstance(node, (ast.stmt, ast.match_case)):
            first, last = _own_lines(node)
            place = replace(place, first=first, last=last)
        for part, change in _changes(node, place):
            self._add(part, change, place)
        for name, child in _children(node):
            self.visit(child, _inside(node, name, place))

    def _add(self, node: ast.AST, change: Change, place: Place) -> None:
        known = (place.where, change.kind, change.before, change.after)
        self._times[known] += 1
        start, end = self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]  # a part of a text has them
        line: int = node.lineno  # type: ignore[attr-defined]  # as above
        self.found.append(
            Mutant(place, change.kind, change.before, change.after, self._times[known], line, start, end, change.text)
        )

    def _offset(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column


def _changes(node: ast.AST, place: Place) -> Iterator[tuple[ast.AST, Change]]:
    for mutator in MUTATORS.get(type(node), ()):
        for change in mutator(node):
            is_figure = isinstance(node, ast.Constant) and change.kind is Kind.TERM
            if not (is_figure and place.is_imported):
                yield node, change
    if type(node) in OF_PARTS:
        yield from OF_PARTS[type(node)](node)


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield what stands below a node and is code that decides."""
    is_definition = isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.AnnAssign, ast.arg))
    for name, value in ast.iter_fields(node):
        if is_definition and name in _NOT_CODE:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_left_alone(child):
                yield name, child


_NEVER = "assert_never"
"""For those who check types: nothing gets there."""


def _is_left_alone(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name) | ast.Attribute(attr=name)))):
            return name in _LOGS
        case ast.AnnAssign(annotation=ast.Name(id=name)) | ast.Call(func=ast.Name(id=name)):
            return name in _DECLARED or name == _NEVER
        case ast.Expr(value=ast.Call(func=ast.Name(id=name))):
            return name == _NEVER
        case (
            ast.JoinedStr()
            | ast.Import()
            | ast.ImportFrom()
            | ast.If(test=ast.Name(id="TYPE_CHECKING"))
            | ast.ClassDef(bases=[ast.Name(id="Protocol")])
            | ast.ClassDef(bases=[ast.Subscript(value=ast.Name(id="Protocol"))])
            | ast.Subscript(slice=ast.Tuple())  # a type
            | ast.Expr(value=ast.Constant())
            | ast.Assign(targets=[ast.Name(id="__all__" | "__slots__")])
        ):
            return True
        case _:
            return False


def _own_lines(node: ast.stmt | ast.match_case) -> tuple[int, int]:
    """Return the first and last line of a statement, of one with a body those before it."""
    first = node.pattern.lineno if isinstance(node, ast.match_case) else node.lineno
    inner = getattr(node, "body", None) or getattr(node, "cases", None)
    if inner:
        below = inner[0].pattern.lineno if isinstance(inner[0], ast.match_case) else inner[0].lineno
        return first, max(first, below - 1)
    return first, getattr(node, "end_lineno", None) or first


def _inside(node: ast.AST, name: str, place: Place) -> Place:
    """Return the place of what stands in a field of a node."""
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        where = f"{place.where}.{node.name}" if place.where else node.name
        runs_later = isinstance(node, _FUNCTIONS) and name == "body"
        return replace(place, where=where, is_imported=place.is_imported and not runs_later)
    return place
