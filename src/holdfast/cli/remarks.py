"""Prints warnings: one line each, with the file and line it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.context import Cli
    from holdfast.cli.manifests import Manifest
    from holdfast.wire.problems import ProblemEntry


def tell_warnings(warnings: Sequence[ProblemEntry], source: Manifest | None, cli: Cli) -> None:
    """Say what the server warned of.

    Args:
        warnings: As it answered them.
        source: The document they are about, when it came from a file.
        cli: Where to tell it.
    """
    from holdfast.wire.problems import read_problem

    for entry in warnings:
        problem = read_problem(entry)
        cli.say(f"warning: {problem if source is None else source.locate(problem)}")
