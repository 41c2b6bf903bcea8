"""Manual pages, written from the commands themselves in the macros of man(7).

Generators such as click-man read Click's own classes, which Typer no longer uses.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, get_type_hints

from holdfast import __version__
from holdfast.cli import exit_codes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.cli.command import Command

ENVIRONMENT = {
    "HOLDFAST_URL": "The address of the server; default the server that runs on the data directory.",
    "HOLDFAST_TOKEN": "The token for the server.",
    "HOLDFAST_TOKEN_FILE": "A file that contains the token.",
    "HOLDFAST_SOCKET": "The Unix socket of the server, instead of an address; it needs no token.",
    "HOLDFAST_CONTEXT": "The name of a server that holdfast login or holdfast context add has saved.",
    "HOLDFAST_DATA": "The data directory.",
    "NO_COLOR": "If it is set, output has no colours.",
}
_SPECIAL = str.maketrans({"\\": "\\e", "-": "\\-"})


def page_of(command: Command[Any]) -> str:
    """Render the page of one command, such as holdfast-run(1)."""
    words = list(_options(command))
    first, *rest = command.help.split("\n\n")
    spelt = " ".join(["[options]"] + [word for word, _, is_option in words if not is_option])
    lines = [*_head(f"holdfast-{command.name}", first.rstrip("."))]
    lines += [".SH SYNOPSIS", f".B holdfast {_text(command.name)}", _text(spelt)]
    lines += [".SH DESCRIPTION", *_paragraphs([first, *rest])]
    for title, options_only in (("ARGUMENTS", False), ("OPTIONS", True)):
        listed = [(word, meaning) for word, meaning, is_option in words if is_option is options_only]
        lines += [f".SH {title}", *_listed(listed)] if listed else []
    if command.examples:
        lines += [".SH EXAMPLES", ".nf", *map(_text, command.examples), ".fi"]
    return "\n".join([*lines, *_exit_codes(), *_see_also()]) + "\n"


def overview_page(commands: Sequence[Command[Any]], summary: str) -> str:
    """Render holdfast(1), which lists the others."""
    lines = [*_head("holdfast", summary.rstrip("."))]
    lines += [".SH SYNOPSIS", ".B holdfast", _text("COMMAND [options] ...")]
    for section in dict.fromkeys(command.section for command in commands):
        named = [(f"holdfast-{listed.name}(1)", listed.summary) for listed in commands if listed.section == section]
        lines += [f".SH {section.upper()}", *_listed(named)]
    lines += [".SH ENVIRONMENT", *_listed(list(ENVIRONMENT.items()))]
    return "\n".join([*lines, *_exit_codes(), *_see_also()]) + "\n"


def _head(name: str, summary: str) -> Iterator[str]:
    yield f'.TH {name.upper()} 1 "" "holdfast {__version__}" "Holdfast"'
    yield ".SH NAME"
    yield f"{_text(name)} \\- {_text(summary)}"


def _options(command: Command[Any]) -> Iterator[tuple[str, str, bool]]:
    """Yield each argument and option: its spelling, its help, and whether it is an option."""
    hints = get_type_hints(command.options, include_extras=True)
    for field in fields(command.options):
        hint = hints[field.name]
        info = hint.__metadata__[0]
        if type(info).__name__ == "ArgumentInfo":
            yield info.metavar or field.name.upper(), info.help or "", False
            continue
        # Typer keeps the first spelling of an annotated option where a default would be.
        spelt = [part for part in (info.default, *(info.param_decls or ())) if isinstance(part, str)]
        names = [part for part in spelt if part.startswith("-")] or [f"--{field.name.replace('_', '-')}"]
        value = "" if hint.__origin__ is bool else f" {info.metavar or 'TEXT'}"
        yield ", ".join(names) + value, info.help or "", True
    yield "-h, --help", "Show the help of this command.", True


def _exit_codes() -> Iterator[str]:
    yield ".SH EXIT STATUS"
    yield from _listed([(str(code), meaning) for code, meaning in sorted(exit_codes.MEANINGS.items())])


def _see_also() -> Iterator[str]:
    yield ".SH SEE ALSO"
    yield _text("holdfast(1); holdfast COMMAND --help prints the same text.")


def _listed(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    for word, meaning in pairs:
        yield ".TP"
        yield f"\\fB{_text(word)}\\fR"
        yield _text(meaning)


def _paragraphs(texts: Sequence[str]) -> Iterator[str]:
    for place, text in enumerate(texts):
        if place:
            yield ".PP"
        yield from (_text(line.strip()) for line in text.splitlines() if line.strip() != "\b")


def _text(line: str) -> str:
    """Escape a line so that roff takes nothing in it for an instruction."""
    written = line.translate(_SPECIAL)
    return f"\\&{written}" if written.startswith((".", "'")) else written
