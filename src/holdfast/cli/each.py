"""Does one thing to each of several names, continuing after a refusal, and says what happened to each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli import exit_codes
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.cli.context import Cli


def do_each(names: Sequence[str], act: Callable[[str], object], cli: Cli, *, what: str, done: str | None) -> int:
    """Act on each name.

    Args:
        names: Of things of one kind.
        act: What to do; raises a ``HoldfastError`` when it is refused.
        cli: Where to tell it.
        what: The kind, in the singular.
        done: What a success is called; ``None`` says nothing of it.

    Returns:
        The exit code of the first refusal, 0 without one.
    """
    code = exit_codes.OK
    for name in names:
        try:
            act(name)
        except HoldfastError as error:
            cli.say(f"error: {what} {name}: {error}")
            code = code or exit_codes.of_error(error)
        else:
            if done is not None:
                cli.output().text(f"{what} {name} {done}")
    return code
