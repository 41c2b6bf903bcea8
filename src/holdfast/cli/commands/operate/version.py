"""``holdfast version``: the versions of this program and of the server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast import __version__
from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.cli.context import Cli


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionOptions:
    client: Annotated[
        bool, typer.Option("--client", help="Print only this program's version, without asking a server.")
    ] = False


def version(options: VersionOptions, cli: Cli) -> int:
    """Print the version of this program and of the server it talks to."""
    from holdfast.client.errors import difference
    from holdfast.wire.base import REVISION

    output = cli.output()
    output.text(f"holdfast {__version__} (api v1.{REVISION})")
    if options.client:
        return exit_codes.OK
    try:
        with cli.connect() as client:
            server = client.version()
    except HoldfastError as error:
        cli.say(f"server: {error}")
        return exit_codes.of_error(error)
    output.text(f"server {server.version} (api {server.api}.{server.revision})")
    if remark := difference(server.revision):
        cli.say(remark)
    return exit_codes.OK


VERSION = Command("version", VersionOptions, version, "Operate")
