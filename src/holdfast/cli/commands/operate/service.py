"""``holdfast service``: the server as a service of systemd."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.flags import Flags

if TYPE_CHECKING:
    from holdfast.app.systemd import Service, Systemd
    from holdfast.cli.context import Cli

_ACTIONS = ("install", "uninstall", "status")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOptions:
    action: Annotated[str, typer.Argument(metavar="ACTION", help="install, uninstall or status.")]
    user: Annotated[bool, typer.Option("--user", help="A service for you alone, which needs no root.")] = False
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="The data directory; default /var/lib/holdfast, with --user that of your commands."
        ),
    ] = None
    port: Annotated[str, typer.Option(metavar="N", help="The port to listen on.")] = "7070"
    run_as: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The user that programs run as; default holdfast, with --user you."),
    ] = None
    multi_user: Annotated[
        bool,
        typer.Option(
            "--multi-user", help="A service for all users of the machine; programs run as the user who submits them."
        ),
    ] = False
    show: Annotated[
        bool, typer.Option("--print", "--dry-run", help="`install`: print the unit file and change nothing.")
    ] = False


def service(options: ServiceOptions, cli: Cli) -> int:
    """Run the server as a systemd service, which restarts it whenever it exits and starts it after each reboot.

    `install` writes the unit file and starts the service; repeated, it rewrites and restarts it. Programs outlive
    restarts of the service. `uninstall` stops the server and removes the unit; programs and data stay. `status` exits
    with 0 while it runs, and with 3 if it is not installed.
    """
    flags = Flags()
    action = flags.choice("ACTION", options.action, _ACTIONS)
    port = flags.integer("--port", options.port, low=1, high=65535)
    _check(flags, options, action)
    flags.finish()
    from holdfast.app.systemd import Systemd, planned

    systemd = Systemd(own=options.user)
    if action == "status":
        return _status(systemd, cli)
    if action == "uninstall":
        gone = systemd.uninstall()
        cli.output().text(f"{systemd.file} removed; programs and data stay" if gone else "no service is installed")
        return exit_codes.OK
    data = Path(options.data) if options.data else None
    show = options.show
    unit = planned(
        own=options.user,
        data=data,
        run_as=options.run_as,
        port=port or 0,
        must_exist=not show,
        multi_user=options.multi_user,
    )
    return _print(systemd, unit, cli) if show else _install(systemd, unit, cli)


def _check(flags: Flags, options: ServiceOptions, action: str) -> None:
    if options.user and options.run_as:
        flags.wrong("--run-as", "a service of your own runs as you", hint="leave out --user")
    if options.multi_user and (options.user or options.run_as):
        flags.wrong(
            "--user" if options.user else "--run-as",
            "a service for all users runs as root, and programs as the user who submits them",
        )
    if action != "install":
        flags_given = {"--data": options.data, "--run-as": options.run_as, "--print": options.show}
        flags_given["--multi-user"] = options.multi_user
        for flag in [flag for flag, value in flags_given.items() if value]:
            flags.wrong(flag, f"does not apply to {action}")


def _print(systemd: Systemd, wanted_unit: Service, cli: Cli) -> int:
    from holdfast.app.systemd import unit

    cli.stdout.write(unit(wanted_unit, systemd.version()))
    cli.say(f"install writes this to {systemd.file}")
    return exit_codes.OK


def _install(systemd: Systemd, service: Service, cli: Cli) -> int:
    from holdfast.app.systemd import NAME, is_out_of_reach

    if not service.is_own and is_out_of_reach(service.program):
        message = "some users cannot" if service.multi_user else f"{service.run_as} cannot"
        cli.say(f"warning: {service.program} is in a folder that {message} enter; install it elsewhere")
    systemd.install(service)
    cli.output().text(f"{systemd.file} written; {NAME} is enabled and started")
    flag = " --user" if service.is_own else ""
    cli.say(f"its log: journalctl{flag} -u {NAME}; its data: {service.data}")
    if service.is_own and not systemd.stays():
        cli.say("the service and its programs end when you log out; to prevent that: sudo loginctl enable-linger $USER")
    return exit_codes.OK


def _status(systemd: Systemd, cli: Cli) -> int:
    if not systemd.file.exists():
        cli.output().text("no service is installed")
        return exit_codes.NOT_FOUND
    active = systemd.is_active()
    facts = {"unit": str(systemd.file), "enabled": systemd.is_enabled(), "active": "yes" if active else "no"}
    cli.output().facts(list(facts.items()))
    return exit_codes.OK if active else exit_codes.FAILED


SERVICE = Command(
    "service",
    ServiceOptions,
    service,
    "Operate",
    examples=("holdfast service install --user", "holdfast service install --print", "holdfast service status --user"),
)
