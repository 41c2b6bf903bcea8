"""``holdfast login``: saves a server and its token."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.errors import InvalidRequest, Problem, Refused

if TYPE_CHECKING:
    from holdfast.cli.context import Cli

_HERE = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginOptions:
    url: Annotated[str, typer.Argument(metavar="URL", help="The server, such as https://lab.example.org:8443.")]
    name: Annotated[str | None, typer.Option(metavar="NAME", help="A name for the server; default the host's.")] = None
    token_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="A file with the token; without it, the token is asked for, or read from stdin."
        ),
    ] = None


def login(options: LoginOptions, cli: Cli) -> int:
    """Log in to a server: save its address and a token, and use it from now on.

    The token is checked first. It is kept in the desktop's keyring if there is one, else in a file that only you can
    read.
    """
    from urllib.parse import urlsplit

    from holdfast.app.data.contexts import Contexts
    from holdfast.client import Client

    parts = urlsplit(options.url)
    if parts.scheme == "http" and parts.hostname not in _HERE:
        message = f"a token is not sent to {options.url}: anyone on the network could read it"
        raise Refused(message, hint="reach the server by https://, or through a tunnel to 127.0.0.1")
    with Client(options.url):  # check the address before the user types a token
        name = options.name or parts.hostname
    if not name:
        raise InvalidRequest(problems=[Problem("--name", "is required: the address has no host")])
    token = _token(options, cli)
    with Client(options.url, token) as client:
        client.version()
    contexts = Contexts()
    context = contexts.add(name, options.url, token, replace=True)
    contexts.use(context.name)
    where = "the keyring" if context.in_keyring else str(contexts.file)
    cli.output().text(f"commands now use {context.name}; its token is in {where}")
    return exit_codes.OK


def _token(options: LoginOptions, cli: Cli) -> str:
    if options.token_file:
        from holdfast.app.data.trust import read_private

        try:
            text = read_private(Path(options.token_file), otherwise="name a file of your own")
        except OSError as error:
            problem = Problem("--token-file", f"cannot read {options.token_file}: {error.strerror}")
            raise InvalidRequest(problems=[problem]) from error
    elif cli.stdin.isatty():
        from getpass import getpass

        text = getpass("Token: ")
    else:
        text = cli.stdin.readline()
    if not (token := text.strip()):
        raise InvalidRequest(problems=[Problem("--token-file", "the token is empty")])
    return token


LOGIN = Command(
    "login",
    LoginOptions,
    login,
    "Operate",
    examples=(
        "holdfast login https://lab.example.org:8443",
        "holdfast login https://lab.example.org:8443 --name lab --token-file lab.token",
    ),
)
