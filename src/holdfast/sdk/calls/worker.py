"""The program of a job that is one call: reads it, makes it, and leaves its outcome.

A call may fork, and return or raise in the child, too. The child ends there: the outcome is that of the process that
was started for the call, and so are the calls after it.
"""

from __future__ import annotations

import os
import sys

from holdfast.sdk.calls.naming import in_words, kinds
from holdfast.sdk.calls.outcome import CallOutcome, load, loads, of_error, of_value, write_outcome

TYPE_CHECKING = False  # as there
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    T = TypeVar("T")

CALL = "call"
FAILED = 1
PROGRAM = f"import sys; from {__name__} import main; sys.exit(main(sys.argv[1]))"
"""Runs it; ``-m`` would import more before it begins."""


def outcome_name(attempt: int, rank: int) -> str:
    """Name the file of a run's outcome."""
    return f"outcome.{attempt}.{rank}"


def main(folder: str) -> int:
    """Make the call of a folder; returns the program's exit code."""
    most, attempt, rank = 0, int(os.environ["HOLDFAST_ATTEMPT"]), int(os.environ["HOLDFAST_RANK"])
    worker = os.getpid()
    try:
        for left in (f"{folder}/{outcome_name(earlier, rank)}" for earlier in range(1, attempt)):
            if os.path.exists(left):  # of an attempt that came to nothing, so that it is not the call's outcome
                os.unlink(left)
        with open(f"{folder}/{CALL}", "rb") as file:
            most, sys.path[:] = load(file)
            function, arguments, named = load(file)
        outcome, code = of_value(_returned(function, arguments, named), most), 0
    except BaseException as error:
        if os.getpid() != worker:
            raise
        outcome, code = _failed(error, most)
    write_outcome(f"{folder}/{outcome_name(attempt, rank)}", outcome)
    return code


def each(function: Callable[..., T], part: list[tuple[Any, ...]]) -> list[T]:
    """Make many calls of a function."""
    return [_returned(function, arguments, {}) for arguments in part]


def _returned(function: Callable[..., T], arguments: tuple[Any, ...], named: dict[str, Any]) -> T:
    """Make one call; a child that it forked exits instead of returning."""
    worker = os.getpid()
    value = function(*arguments, **named)
    if os.getpid() != worker:
        sys.exit()
    return value


def calls(parts: list[bytes], most: int) -> list[CallOutcome]:
    """Make several independent calls; each result may take ``most`` bytes."""
    return [_outcome(part, most) for part in parts]


def _outcome(part: bytes, most: int) -> CallOutcome:
    worker = os.getpid()
    try:
        function, arguments, named = loads(part)
        return of_value(_returned(function, arguments, named), most)
    except BaseException as error:
        if os.getpid() != worker:
            raise
        return of_error(error, most)


def _failed(error: BaseException, most: int) -> tuple[CallOutcome, int]:
    """Report a failure in the log and the termination message, unless the call reported it itself."""
    import traceback

    from holdfast.sdk.calls.context import RunFailed, current

    traceback.print_exception(error)
    if isinstance(error, RunFailed):
        return of_error(error, most), int(error.code or FAILED)
    current().say_why(in_words(error), kinds(error))
    return of_error(error, most), FAILED
