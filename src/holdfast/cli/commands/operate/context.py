"""``holdfast context``: saved servers, and the one that commands use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.flags import Flags

if TYPE_CHECKING:
    from holdfast.app.data.contexts import Contexts
    from holdfast.cli.context import Cli

_ACTIONS = ("list", "use", "add", "remove")
_NAMED = frozenset({"use", "add", "remove"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextOptions:
    action: Annotated[str, typer.Argument(metavar="ACTION", help="list, use, add or remove.")] = "list"
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The server; local is the data directory.")] = None
    url: Annotated[
        str | None, typer.Argument(metavar="URL", help="`add`: its address, such as unix:///run/lab.sock.")
    ] = None


def context(options: ContextOptions, cli: Cli) -> int:
    """List saved servers, and choose the one that commands use.

    `holdfast login` saves a server that needs a token, `add` any other. HOLDFAST_CONTEXT=NAME chooses one for a single
    command.
    """
    flags = Flags()
    action = flags.choice("ACTION", options.action, _ACTIONS)
    for place, value, is_needed in (("NAME", options.name, action in _NAMED), ("URL", options.url, action == "add")):
        if bool(value) is not is_needed:
            flags.wrong(place, f"is required for {action}" if is_needed else f"does not apply to {action}")
    flags.finish()
    from holdfast.app.data.contexts import Contexts

    contexts, name, url = Contexts(), options.name or "", options.url or ""
    if action == "list":
        _print(contexts, cli)
    elif action == "add":
        from holdfast.client import Client

        with Client(url):
            contexts.add(name, url)
        cli.output().text(f"{name} added; to use it: holdfast context use {name}")
    elif action == "use":
        contexts.use(name)
        cli.output().text(f"commands now use {name}")
    else:
        contexts.remove(name)
        cli.output().text(f"{name} removed; commands now use {contexts.current}")
    return exit_codes.OK


def _print(contexts: Contexts, cli: Cli) -> None:
    from holdfast.app.data.contexts import LOCAL

    rows = [(LOCAL, "", "")]
    rows += [
        (entry.name, entry.url, "keyring" if entry.in_keyring else "file" if entry.token else "")
        for entry in contexts.all.values()
    ]
    marked = [("*" if name == contexts.current else "", name, url, token) for name, url, token in rows]
    cli.output().table(("CURRENT", "NAME", "SERVER", "TOKEN"), marked)


CONTEXT = Command(
    "context",
    ContextOptions,
    context,
    "Operate",
    examples=("holdfast context use lab", "holdfast context add box unix:///srv/box/holdfast.sock"),
)
