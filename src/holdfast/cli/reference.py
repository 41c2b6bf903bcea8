"""The command reference as data, made from the commands themselves; leaves its looks to the documentation."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

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
