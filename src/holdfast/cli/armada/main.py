"""Carries out command lines of Armada's users: those of ``holdfast armada``, and of the script ``armadactl``."""

from __future__ import annotations

import gc
import io
import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from holdfast import __version__
from holdfast.cli import exit_codes
from holdfast.cli.armada.failure import Failed
from holdfast.cli.armada.line import help_of, parse
from holdfast.cli.context import Cli
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from collections.abc import Sequence

SCRIPT = "armadactl"
_ENOUGH_FOR_IMPORTS = 1_000_000
_LIBRARIES = ("grpc", "google.protobuf")
_INSTALL = "  to install it: pip install 'holdfast-scheduler[armada]'"


def run(words: Sequence[str], cli: Cli, name: str) -> int:
    """Carry out one command line and return its exit code, which is upstream's: 1 whatever is wrong.

    Args:
        words: What follows the name of the program.
        cli: Its surroundings.
        name: What the program is called.
    """
    if list(words) == ["--version"]:
        cli.output().text(f"{name} of holdfast {__version__}")
        return exit_codes.OK
    try:
        return _carried_out(words, cli, name)
    except Failed as error:
        cli.say(f"Error: {error.message}")
        for line in error.more:
            cli.say(line)
    except HoldfastError as error:
        cli.say(f"Error: {error}")
    return exit_codes.FAILED


def _carried_out(words: Sequence[str], cli: Cli, name: str) -> int:
    from holdfast.cli.armada.invocation import Invocation
    from holdfast.cli.armada.verbs import ROOT

    parsed = parse(words, ROOT, name)
    if parsed.wants_help or parsed.verb.run is None:
        cli.stdout.write(help_of(parsed, ROOT))
        return exit_codes.OK
    if not all(_is_installed(library) for library in _LIBRARIES):
        told = "Armada's protocol needs libraries that are not installed"
        raise Failed(told, _INSTALL)
    asked = Invocation(parsed, cli)
    try:
        return parsed.verb.run(asked)
    finally:
        asked.close()
        cli.stdout.flush()


def _is_installed(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except ModuleNotFoundError:  # what it is in is not there
        return False


def main() -> None:
    """Run the script ``armadactl``."""
    gc.set_threshold(_ENOUGH_FOR_IMPORTS, *gc.get_threshold()[1:])
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    cli = Cli()
    try:
        code = run(sys.argv[1:], cli, SCRIPT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = exit_codes.OK
    except KeyboardInterrupt:
        cli.say("interrupted")
        code = exit_codes.INTERRUPTED
    sys.exit(code)
