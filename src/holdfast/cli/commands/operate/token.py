"""``holdfast token``: API tokens, which identify callers that do not use the Unix socket."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.flags import Flags
from holdfast.cli.options import FormatOption
from holdfast.cli.printing import fields_of, list_format, print_things
from holdfast.domain.units import parse_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.context import Cli
    from holdfast.client import Client
    from holdfast.wire.catalogue import TokenView

_ACTIONS = ("create", "list", "revoke")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenOptions:
    action: Annotated[str, typer.Argument(metavar="ACTION", help="create, list or revoke.")]
    names: Annotated[list[str], typer.Argument(metavar="[NAME...]", help="Names of tokens.")] = field(
        default_factory=list
    )
    user: Annotated[str | None, typer.Option(metavar="USER", help="`create`: the user it stands for; default you.")] = (
        None
    )
    role: Annotated[
        str | None, typer.Option(metavar="ROLE", help="`create`: the highest role it has; default the user's.")
    ] = None
    scope: Annotated[
        list[str],
        typer.Option(
            metavar="VERBS@KIND[:PLACE]",
            help="`create`: what it may do, such as submit,watch@job; also in which place: watch@job:queue=gpu, or "
            "*@job:group=sweeps/. Repeatable.",
        ),
    ] = field(default_factory=list)
    expires: Annotated[
        str | None, typer.Option(metavar="DURATION", help="`create`: how long it is valid, such as 30d.")
    ] = None
    output: FormatOption = "table"


def token(options: TokenOptions, cli: "Cli") -> int:
    """Create, list and revoke API tokens.

    `create` prints the token once; only its hash is kept. A caller with the token, in `HOLDFAST_TOKEN`, acts as its
    user, within the token's role and scope. `revoke` takes effect within a second.
    """
    flags = Flags()
    action = flags.choice("ACTION", options.action, _ACTIONS)
    form = list_format(flags, options.output, _fields)
    creation_flags = (options.user, options.role, options.expires, options.scope)
    if action != "create" and any(creation_flags):
        flags.wrong("ACTION", f"{action} takes only names", hint="holdfast token create NAME --user USER")
    if (action == "create" and len(options.names) != 1) or (action == "revoke" and not options.names):
        flags.wrong("NAME", f"{action} needs a name", hint=f"holdfast token {action} NAME")
    expires_s = None if options.expires is None else flags.parsed("--expires", options.expires, parse_duration)
    flags.finish()
    with cli.connect() as client:
        if action == "create":
            return _create(client, options, expires_s, cli)
        if action == "revoke":
            for name in options.names:
                client.revoke_token(name)
                cli.say(f"token {name} is revoked")
            return exit_codes.OK
        _print(client.tokens(), form, cli)
    return exit_codes.OK


def _create(client: "Client", options: TokenOptions, expires_s: float | None, cli: "Cli") -> int:
    created = client.create_token(
        options.names[0], user=options.user, role=options.role, scopes=options.scope, expires_s=expires_s
    )
    if options.output in {"json", "yaml"}:
        cli.output().document({"name": created.name, "token": created.token}, options.output)
    else:
        cli.output().raw(f"{created.token}\n")
        cli.say(f"token {created.name} of {created.user}, role {created.role}: this is the only time it is shown")
    return exit_codes.OK


def _fields() -> list[str]:
    from holdfast.wire.catalogue import TokenView

    return fields_of(TokenView)


def _print(tokens: "Sequence[TokenView]", form: str, cli: "Cli") -> None:
    from holdfast.wire.catalogue import TokenView

    print_things(cli.output(), tokens, form, table=_table, name=lambda api_token: api_token.name, model=TokenView)


def _table(tokens: "Sequence[TokenView]") -> "tuple[Sequence[str], Sequence[Sequence[str]]]":
    columns = ("NAME", "USER", "ROLE", "SCOPE", "STATE", "EXPIRES", "USED")
    rows = [
        (
            api_token.name,
            api_token.user,
            api_token.role,
            " ".join(api_token.scopes),
            api_token.state,
            (api_token.expires_at or "").partition("T")[0],
            api_token.used_on,
        )
        for api_token in tokens
    ]
    return columns, rows


TOKEN = Command(
    "token",
    TokenOptions,
    token,
    "Operate",
    examples=(
        "holdfast token create ci --user ann --role user --scope submit,watch,logs@job --expires 30d -o json",
        "holdfast token create sweep --scope submit,watch,cancel@job:group=sweeps/7/",
        "holdfast token list",
        "holdfast token revoke ci",
    ),
)
