"""``-o custom-columns=NAME:.path,...`` as ``kubectl`` has it.

NAME is the heading of a column, the path says where in the JSON its values are: ``.field.inner``, ``.list[0]``,
``.list[*].field`` or ``.labels['a.b/c']``, in braces or not. A missing value is ``<none>``; several values are
separated by commas.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from holdfast.cli.render.flat import text_of
from holdfast.domain.suggestion import closest
from holdfast.errors import InvalidRequest, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holdfast.cli.render.words import Table

PREFIX = "custom-columns="
_EXAMPLE = "custom-columns=NAME:.name,STATE:.state"
_STEP = re.compile(
    r"""\.(?P<name>(?:[^.\[\]\\{}'"\s]|\\.)+) | \[(?P<index>-?\d+|\*)\] | \[(?P<q>['"])(?P<quoted>.+?)(?P=q)\]""",
    re.VERBOSE,
)
EVERY = "*"
Path = tuple[str | int, ...]
"""Names, places in lists, and ``*`` for all of a list or all values."""


def is_custom(form: str) -> bool:
    """Whether an output format is this one."""
    return form.startswith(PREFIX)


def read_columns(form: str, fields: Sequence[str] = ()) -> list[tuple[str, Path]]:
    """Read the requested columns.

    Args:
        form: The whole value of ``--output``.
        fields: The fields that things have; no fields allow any.

    Raises:
        InvalidRequest: With one problem for each wrong column.
    """
    problems: list[Problem] = []
    columns: list[tuple[str, Path]] = []
    parts = _split(form.removeprefix(PREFIX))
    if not any(parts):
        problems.append(Problem("--output", "custom-columns has no columns", hint=f"write {_EXAMPLE}"))
    for part in parts if any(parts) else ():
        name, colon, text = part.partition(":")
        path = _path(text)
        if not colon or not name.strip():
            problems.append(Problem("--output", f"{part!r} is not NAME:.path", hint=f"write {_EXAMPLE}"))
        elif path is None:
            hint = "such as .state, .labels.team, .attempts[0].node or .attempts[*].cause"
            problems.append(Problem("--output", f"{text!r} is not a path", hint=hint))
        elif fields and path[0] not in {*fields, EVERY}:
            suggestion = closest(str(path[0]), fields)
            problems.append(
                Problem("--output", f"there is no field {path[0]!r}", allowed=tuple(fields), hint=suggestion)
            )
        else:
            columns.append((name.strip(), path))
    if problems:
        msg = "A flag is not valid."
        raise InvalidRequest(msg, problems=problems)
    return columns


def custom_table(columns: Sequence[tuple[str, Path]], things: Sequence[Mapping[str, Any]]) -> Table:
    """Tabulate the values at these paths."""
    rows = [tuple(_cell(thing, path) for _, path in columns) for thing in things]
    return tuple(name for name, _ in columns), rows


def _split(text: str) -> list[str]:
    """Split at commas outside brackets."""
    return [part.strip() for part in re.split(r",(?![^\[]*\])", text)]


def _path(text: str) -> Path | None:
    """Read a path; ``None`` if it is not valid."""
    plain = text.strip()
    if plain.startswith("{") and plain.endswith("}"):
        plain = plain[1:-1].strip()
    plain = plain.removeprefix("$")
    plain = plain if plain.startswith((".", "[")) else f".{plain}"
    steps: list[str | int] = []
    place = 0
    while place < len(plain):
        step = _STEP.match(plain, place)
        if step is None:
            return None
        steps.append(_step(step))
        place = step.end()
    return tuple(steps) or None


def _step(match: re.Match[str]) -> str | int:
    if (name := match["name"] or match["quoted"]) is not None:
        return re.sub(r"\\(.)", r"\1", name)
    return EVERY if match["index"] == EVERY else int(match["index"])


def _cell(thing: object, path: Path) -> str:
    values = [value for value in _values(thing, path) if value is not None]
    return ",".join(map(text_of, values)) if values else "<none>"


def _values(thing: Any, path: Path) -> Iterator[Any]:  # noqa: ANN401 - plain data of any shape
    if not path:
        yield thing
        return
    step, rest = path[0], path[1:]
    if step == EVERY and isinstance(thing, dict | list):
        for inner in thing.values() if isinstance(thing, dict) else thing:
            yield from _values(inner, rest)
    elif _has(thing, step):
        yield from _values(thing[step], rest)


def _has(thing: object, step: str | int) -> bool:
    if isinstance(thing, list):
        return isinstance(step, int) and -len(thing) <= step < len(thing)
    return isinstance(thing, dict) and step in thing
