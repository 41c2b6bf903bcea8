"""Draws mutants: the same ones for a seed, and nearly the same after the code was edited."""

from __future__ import annotations

import ast
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from tools.mutate.drawn.reading import mutants_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.mutate.drawn.mutants import Mutant
    from tools.mutate.drawn.project import Project


class Draw(NamedTuple):
    """Some of all there are."""

    mutants: Sequence[Mutant]
    of: int


def draw(project: Project, number: int, seed: int, words: Sequence[str] = ()) -> Draw:
    """Draw so many mutants, at most all there are.

    Each has a lot of its own for a seed, and the lowest are drawn: what is edited, added or deleted elsewhere leaves
    them where they were.

    Args:
        project: Whose modules.
        number: How many.
        seed: Another one, other lots.
        words: Only those whose file or function has one of these in it.
    """
    sources = {file: (project.root / file).read_bytes() for file in project.modules()}
    found = [mutant for file, source in sources.items() for mutant in mutants_of(file, source)]
    if words:
        found = [each for each in found if any(word in f"{each.place.file} {each.place.where}" for word in words)]
    found.sort(key=lambda mutant: sha256(f"{seed} {mutant.name}".encode()).digest())
    drawn: list[Mutant] = []
    trees: dict[str, str] = {}
    for mutant in found:
        if len(drawn) == number:
            break
        file = mutant.place.file
        if file not in trees:
            trees[file] = _tree(sources[file])
        if _tree(mutant.applied(sources[file])) not in {"", trees[file]}:
            drawn.append(mutant)
    return Draw(drawn, len(found))


def _tree(source: bytes) -> str:
    """Return what Python reads in a text; nothing where it is none."""
    try:
        return ast.dump(ast.parse(source))
    except SyntaxError:
        return ""
