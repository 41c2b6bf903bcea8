"""The entry point ``holdfast``: builds the overview and runs a command.

Every error ends as words on stderr and one of the codes of ``exit_codes``.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
from typing import TYPE_CHECKING, Annotated, Any, Protocol, cast

import typer
from typer.core import TyperCommand, TyperGroup

from holdfast import __version__
from holdfast.cli import exit_codes
from holdfast.cli.command import HELP_NAMES, Command, typer_command
from holdfast.cli.commands import NAMES, command, commands
from holdfast.cli.context import Cli
from holdfast.domain.suggestion import closest
from holdfast.errors import HoldfastError, InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

_HELP = """Run batch and ML work to completion on unreliable machines, and explain every decision.

Start with: holdfast run --retries 3 -- python train.py
"""
_EPILOG = (
    "The server is found by HOLDFAST_URL and HOLDFAST_TOKEN, HOLDFAST_SOCKET, or the data directory HOLDFAST_DATA; "
    "without a server a command opens the data directory itself."
)
_USAGE_ERROR = cast("type[Exception]", typer.BadParameter.__mro__[2])
"""The base of everything the parser raises, wherever this version of Typer keeps it."""


class _HelpWriter(Protocol):
    def section(self, name: str) -> AbstractContextManager[None]: ...

    def write_dl(self, rows: Sequence[tuple[str, str]]) -> None: ...


class _Overview(TyperGroup):
    """All commands; each is built when it is called, and listed from its summary."""

    deliver: Callable[[Command[Any], Any], None]

    def list_commands(self, _ctx: object) -> list[str]:
        """Name all commands, in the order of the overview."""
        return list(NAMES)

    def get_command(self, _ctx: object, cmd_name: str) -> TyperCommand | None:
        """Build one command."""
        return typer_command(command(cmd_name), self.deliver) if cmd_name in NAMES else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - types of the parser's own
        """Find the named command.

        Raises:
            InvalidRequest: No such command.
        """
        if args[0] not in NAMES and not args[0].startswith("-"):
            message = f"there is no command {args[0]!r}"
            raise InvalidRequest(message, hint=closest(args[0], NAMES) or "holdfast --help")
        name, built, words = super().resolve_command(ctx, args)
        return name, built, command(name).rewrite(words) if name in NAMES else words

    def format_commands(self, _ctx: object, formatter: _HelpWriter) -> None:
        """Write the overview by section, without building any command."""
        listed = commands()
        for section in dict.fromkeys(listed_command.section for listed_command in listed):
            rows = [
                (listed_command.name, listed_command.summary)
                for listed_command in listed
                if listed_command.section == section
            ]
            with formatter.section(section):
                formatter.write_dl(rows)


def _say_version(is_asked: bool) -> None:  # noqa: FBT001 - as Typer calls it
    if is_asked:
        typer.echo(f"holdfast {__version__}")
        raise typer.Exit


_VERSION = typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version and exit.")


_TOKEN_FILE = typer.Option(
    "--token-file",
    metavar="PATH",
    help="Send the server the token in this file, which only its owner may read.",
)


def overview(
    deliver: Callable[[Command[Any], Any], None], use_token_file: Callable[[str | None], None] = lambda _: None
) -> TyperGroup:
    """Build the whole command line.

    Args:
        deliver: Gets the command and its parsed options.
        use_token_file: Gets the value of ``--token-file``.
    """

    def top(
        *, version: Annotated[bool, _VERSION] = False, token_file: Annotated[str | None, _TOKEN_FILE] = None
    ) -> None:
        del version  # printed by its callback
        use_token_file(token_file)

    app = typer.Typer(cls=_Overview, no_args_is_help=True, add_completion=True, rich_markup_mode=None)
    app.callback(help=_HELP, epilog=_EPILOG, context_settings=HELP_NAMES)(top)
    group = typer.main.get_command(app)
    if not isinstance(group, _Overview):
        msg = f"Typer built {type(group).__name__} for the overview"
        raise TypeError(msg)
    group.deliver = deliver
    return group


def parse(
    arguments: Sequence[str], use_token_file: Callable[[str | None], None] = lambda _: None
) -> tuple[Command[Any], Any] | None:
    """Parse one command line into a command and its options; ``None`` when it only asked for help.

    Args:
        arguments: The words of the command line.
        use_token_file: Gets the value of ``--token-file``.

    Raises:
        Exception: Whatever the parser raises for a wrong command line.
    """
    commands: list[tuple[Command[Any], Any]] = []
    group = overview(lambda command, options: commands.append((command, options)), use_token_file)
    group.main(args=list(arguments), prog_name="holdfast", standalone_mode=False)
    return commands[0] if commands else None


def run_line(arguments: Sequence[str], cli: Cli) -> int:
    """Run one command line and return its exit code; a mistake of the caller never raises."""
    try:
        parsed = parse(arguments, cli.use_token_file)
        code = parsed[0].run(parsed[1], cli) if parsed else exit_codes.OK
        cli.stdout.flush()
    except HoldfastError as error:
        cli.say(f"error: {error}")
        return exit_codes.of_error(error)
    except BrokenPipeError:
        # The reader has left (`holdfast get jobs | head`), which is not an error.
        _discard_output()
        return exit_codes.OK
    except OSError as error:
        if error.filename is not None or error.errno not in _UNWRITTEN:  # not about the output
            raise
        _discard_output()
        cli.say(f"error: the output cannot be written: {error.strerror}")
        return exit_codes.FAILED
    except (KeyboardInterrupt, typer.Abort):
        cli.say("interrupted")
        return exit_codes.INTERRUPTED
    except (_USAGE_ERROR, UnicodeEncodeError) as error:
        return _usage(error, cli)
    return code


def _discard_output() -> None:
    """Discard what is still to be written, so that Python does not fail to flush it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage(error: Exception, cli: Cli) -> int:
    """Say what is wrong with the command line and where its help is."""
    context = getattr(error, "ctx", None)
    if isinstance(error, UnicodeEncodeError):  # arguments can be any bytes
        cli.say(f"error: {error.object!r} is not UTF-8 text")
        return exit_codes.USAGE
    describe = getattr(error, "format_message", error.__str__)
    path = context.command_path if context is not None else "holdfast"
    text = describe()
    if type(error).__name__ == "NoArgsIsHelpError":
        cli.stderr.write(f"{text}\n")
        return exit_codes.USAGE
    cli.say(f"error: {text}")
    cli.say(f"  hint: {path} --help")
    return exit_codes.USAGE


_UNWRITTEN = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Errors of a file that takes no more."""
_ENOUGH_FOR_IMPORTS = 1_000_000
"""New objects before the garbage collector runs: what a command imports is not garbage."""


def main() -> None:
    """Run the command line of this process; the script ``bai`` stands for ``holdfast bai``."""
    gc.set_threshold(_ENOUGH_FOR_IMPORTS, *gc.get_threshold()[1:])
    for stream in (sys.stdout, sys.stderr):
        # Never fail over a character that the terminal cannot show.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    program, *words = sys.argv
    sys.exit(run_line(["bai", *words] if os.path.basename(program) == "bai" else words, Cli()))  # noqa: PTH119 - start-up time
