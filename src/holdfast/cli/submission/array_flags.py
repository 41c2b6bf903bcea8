"""Reads the flags of ``run`` that make an array: ``--array 0-99%8``, ``--each FILE``, ``--matrix lr=0.1,0.01``."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from holdfast.cli.flags import Flags
    from holdfast.cli.submission.run_options import RunOptions

_MATRIX = "--matrix"
_MOST = 1_000_000
_LONGEST = 40


def array_section(options: RunOptions, flags: Flags, stdin: TextIO) -> dict[str, Any] | None:
    """Build ``array`` of a manifest; ``None`` if no flag asks for one.

    Args:
        options: The flags.
        flags: Collects problems.
        stdin: Standard input, for ``--each -``.
    """
    indices, percent, most = (options.array or "").partition("%")
    section: dict[str, Any] = {}
    if options.array is not None:
        section["indices"] = indices
    if options.each is not None:
        section["lines"] = _lines(options.each, flags, stdin)
    if options.matrix:
        section["matrix"] = _values(options.matrix, flags)
    if percent and options.max_running is not None:
        flags.wrong("--max-running", f"is already given by --array {options.array}")
    limits = {
        "maxRunning": flags.integer("--array" if percent else "--max-running", most or options.max_running, low=1),
        "maxFailures": flags.integer("--max-failures", options.max_failures, high=_MOST),
        "success": _success(options.success, flags),
    }
    limits_given = {name: value for name, value in limits.items() if value is not None}
    if section:
        return {**section, **limits_given}
    for name in limits_given:
        flags.wrong(_FLAGS[name], "needs an array", hint="add --array 0-9, --each FILE or --matrix NAME=VALUES")
    return None


_FLAGS = {"maxRunning": "--max-running", "maxFailures": "--max-failures", "success": "--success"}


def spread_matrix(words: Sequence[str]) -> list[str]:
    """Let ``--matrix`` take several words: ``--matrix lr=1,2 seed=1..5`` is one ``--matrix`` for each."""
    spread: list[str] = []
    taking = False
    for place, word in enumerate(words):
        if word == "--":
            return [*spread, *words[place:]]
        taking = taking and not word.startswith("-") and "=" in word
        if taking and spread[-1] != _MATRIX:
            spread.append(_MATRIX)
        taking = taking or word == _MATRIX
        spread.append(word)
    return spread


def unused_name(program: str) -> str:
    """Name an array after its program, with random letters, because the name of an array is used only once."""
    from holdfast.dialects.native.job import name_from_command

    return f"{name_from_command((program,))[:_LONGEST]}-{secrets.token_hex(2)}"


def _lines(file: str, flags: Flags, stdin: TextIO) -> list[str]:
    """Read the lines that are not blank, unchanged; a line ends at LF or CR LF."""
    try:
        text = (stdin.buffer.read() if file == "-" else Path(file).read_bytes()).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        flags.wrong("--each", f"{file} cannot be read: {getattr(error, 'strerror', None) or error}")
        return []
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    return [line for line in lines if line.strip(" \t")]


def _values(words: Sequence[str], flags: Flags) -> dict[str, list[str]]:
    values_of: dict[str, list[str]] = {}
    for word in (piece for text in words for piece in text.split()):
        name, equals, values = word.partition("=")
        if not name or not equals:
            flags.wrong(_MATRIX, f"{word!r} is not NAME=VALUE,...", hint="such as lr=0.1,0.01 or seed=1..5")
        elif name in values_of:
            flags.wrong(_MATRIX, f"{name!r} is given twice", hint="separate its values by commas")
        else:
            values_of[name] = values.split(",")
    return values_of


def _success(text: str | None, flags: Flags) -> str | int | None:
    if text is None or text in {"all", "any"}:
        return text
    if text.isascii() and text.isdecimal():
        return int(text)
    flags.wrong("--success", f"{text!r} is unknown", allowed=("all", "any", "a number of tasks"))
    return None
