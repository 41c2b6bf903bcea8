"""Writes the command line's reference from the commands themselves."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import fields
from typing import TYPE_CHECKING, Any, get_type_hints

from holdfast.cli import exit_codes
from holdfast.cli.commands import commands
from holdfast.cli.nouns import NOUNS
from tools.docs.source import definitions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.cli.command import Command


SELECTION = ("`--label`", "`--queue`", "`--group`", "`--state`", "`--cause`", "`--since`", "`--all`")
"""The options by which a command that acts on many jobs chooses them."""


def reference() -> str:
    """Write every command, by section, with its help and options; shared options only by their names."""
    return "\n\n".join(_sections())


def shared_options() -> str:
    """List the options that mean the same for several commands; those that choose jobs first."""
    options = sorted(_shared())
    selecting = [option for option in options if _name(option[0]) in SELECTION]
    others = [option for option in options if option not in selecting]
    lists = ["\n".join(f"- {spelling}: {meaning}" for spelling, meaning in part) for part in (selecting, others)]
    return "**Selection** of jobs:\n\n{}\n\nOthers:\n\n{}".format(*lists)


def options(command: Command[Any]) -> list[tuple[str, str]]:
    """Return how each option of a command is written, and what it means."""
    return list(_options(command))


def _name(spelling: str) -> str:
    """Return an option's long name alone."""
    return f"`{re.split('[ ,`]', spelling)[1]}`"


def _shared() -> set[tuple[str, str]]:
    counts = Counter(option for command in commands() for option in _options(command) if option[0].startswith("`-"))
    meanings: dict[str, str] = {}
    for (spelling, meaning), count in counts.most_common():
        if count > 1:
            meanings.setdefault(spelling, meaning)
    return set(meanings.items())


def _sections() -> Iterator[str]:
    shared = _shared()
    for section in dict.fromkeys(command.section for command in commands()):
        yield f"## {section}"
        for command in commands():
            if command.section == section:
                yield _command(command, shared)


def _command(command: Command[Any], shared: set[tuple[str, str]]) -> str:
    parts = [f"### holdfast {command.name}", command.help]
    own = [f"- {spelling}: {meaning}" for spelling, meaning in _options(command) if (spelling, meaning) not in shared]
    if also := [spelling for spelling, meaning in _options(command) if (spelling, meaning) in shared]:
        own.append(f"- [Shared](#shared-options): {', '.join(_names(also))}")
    if own:
        parts.append("\n".join(own))
    return "\n\n".join(parts)


def _names(spellings: list[str]) -> list[str]:
    """Return the options' long names; the whole selection as one word."""
    names = [_name(spelling) for spelling in spellings]
    if not set(SELECTION) <= set(names):
        return names
    return ["selection", *(name for name in names if name not in SELECTION)]


def _options(command: Command[Any]) -> Iterator[tuple[str, str]]:
    hints = get_type_hints(command.options, include_extras=True)
    for field in fields(command.options):
        info = hints[field.name].__metadata__[0]
        is_flag = hints[field.name].__origin__ is bool
        yield _spelling(field.name, info, is_flag=is_flag), info.help or ""


def _spelling(name: str, info: Any, *, is_flag: bool) -> str:  # noqa: ANN401 - Typer's description of an option
    if type(info).__name__ == "ArgumentInfo":
        return f"`{info.metavar or name.upper()}`"
    # Typer keeps the first spelling of an annotated option where a default would be.
    spelt = [info.default, *(info.param_decls or ())]
    names = [part for part in spelt if isinstance(part, str) and part.startswith("-")]
    names = names or [f"--{name.replace('_', '-')}"]
    value = "" if is_flag else f" {info.metavar or 'TEXT'}"
    return f"`{', '.join(names)}{value}`"


def exit_code_table() -> str:
    """List what every exit code means."""
    return definitions((f"`{code}`", meaning) for code, meaning in sorted(exit_codes.MEANINGS.items()))


def nouns() -> str:
    """List the kinds of things commands can name."""
    return ", ".join(f"`{noun}`" for noun in NOUNS)
