"""``holdfast notify``: notifications, their delivery, and tests of notifiers."""

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.options import FormatOption
from holdfast.cli.printing import fields_of, list_format, plain, print_things
from holdfast.cli.render.words import when
from holdfast.cli.targets import do_each

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.render.words import Table
    from holdfast.client import Client
    from holdfast.wire.notifications import NotificationView

_ACTIONS = ("list", "show", "replay", "test")
_STATES = ("Waiting", "Delivered", "Dead")


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyOptions:
    action: Annotated[str, typer.Argument(metavar="ACTION", help="list, show, replay or test.")]
    names: Annotated[
        list[str],
        typer.Argument(metavar="[NAME...]", help="Ids of notifications; for `test` names of notifiers."),
    ] = field(default_factory=list)
    state: Annotated[
        str | None, typer.Option("--state", "-s", metavar="STATE", help="`list`: Waiting, Delivered or Dead.")
    ] = None
    to: Annotated[
        str | None, typer.Option("--to", metavar="NOTIFIER", help="`list` and `replay`: only those to this notifier.")
    ] = None
    all_dead: Annotated[bool, typer.Option("--dead", help="`replay`: all that could not be delivered.")] = False
    limit: Annotated[str | None, typer.Option("--limit", metavar="N", help="`list`: print at most N.")] = None
    output: FormatOption = "table"


def notify(options: NotifyOptions, cli: Cli) -> int:
    """List notifications, deliver them again, or test a notifier.

    `list` shows each notification and why its last delivery failed; `show` prints it in full. `replay` has a
    notification delivered again, under the same id, by the server or the next command that runs jobs. `test` sends a
    test message at once, and exits with 1 if it is not accepted.
    """
    flags = Flags()
    action = flags.choice("ACTION", options.action, _ACTIONS)
    form = list_format(flags, options.output, _fields)
    state = None if options.state is None else flags.choice("--state", options.state, _STATES)
    limit = flags.integer("--limit", options.limit)
    _check(options, action, flags)
    flags.finish()
    with cli.connect() as client:
        if action == "list":
            listed = list(client.notifications(state=state, to=options.to, limit=limit))
            _print(listed, form, cli)
            return exit_codes.OK
        if action == "show":
            return _show(client, options.names, form, cli)
        if action == "test":
            return _test(client, options.names, cli)
        dead = (
            [notification.id for notification in client.notifications(state="Dead", to=options.to)]
            if options.all_dead
            else []
        )
        names = [*options.names, *dead]
        return do_each(names, client.replay, cli, what="notification", done="will be delivered again")


def _fields() -> list[str]:
    from holdfast.wire.notifications import NotificationView

    return fields_of(NotificationView)


def _print(listed: "Sequence[NotificationView]", form: str, cli: Cli) -> None:
    from holdfast.wire.notifications import NotificationView

    table = partial(_table, wide=form == "wide")
    print_things(
        cli.output(), listed, form, table=table, name=lambda notification: notification.id, model=NotificationView
    )


def _table(notifications: "Sequence[NotificationView]", *, wide: bool = False) -> "Table":
    columns = ("ID", "TO", "STATE", "TRIES", *(("CREATED", "NEXT TRY") if wide else ()), "WHAT", "ERROR")
    rows = [
        (
            notification.id,
            notification.to,
            notification.state,
            str(notification.tries),
            *((when(notification.created_at), when(notification.next_at)) if wide else ()),
            notification.summary,
            notification.error,
        )
        for notification in notifications
    ]
    return columns, rows


def _check(options: NotifyOptions, action: str, flags: Flags) -> None:
    needs = {"show": "an id", "test": "the name of a notifier", "replay": "an id, or --dead"}
    if action == "list" and options.names:
        flags.wrong("NAME", "list takes no name", hint="holdfast notify show ID")
    elif action in needs and not options.names and not (action == "replay" and options.all_dead):
        flags.wrong("NAME", f"{action} needs {needs[action]}", hint=f"holdfast notify {action} NAME")
    only: dict[str, tuple[object, set[str]]] = {
        "--state": (options.state, {"list"}),
        "--limit": (options.limit, {"list"}),
    }
    only |= {"--dead": (options.all_dead, {"replay"}), "--to": (options.to, {"list", "replay"})}
    for flag, (value, actions) in only.items():
        if value and action not in actions:
            flags.wrong(flag, f"does not apply to {action}")


def _show(client: "Client", names: "Sequence[str]", form: str, cli: Cli) -> int:
    listed = [client.notification(name) for name in names]
    if form != "table":
        _print(listed, form, cli)
        return exit_codes.OK
    for notification in listed:
        shown = plain(notification)
        payload = shown.pop("payload")
        cli.output().facts([(name, str(value)) for name, value in shown.items() if value not in (None, "")])
        cli.output().document(payload, "yaml")
    return exit_codes.OK


def _test(client: "Client", names: "Sequence[str]", cli: Cli) -> int:
    code = exit_codes.OK
    for name in names:
        result = client.test_notifier(name)
        if result.delivered:
            cli.output().text(f"notifier {name} accepted test {result.id}")
        else:
            cli.say(f"error: notifier {name}: {result.error}")
            code = exit_codes.FAILED
    return code


NOTIFY = Command(
    "notify",
    NotifyOptions,
    notify,
    "Look",
    examples=("holdfast notify test ops", "holdfast notify list --state Dead", "holdfast notify replay --dead"),
)
