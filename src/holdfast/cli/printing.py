"""Prints lists and single things in the requested format; ``render`` has the columns."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from holdfast.cli.render.custom_columns import PREFIX, custom_table, is_custom, read_columns
from holdfast.dialects.steering import WRITTEN_OUT
from holdfast.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.cli.flags import Flags
    from holdfast.cli.render.output import Output
    from holdfast.cli.render.words import Table

LIST_FORMATS = ("table", "wide", "json", "yaml", "csv", "name", f"{PREFIX}NAME:.path,...")
TEXT_FORMATS = ("text", "json", "yaml")
TABLES = ("table", "wide")


class Printable(Protocol):
    """What the server answered: a model of ``wire``."""

    def model_dump(self, *, mode: str = ..., by_alias: bool | None = ...) -> dict[str, Any]:
        """Return it as plain data."""
        ...


ThingT = TypeVar("ThingT", bound=Printable)


def list_format(flags: Flags, text: str, fields: Callable[[], Sequence[str]] = tuple) -> str:
    """Read ``--output`` of a list, and report its problems to ``flags``.

    ``fields`` returns the fields that custom columns may show; no fields allow any.
    """
    word = text.strip()
    if is_custom(word):
        try:
            read_columns(word, fields())
        except InvalidRequest as error:
            flags.problems += error.problems
        return word
    return flags.choice("--output", word, LIST_FORMATS)


def plain(thing: Printable) -> dict[str, Any]:
    """Turn an answer into plain data, named as in the API."""
    return thing.model_dump(mode="json", by_alias=True)


def fields_of(model: type[Any]) -> list[str]:
    """List the fields of a model, named as in the API; none if it may have any."""
    if model.model_config.get("extra") == "allow":
        return []
    return [info.alias or name for name, info in model.model_fields.items()]


def print_things(
    output: Output,
    things: Sequence[ThingT],
    form: str,
    *,
    table: Callable[[Sequence[ThingT]], Table],
    name: Callable[[ThingT], str],
    model: type[Any] | None = None,
) -> None:
    """Print a list.

    Args:
        output: The writer.
        things: The things to print.
        form: One of ``LIST_FORMATS``.
        table: Tabulates things.
        name: Names a thing so that other commands understand it.
        model: The things' model, whose fields are the columns of CSV; default that of the first thing.
    """
    if form == "name":
        for thing in things:
            output.text(name(thing))
    elif form in TABLES:
        columns, rows = table(things)
        output.listing(columns, whole=form == "wide").head(rows)
    elif is_custom(form):
        columns, rows = custom_table(read_columns(form), [*map(plain, things)])
        output.listing(columns, whole=True).head(rows)
    elif form == "csv":
        print_csv(output, things, model)
    else:
        output.document({"items": [plain(thing) for thing in things]}, form)


def print_csv(output: Output, things: Sequence[Printable], model: type[Any] | None, *, header: bool = True) -> None:
    """Print the plain fields of things as CSV."""
    from holdfast.cli.render.flat import csv_lines

    kind = model or (type(things[0]) if things else None)
    if kind is not None:
        output.raw("".join(csv_lines([plain(thing) for thing in things], kind, header=header)))


def json_line(thing: Printable) -> str:
    """Write a thing as JSON in one line."""
    return json.dumps(plain(thing), ensure_ascii=False).translate(WRITTEN_OUT)


def print_thing(
    output: Output,
    thing: ThingT,
    form: str,
    *,
    table: Callable[[Sequence[ThingT]], Table],
    name: Callable[[ThingT], str],
    model: type[Any] | None = None,
) -> None:
    """Print a single thing, without a list around it in JSON and YAML."""
    if form in {"json", "yaml"}:
        output.document(plain(thing), form)
    else:
        print_things(output, [thing], form, table=table, name=name, model=model)
