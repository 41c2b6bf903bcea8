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


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    listen: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS:PORT", help="Where to listen; default HOLDFAST_LISTEN, else 127.0.0.1:7070."),
    ] = None
    host: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Only the address of --listen.")] = None
    port: Annotated[str | None, typer.Option(metavar="N", help="Only the port of --listen; 0 picks a free one.")] = None
    tls_cert: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The certificate to show, as PEM; default HOLDFAST_TLS_CERT."),
    ] = None
    tls_key: Annotated[
        str | None, typer.Option(metavar="FILE", help="The key of that certificate; default HOLDFAST_TLS_KEY.")
    ] = None
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
            help="Run programs as the server's own user, or as the user who submits them, which needs root;"
            " default HOLDFAST_RUN_AS.",
        ),
    ] = None
    door: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Also speak another system's protocol: armada, backendai or fluster; default HOLDFAST_DOORS.",
        ),
    ] = None
    daemon: Annotated[
        bool, typer.Option("--daemon", help="Run in the background: return once it serves; holdfast down stops it.")
    ] = False


def up(options: UpOptions, cli: Cli) -> int:
    """Serve: API, controller and local executor in one process.

    Writes its address and token to the data directory, where every other command finds them. Stops on Ctrl-C or
    SIGTERM.
    """
    flags = Flags()
    port = flags.integer("--port", options.port, high=65535)
    if options.listen and (options.host or options.port):
        flags.wrong("--listen", "already sets the address and the port", hint="leave out --host and --port")
    run_as = None if options.run_as is None else flags.choice("--run-as", options.run_as, ("self", "submitter"))
    flags.finish()
    paths = {name: getattr(options, name) for name in ("data", "socket", "tls_cert", "tls_key")}
    words = {"listen": options.listen, "run_as": run_as}
    settings_given: dict[str, object] = {name: Path(value) for name, value in paths.items() if value}
    settings_given |= {name: value for name, value in words.items() if value}
    if options.door:
        settings_given["doors"] = tuple(options.door)
    cli.serve(host=options.host, port=port, daemon=options.daemon, **settings_given)
    return exit_codes.OK


UP = Command(
    "up",
    UpOptions,
    up,
    "Operate",
    examples=(
        "holdfast up --port 7070 --data /var/lib/holdfast",
        "holdfast up --daemon",
        "holdfast up --listen 0.0.0.0:8443 --tls-cert lab.pem --tls-key lab.key",
    ),
)
