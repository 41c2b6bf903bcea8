"""Answers as rows of plain fields, for CSV: the columns are those of their model, whatever the rows hold."""

from __future__ import annotations

import csv
import io
import json
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from holdfast.cli.render.words import pairs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Column = tuple[str, tuple[str, ...]]
    """A column's name, and where its value is in an answer."""

_PLAIN = (str, int, float, bool)
_SINGLE = 1


def csv_lines(rows: Sequence[Mapping[str, Any]], model: type[Any], *, header: bool = True) -> list[str]:
    """Write rows as CSV (RFC 4180), with a line for the columns; each line ends in CR and LF."""
    columns = columns_of(model)
    lines = [[name for name, _ in columns]] if header else []
    lines += [[_cell(row, path) for _, path in columns] for row in rows]
    return [_line(cells) for cells in lines]


def columns_of(model: type[Any]) -> list[Column]:
    """List the plain fields of a model, and those of the models in it; lists of models are left out."""
    columns: list[Column] = []
    for name, info in model.model_fields.items():
        kind, key = _kind(info.annotation), info.alias or name
        if hasattr(kind, "model_fields"):
            columns += [(f"{name}_{inner}", (key, *path)) for inner, path in columns_of(kind) if len(path) == _SINGLE]
        elif _is_plain(kind):
            columns.append((name, (key,)))
    return columns


def _kind(annotation: Any) -> Any:  # noqa: ANN401 - a type
    """Return the type of an optional value without its ``None``."""
    if get_origin(annotation) is Annotated:
        return _kind(get_args(annotation)[0])
    if get_origin(annotation) in {Union, UnionType}:
        kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
        return _kind(kinds[0]) if len(kinds) == _SINGLE else annotation
    return annotation


def _is_plain(kind: Any) -> bool:  # noqa: ANN401 - a type
    return kind in _PLAIN or get_origin(kind) is dict or kind in (list[str], int | float)


def _cell(row: Mapping[str, Any], path: Sequence[str]) -> str:
    value: Any = row
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return text_of(value)


def text_of(value: object) -> str:
    """Write a value in one cell: labels as ``k=v,k=v``, a list with commas, anything deeper as JSON."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict) and all(isinstance(item, str) for item in value.values()):
        return pairs(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)


def _line(cells: Sequence[str]) -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator="\r\n").writerow(cells)
    return written.getvalue()
