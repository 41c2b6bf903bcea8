"""The command reference as data and as Markdown, made from the commands themselves; the documentation prints it."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from holdfast.cli import exit_codes
from holdfast.cli.commands import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.cli.command import Command


@dataclass(frozen=True, slots=True)
class OptionReference:
    """One option or argument."""

    names: tuple[str, ...]
    """``("--output", "-o")``; an argument has its metavar, such as ``JOB``."""
    value: str
    """What it takes, such as ``DURATION``; empty for a switch and for an argument."""
    help: str
    default: str
    """Empty when there is none."""
    required: bool
    repeatable: bool


@dataclass(frozen=True, slots=True)
class CommandReference:
    """One command."""

    name: str
    section: str
    summary: str
    help: str
    usage: str
    arguments: tuple[OptionReference, ...]
    options: tuple[OptionReference, ...]
    examples: tuple[str, ...]


def commands() -> list[CommandReference]:
    """Describe every command, in the order of the overview."""
    return [_describe(command) for command in COMMANDS]


def _describe(command: Command[Any]) -> CommandReference:
    described = list(_parameters(command.options))
    arguments = tuple(reference for kind, reference in described if kind == "argument")
    options = tuple(reference for kind, reference in described if kind == "option")
    words = ["holdfast", command.name, *(["[OPTIONS]"] if options else []), *(one.names[0] for one in arguments)]
    return CommandReference(
        command.name,
        command.section,
        command.summary,
        command.help,
        " ".join(words),
        arguments,
        options,
        command.examples,
    )


def _parameters(options: Any) -> Iterator[tuple[str, OptionReference]]:  # noqa: ANN401 - any dataclass
    hints = get_type_hints(options, include_extras=True)
    for field in fields(options):
        annotation, info = get_args(hints[field.name])
        kind = "argument" if type(info).__name__ == "ArgumentInfo" else "option"
        flag = f"--{field.name.replace('_', '-')}"
        spelt = [name for name in (info.default, *(info.param_decls or ())) if isinstance(name, str)]
        yield (
            kind,
            OptionReference(
                names=(info.metavar or field.name.upper(),) if kind == "argument" else tuple(spelt or [flag]),
                value="" if kind == "argument" or "bool" in str(annotation) else info.metavar or "TEXT",
                help=info.help or "",
                default=_default(field.default),
                required=field.default is MISSING and field.default_factory is MISSING,
                repeatable="list" in str(annotation),
            ),
        )


def _default(value: object) -> str:
    return "" if value is MISSING or value in (None, False, "") else str(value)


def markdown() -> str:
    """Write the whole reference: every command by section, then the exit codes."""
    lines: list[str] = []
    section = ""
    for command in commands():
        if command.section != section:
            section = command.section
            lines += [f"## {section}", ""]
        lines += _command_lines(command)
    lines += ["## Exit codes", "", "| Code | Meaning |", "| --- | --- |"]
    lines += [f"| {code} | {meaning} |" for code, meaning in exit_codes.MEANINGS.items()]
    return "\n".join([*lines, "| other | `run`: the job's own exit code; 128 + N when signal N ended it. |", ""])


def _command_lines(command: CommandReference) -> list[str]:
    lines = [f"### holdfast {command.name}", "", command.help, "", "```sh", command.usage, "```", ""]
    for heading, rows in (("Argument", command.arguments), ("Option", command.options)):
        if rows:
            lines += [f"| {heading} | Meaning |", "| --- | --- |", *map(_row, rows), ""]
    if command.examples:
        lines += ["```sh", *command.examples, "```", ""]
    return lines


def _row(option: OptionReference) -> str:
    names = ", ".join(f"`{name} {option.value}`".replace(" `", "`") for name in option.names)
    default = f" Default: `{option.default}`." if option.default else ""
    cells = (names, f"{option.help}{default}")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
