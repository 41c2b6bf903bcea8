"""``holdfast down``: stops the server of the data directory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.flags import Flags

if TYPE_CHECKING:
    from holdfast.cli.context import Cli


@dataclass(frozen=True, slots=True, kw_only=True)
class DownOptions:
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="DURATION", help="Give up waiting for it to exit after this long.")
    ] = "30s"


def down(options: DownOptions, cli: Cli) -> int:
    """Stop the server on the data directory, and wait until it has exited.

    Running programs continue, and the next server takes them over. It is not an error if no server
    is running.
    """
    flags = Flags()
    timeout_s = flags.duration("--timeout", options.timeout)
    flags.finish()
    from holdfast.app import daemon

    stopped = daemon.stop(timeout_s or 0.0)
    if stopped is None:
        cli.say("no server is running")
        return exit_codes.OK
    server, running = stopped
    go_on = {0: "", 1: "; 1 job keeps running without it"}.get(running, f"; {running} jobs keep running without it")
    cli.output().text(f"stopped the server at {server.url}{go_on}")
    return exit_codes.OK


DOWN = Command("down", DownOptions, down, "Operate", examples=("holdfast down",))
