"""A command: its options, the function that carries it out, and its Typer form.

Every file of ``commands`` has this form. A command's Typer form is built only when it is called, so that
``holdfast --help`` pays for none of them.
"""

from __future__ import annotations

import inspect
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand

from holdfast.cli.completion import complete_from
from holdfast.cli.targets import spread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.cli.context import Cli

OptionsT = TypeVar("OptionsT")
HELP_NAMES = {"help_option_names": ["-h", "--help"]}


@dataclass(frozen=True, slots=True)
class Command(Generic[OptionsT]):
    """One command: the class of its options and the function that carries it out."""

    name: str
    options: type[OptionsT]
    """A keyword-only dataclass; each field is an ``Annotated[..., typer.Option()]`` or ``typer.Argument()``."""
    run: Callable[[OptionsT, Cli], int]
    """Takes the options and the context, returns the exit code; its docstring is the command's help."""
    section: str
    """The heading under which the overview lists it."""
    trailing_command: bool = False
    """Whether the options end at the first positional argument, where another program's command line begins."""
    examples: tuple[str, ...] = ()
    rewrite: Callable[[Sequence[str]], list[str]] = list
    """Changes the words after the command's name before they are parsed."""

    @property
    def help(self) -> str:
        """The help text."""
        return inspect.cleandoc(self.run.__doc__ or "")

    @property
    def summary(self) -> str:
        """The first line of the help text."""
        return self.help.splitlines()[0]


def typer_command(command: Command[OptionsT], deliver: Callable[[Command[OptionsT], OptionsT], None]) -> TyperCommand:
    """Build a command's Typer form; parsed options go to ``deliver``."""

    def callback(**values: object) -> None:
        values_given = {name: value for name, value in spread(values, command.name).items() if value is not None}
        deliver(command, command.options(**values_given))

    hints = get_type_hints(command.options, include_extras=True)
    for field, hint in hints.items():
        for info in getattr(hint, "__metadata__", ()):
            info.autocompletion = complete_from(field)
    callback.__signature__ = _signature(command.options, hints)  # type: ignore[attr-defined]  # inspect reads it
    callback.__annotations__ = hints
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    settings = {**HELP_NAMES, "allow_interspersed_args": not command.trailing_command}
    epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in command.examples) if command.examples else None
    app.command(command.name, help=command.help, epilog=epilog, context_settings=settings)(callback)
    built = typer.main.get_command(app)
    if not isinstance(built, TyperCommand):
        msg = f"Typer built {type(built).__name__} for one command"
        raise TypeError(msg)
    return built


def _signature(options: type[Any], hints: dict[str, Any]) -> inspect.Signature:
    """Build the signature that Typer reads; defaults made by a factory are left to the dataclass."""
    parameters = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default(field.default, field.default_factory),
            annotation=hints[field.name],
        )
        for field in fields(options)
    ]
    return inspect.Signature(parameters)


def _default(value: object, factory: object) -> object:
    if value is not MISSING:
        return value
    return inspect.Parameter.empty if factory is MISSING else None
