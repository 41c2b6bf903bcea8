"""What the end of a program's output says about its failure: the telling line, and the patterns found in the output.

Programs print what they like, so everything here is linear in the output, and what is kept of it is bounded.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import re2

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LONGEST_LINE = 200
"""Characters kept of one line."""
MESSAGE_BYTES = 2048
"""What of the output takes the place of a termination message, as Kubernetes' ``FallbackToLogsOnError`` has it."""

# Fixed patterns that never backtrack; they may match at every other character, where RE2 takes ten times as long.
_STEERING = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[()][0-9AB]|[=>78cDEHMNOZ])")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]+")
_WHO = r"^(?:\[?(?:rank|Rank|worker|ray::|\d+: )?\s?[\w.:-]*\]:?\s+|[ \t]*\|[ \t]+)?"
"""What launchers of several programs put before each line: ``[rank0]: ``."""
_RAISED = re2.compile(
    r"(?m)" + _WHO + r"((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Timeout|Expired|Failure|Exhausted)"
    r"(?:\[[\w.]+\])?(?::[ \t].*|:?[ \t]*$))"
)
"""The line of an exception, of Python or of much else."""
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
"""What only says that something before it failed, whose own words tell more."""


def readable(text: str) -> str:
    """Return text without colours and control characters; what a progress bar wrote over itself becomes lines."""
    text = text.encode("utf-8", "replace").decode()
    text = _STEERING.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _UNPRINTABLE.sub("", text)


def error_line(text: str) -> str:
    """Return the line of a program's output that says what went wrong, bounded; empty if it printed nothing.

    That is the last exception or fatal error, else the last line that speaks of an error, else the last line of all.
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
    """Return a line, or as much of it as is kept."""
    line = line.strip()
    return line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - 3] + "..."


def last_lines(lines: Sequence[str]) -> str:
    """Return the last lines as a termination message, as many as there is room for; at least a part of the last."""
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
