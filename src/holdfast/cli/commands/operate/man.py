"""``holdfast man``: the manual pages."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.domain.suggestion import closest
from holdfast.errors import NotFound, Unavailable

if TYPE_CHECKING:
    from holdfast.cli.context import Cli

_SUMMARY = "runs batch and ML work to completion on unreliable machines, and explains every decision"
_INSTALLED = Path("~/.local/share/man/man1")
"""Where man(1) looks for pages of programs in ~/.local/bin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManOptions:
    page: Annotated[str, typer.Argument(metavar="[COMMAND]", help="The command; default the overview of all.")] = ""
    install: Annotated[
        bool,
        typer.Option("--install", help="Write all pages to where man(1) finds them, so that `man holdfast-run` works."),
    ] = False
    directory: Annotated[
        Path, typer.Option("--to", metavar="DIR", help="Where --install writes; default ~/.local/share/man/man1.")
    ] = _INSTALLED


def man(options: ManOptions, cli: Cli) -> int:
    """Show the manual page of a command, or install all of them.

    On a terminal it is shown by man(1); elsewhere, or without man(1), its roff source is printed.
    """
    if options.install:
        return _install(options.directory.expanduser(), cli)
    page = _pages().get(f"holdfast-{options.page}" if options.page else "holdfast")
    if page is None:
        msg = f"there is no command {options.page!r}"
        raise NotFound(msg, hint=closest(options.page, _names()) or "holdfast --help")
    viewer = shutil.which("man")
    if viewer is None or not cli.stdout.isatty():
        cli.stdout.write(page)
        return exit_codes.OK
    with tempfile.NamedTemporaryFile("w", suffix=".1", encoding="utf-8") as file:
        file.write(page)
        file.flush()
        started = os.posix_spawn(viewer, [viewer, "-l", file.name], dict(cli.environ))
        return os.waitstatus_to_exitcode(os.waitpid(started, 0)[1])


def _install(directory: Path, cli: Cli) -> int:
    pages = _pages()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, page in pages.items():
            (directory / f"{name}.1").write_text(page, encoding="utf-8")
    except OSError as error:
        msg = f"the pages cannot be written: {error}"
        raise Unavailable(msg, hint="holdfast man --install --to DIR") from error
    cli.output().text(f"{len(pages)} pages are in {directory}")
    return exit_codes.OK


def _names() -> list[str]:
    from holdfast.cli.commands import NAMES

    return list(NAMES)


def _pages() -> dict[str, str]:
    """Write all pages, by name."""
    from holdfast.cli.commands import commands
    from holdfast.cli.manual import overview_page, page_of

    listed = commands()
    return {
        "holdfast": overview_page(listed, _SUMMARY),
        **{f"holdfast-{listed_command.name}": page_of(listed_command) for listed_command in listed},
    }


MAN = Command(
    "man",
    ManOptions,
    man,
    "Operate",
    examples=("holdfast man run", "holdfast man --install", "holdfast man --install --to /usr/local/share/man/man1"),
)
