"""Draws mutants: of all lines, or of those that changed lately and of the places that are always drawn from."""

from __future__ import annotations

import ast
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING

from tools.mutate.places import is_in
from tools.mutate.reading import mutants_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tools.mutate.mutants import Mutant
    from tools.mutate.project import Project


def draw_all(project: Project, seed: str, words: Sequence[str] = ()) -> Iterator[Mutant]:
    """Draw mutants of every module; with words, only those whose file or function contains one of them."""
    return _drawn(project, _mutants(project, project.modules(), words), seed)


def draw_changed(
    project: Project, lines: Mapping[str, frozenset[int]], seed: str, words: Sequence[str] = ()
) -> Iterator[Mutant]:
    """Draw mutants of statements with a changed line, and one of the project's places after each two of them."""
    files = set(project.modules()) & lines.keys()
    changed = [
        mutant
        for mutant in _mutants(project, sorted(files), words)
        if not lines[mutant.place.file].isdisjoint(range(mutant.place.first, mutant.place.last + 1))
    ]
    return mixed(_drawn(project, changed, seed), draw_places(project, seed, words))


def draw_places(project: Project, seed: str, words: Sequence[str] = ()) -> Iterator[Mutant]:
    """Draw mutants of the places that are always drawn from."""
    files = sorted({place.partition(":")[0] for place in project.places})
    mutants = [mutant for mutant in _mutants(project, files, words) if is_in(mutant, project.places)]
    return _drawn(project, mutants, seed)


def mixed(many: Iterator[Mutant], few: Iterator[Mutant]) -> Iterator[Mutant]:
    """Yield one of a few after each two of many, and what is left of either; none of them twice."""
    yielded: set[str] = set()
    while batch := [*islice(many, 2), *islice(few, 1)]:
        fresh = [mutant for mutant in batch if mutant.name not in yielded]
        yielded.update(mutant.name for mutant in fresh)
        yield from fresh


def _mutants(project: Project, files: Iterable[str], words: Sequence[str]) -> list[Mutant]:
    found = (mutant for file in files for mutant in mutants_of(file, (project.root / file).read_bytes()))
    return [it for it in found if not words or any(word in f"{it.place.file} {it.place.where}" for word in words)]


def _drawn(project: Project, mutants: Iterable[Mutant], seed: str) -> Iterator[Mutant]:
    """Yield mutants in the order of their lots, without those that make no difference to Python.

    The lot of a mutant depends on its own text alone, so an edit elsewhere leaves the order as it is.
    """
    sources: dict[str, bytes] = {}
    trees: dict[str, str] = {}
    for mutant in sorted(mutants, key=lambda it: sha256(f"{seed} {it.name}".encode()).digest()):
        file = mutant.place.file
        if file not in sources:
            sources[file] = (project.root / file).read_bytes()
            trees[file] = _tree(sources[file])
        if _tree(mutant.applied(sources[file])) not in {"", trees[file]}:
            yield mutant


def _tree(source: bytes) -> str:
    """Return what Python reads in a text; nothing where it is none."""
    try:
        return ast.dump(ast.parse(source))
    except SyntaxError:
        return ""
