"""``holdfast delete``: remove policies, queues and categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.nouns import read_noun
from holdfast.cli.things import SINGULAR, WRITTEN, desk
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.cli.context import Cli


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """What ``delete`` can be told."""

    kind: Annotated[str, typer.Argument(metavar="KIND", help="retrypolicy, queue or category.")]
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="One or more names.")]


def delete(options: DeleteOptions, cli: Cli) -> int:
    """Delete retry policies, queues or categories.

    A policy that a queue names, and a queue with jobs that have not ended, are refused.
    """
    noun = read_noun(options.kind, WRITTEN)
    code = exit_codes.OK
    with cli.connect() as client:
        remove = desk(client, noun).delete
        for name in options.names:
            try:
                remove(name)
            except HoldfastError as error:
                cli.say(f"error: {SINGULAR[noun]} {name}: {error}")
                code = code or exit_codes.of_error(error)
            else:
                cli.output().text(f"{SINGULAR[noun]} {name} deleted")
    return code


DELETE = Command("delete", DeleteOptions, delete, "Operate", examples=("holdfast delete retrypolicy infra",))
