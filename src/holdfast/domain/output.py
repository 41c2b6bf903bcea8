"""Extracts from the end of a program's output the line that says what went wrong.

Programs may print anything, so everything here is linear in the output, and what is kept is bounded.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import re2

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LONGEST_LINE = 200
"""How many characters of a line are kept."""
MESSAGE_BYTES = 2048
"""How much output replaces a missing termination message, as in Kubernetes' ``FallbackToLogsOnError``."""

# Fixed patterns that never backtrack; they may match at every other character, where RE2 takes ten times as long.
_STEERING = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[()][0-9AB]|[=>78cDEHMNOZ])")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]+")
_WHO = r"^(?:\[?(?:rank|Rank|worker|ray::|\d+: )?\s?[\w.:-]*\]:?\s+|[ \t]*\|[ \t]+)?"
"""The prefix that launchers of several programs put before each line: ``[rank0]: ``."""
_RAISED = re2.compile(
    r"(?m)" + _WHO + r"((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Timeout|Expired|Failure|Exhausted)"
    r"(?:\[[\w.]+\])?(?::[ \t].*|:?[ \t]*$))"
)
"""The line of an exception, in Python and many other languages."""
_TRACEBACK = re2.compile(
    r"(?m)"
    + _WHO
    + r"Traceback \(most recent call last\):[ \t]*\n(?:"
    + _WHO
    + r"[ \t|].*\n|[ \t]*\n)*"
    + _WHO
    + r"(\S.*)$"
)
_FATAL = re2.compile(
    r"(?m)^(?:.*?\b)?(Exception in thread .*|Caused by: .*|panic: .*|fatal error: .*|thread '.*' panicked at .*"
    r"|terminate called .*|Fatal Python error: .*|[\w./-]+: .*Assertion `.*' failed\.?.*"
    r"|Segmentation fault.*|Bus error.*|Illegal instruction.*|Floating point exception.*|Aborted(?: \(core dumped\))?"
    r"|Killed|Out of memory: .*|Terminated|slurmstepd: error: .*)$"
)
_ERROR = re2.compile(
    r"(?m)^(.*(?:\b(?:[Ee]rror|ERROR|ERR!|[Ff]atal|FATAL|CRITICAL|[Pp]anic|E\d{4})(?:\b|:|\])|\*\*\* "
    r"|: (?:command )?not found|No such file or directory|[Pp]ermission denied|[Ff]ailed to ).*)$"
)
_ENDINGS = frozenset({"ChildFailedError", "CalledProcessError", "ProcessRaisedException", "SystemExit", "Aborted"})
"""Errors that only report an earlier failure, whose own line says more."""


def readable(text: str) -> str:
    """Return text without colours and control characters; what a progress bar overwrote becomes separate lines."""
    text = text.encode("utf-8", "replace").decode()
    text = _STEERING.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _UNPRINTABLE.sub("", text)


def error_line(text: str) -> str:
    """Return the line of a program's output that says what went wrong, bounded; empty if it printed nothing.

    This is the last exception or fatal error, else the last line that mentions an error, else the last line.
    """
    shown = readable(text)
    strong = [*_lines(_RAISED, shown), *_lines(_TRACEBACK, shown), *_lines(_FATAL, shown)]
    telling = (
        [line_found for line_found in strong if not _is_ending(line_found[1])] or strong or list(_lines(_ERROR, shown))
    )
    if telling:
        return bounded(max(telling)[1])
    return bounded(next((line for line in reversed(shown.split("\n")) if line.strip()), ""))


def _lines(pattern: Any, text: str) -> Iterator[tuple[int, str]]:  # noqa: ANN401 - re2 has no types
    data = text.encode()
    for match in pattern.finditer(data):
        yield match.end(1), match.group(1).decode("utf-8", "replace").strip("| \t")


def _is_ending(line: str) -> bool:
    return line.partition(":")[0].rpartition(".")[2].partition(" ")[0] in _ENDINGS


def bounded(line: str) -> str:
    """Cut a line to the length that is kept."""
    line = line.strip()
    return line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - 3] + "..."


def last_lines(lines: Sequence[str]) -> str:
    """Return as many of the last lines as fit into a termination message, at least a part of the last one."""
    kept: list[str] = []
    room = MESSAGE_BYTES
    for line in reversed(lines):
        room -= len(line.encode("utf-8", "replace")) + 1
        if room < 0:
            break
        kept.append(line)
    if not kept and lines:
        return lines[-1].encode("utf-8", "replace")[-MESSAGE_BYTES:].decode("utf-8", "ignore")
    return "\n".join(reversed(kept)).strip("\n")
