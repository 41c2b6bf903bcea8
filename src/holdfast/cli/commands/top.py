"""``holdfast top``: everything at a glance, live."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.screen.browser import Browser
from holdfast.cli.screen.terminal import RESIZED, Screen
from holdfast.cli.watching.interrupts import insistent_interrupts
from holdfast.cli.watching.reaching import reached
from holdfast.cli.watching.staleness import NOTE

_UNCUT = 10_000
"""Columns of a frame that is not printed on a terminal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopOptions:
    name: Annotated[
        str, typer.Option("--name", metavar="TEXT", help="List only jobs whose names contain this, ignoring case.")
    ] = ""
    once: Annotated[bool, typer.Option("--once", help="Print one frame and exit; the default without a terminal.")] = (
        False
    )


def top(options: TopOptions, cli: Cli) -> int:
    """Show everything at a glance: queues, nodes, devices, what is running and what is failing.

    Keys: j and k or the arrows move, w or Enter explains a job's state, l shows its latest output, c cancels it after a
    question, r retries it, / filters jobs by name, ? shows help, q quits. ETTR, as in holdfast summary, is for the last
    hour.
    """
    browser = Browser(cli, options.name)
    drawable = cli.stdin.isatty() and cli.stdout.isatty() and cli.environ.get("TERM") != "dumb"
    if options.once or not drawable:
        return _once(browser, cli)
    try:
        with Screen(cli.stdout, cli.stdin) as screen, insistent_interrupts():
            notices = reached(browser.look, cli)
            while not browser.over:
                _until_due(browser, screen, next(notices), cli.now)
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    return exit_codes.OK


def _until_due(browser: Browser, screen: Screen, notice: str, now: Callable[[], float]) -> None:
    """Draw, and handle keys, until it is time to ask the server again."""
    due = now() + browser.rest_s
    while not browser.over:
        screen.draw(browser.lines(screen.size, notice))
        key = screen.key(due - now())
        if key is None or (key != RESIZED and browser.press(key)):
            return


def _once(browser: Browser, cli: Cli) -> int:
    """Print one frame, cut to a terminal's width if there is one."""
    with cli.connect() as client:
        browser.look(client)
    terminal = cli.stdout.isatty()
    columns = Screen(cli.stdout).size.columns if terminal else _UNCUT
    cli.stdout.writelines(f"{line}\n" for line in browser.frame(columns, colours=terminal))
    if not cli.is_looked_after():
        cli.say(NOTE)
    return exit_codes.OK


TOP = Command(
    "top", TopOptions, top, "Look", examples=("holdfast top", "holdfast top --name train", "holdfast top --once")
)
