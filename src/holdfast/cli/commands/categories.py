"""``holdfast categories``: the kinds of failures."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.options import DocumentOption
from holdfast.cli.printing import TEXT_FORMATS, plain
from holdfast.cli.render.catalogue import kind_table
from holdfast.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.wire.entries import CategoryView


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoriesOptions:
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Only these categories.")] = None
    output: DocumentOption = "text"


def categories(options: CategoriesOptions, cli: Cli) -> int:
    """List the categories of failures, with advice on each.

    Your own come first, then the failure catalogue that comes with Holdfast.
    """
    flags = Flags()
    form = flags.choice("--output", options.output, TEXT_FORMATS)
    flags.finish()
    with cli.connect() as client:
        listed = _chosen(client.categories.list(), options.names or [])
    if form == "text":
        cli.output().table(*kind_table(listed))
    else:
        cli.output().document([plain(category) for category in listed], form)
    return exit_codes.OK


def _chosen(listed: "Sequence[CategoryView]", names: "Sequence[str]") -> "Sequence[CategoryView]":
    names_known = [category.name for category in listed]
    for name in names:
        if name not in names_known:
            msg = f"failure category {name!r} does not exist"
            raise NotFound(msg, hint=f"the categories are: {', '.join(names_known)}")
    return [category for category in listed if not names or category.name in names]


CATEGORIES = Command(
    "categories",
    CategoriesOptions,
    categories,
    "Look",
    examples=("holdfast categories", "holdfast categories gpu memory", "holdfast get category gpu -o yaml"),
)
