"""Prints lists and single things in the form asked for; ``render`` has the columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from holdfast.cli.flags import Flags

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.cli.render.output import Output
    from holdfast.cli.render.words import Table

LIST_FORMATS = ("table", "json", "yaml", "name")
GET_FORMATS = (*LIST_FORMATS, "wide")
TEXT_FORMATS = ("text", "json", "yaml")


class Thing(Protocol):
    """What the server answered: a model of ``wire``."""

    def model_dump(self, *, mode: str = ..., by_alias: bool | None = ...) -> dict[str, Any]:
        """Return it as plain data."""
        ...


ThingT = TypeVar("ThingT", bound=Thing)


def read_format(text: str, allowed: Sequence[str] = LIST_FORMATS) -> str:
    """Read ``--output``.

    Raises:
        InvalidRequest: It is none of the allowed forms.
    """
    flags = Flags()
    form = flags.choice("--output", text, allowed)
    flags.finish()
    return form


def plain(thing: Thing) -> dict[str, Any]:
    """Turn an answer into plain data, named as in the API."""
    return thing.model_dump(mode="json", by_alias=True)


def print_things(
    output: Output,
    things: Sequence[ThingT],
    form: str,
    *,
    table: Callable[[Sequence[ThingT]], Table],
    name: Callable[[ThingT], str],
) -> None:
    """Print a list."""
    if form == "name":
        for thing in things:
            output.text(name(thing))
    elif form in {"table", "wide"}:
        output.table(*table(things))
    else:
        output.document({"items": [plain(thing) for thing in things]}, form)


def print_thing(
    output: Output,
    thing: ThingT,
    form: str,
    *,
    table: Callable[[Sequence[ThingT]], Table],
    name: Callable[[ThingT], str],
) -> None:
    """Print a single thing; as JSON or YAML it is not wrapped in a list."""
    if form in {"json", "yaml"}:
        output.document(plain(thing), form)
    else:
        print_things(output, [thing], form, table=table, name=name)
