"""``holdfast up``: the server, the controller and a local executor in one process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.flags import Flags

if TYPE_CHECKING:
    from holdfast.cli.context import Cli

_DEFAULT_PORT = 7070


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """What ``up`` can be told."""

    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1"
    port: Annotated[str, typer.Option(metavar="N", help="The port to listen on; 0 picks a free one.")] = str(
        _DEFAULT_PORT
    )
    data: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="The data directory; default HOLDFAST_DATA, else the platform's usual place."),
    ] = None
    socket: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", help="Also listen on this Unix socket, which needs no token; default HOLDFAST_SOCKET."
        ),
    ] = None
    run_as: Annotated[
        str | None,
        typer.Option(
            metavar="self|submitter",
            help="Run programs as the server's own account, or as who submits them, for which it must be root's;"
            " default HOLDFAST_RUN_AS.",
        ),
    ] = None
    daemon: Annotated[
        bool, typer.Option("--daemon", help="Run in the background: return once it serves; holdfast down stops it.")
    ] = False


def up(options: UpOptions, cli: Cli) -> int:
    """Serve: API, controller and local executor in one process.

    Writes its address and token to the data directory, where every other command finds them. Stops on Ctrl-C or
    SIGTERM. With --daemon it runs in the background and logs to server.log in the data directory.
    """
    flags = Flags()
    port = flags.integer("--port", options.port, high=65535)
    run_as = None if options.run_as is None else flags.choice("--run-as", options.run_as, ("self", "submitter"))
    flags.finish()
    paths = {"data": options.data, "socket": options.socket}
    given: dict[str, object] = {name: Path(value) for name, value in paths.items() if value}
    cli.serve(
        host=options.host,
        port=_DEFAULT_PORT if port is None else port,
        daemon=options.daemon,
        **(given if run_as is None else {**given, "run_as": run_as}),
    )
    return exit_codes.OK


UP = Command(
    "up",
    UpOptions,
    up,
    "Operate",
    examples=("holdfast up --port 7070 --data /var/lib/holdfast", "holdfast up --daemon"),
)
