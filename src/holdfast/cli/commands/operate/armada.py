"""``holdfast armada``: the commands of ``armadactl``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.armada.main import run
from holdfast.cli.command import Command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.context import Cli

_HELP = ("-h", "--help")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmadaOptions:
    """What ``armada`` can be told."""

    words: Annotated[
        list[str],
        typer.Argument(metavar="[WORD]...", help="What armadactl would be told, such as: get queues."),
    ] = field(default_factory=list)


def armada(options: ArmadaOptions, cli: Cli) -> int:
    """Do what armadactl does, in its words, for users of Armada.

    Commands come in by the door of a server (`holdfast up --door armada`): the one of --armadaUrl, of a context in
    ~/.armadactl.yaml, of HOLDFAST_ARMADA_LISTEN, or of the server that runs here. Words and flags, what is printed and
    exit codes are those of armadactl; `holdfast armada get --help` lists what can follow a word. The same program is
    installed as `armadactl`.
    """
    return run(options.words, cli, "holdfast armada")


def _as_they_are(words: Sequence[str]) -> list[str]:
    """Leave the words to the commands of Armada, but for the question what this is."""
    return list(words) if words and words[0] in _HELP else ["--", *words]


ARMADA = Command(
    "armada",
    ArmadaOptions,
    armada,
    "Operate",
    examples=(
        "holdfast armada create queue ml --priority-factor 2 --retry-policies infra,training",
        "holdfast armada submit jobs.yaml",
        "holdfast armada watch ml sweep-1 --exit-if-inactive",
    ),
    rewrite=_as_they_are,
)
