"""Names are nouns, and one name is one thing: no pronouns, and no two classes of Holdfast with one name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "src" / "holdfast"
GENERATED = "_generated"

TWICE = {
    "Array": "A noun of the domain, and its handle in Python programs",
    "Client": "Of the REST API, and what Python programs submit by, which holds one",
    "Entrypoint": "Fluster's own name: pickles hold it, and what reads them in a job imports nothing of Holdfast",
    "Executor": "What drives an engine, and one of `concurrent.futures`, whose name that is",
    "Job": "A noun of the domain, and its handle in Python programs",
    "JobCancelled": "An event, and the exception that tells it to a Python program",
    "JobFailed": "An event, and the exception that tells it to a Python program",
    "Run": "A noun of the domain, and the same from inside the program that it runs",
}
"""Names that two classes may have, each with the reason."""
PRONOUNS = {
    *("asked", "by", "each", "found", "given", "known", "made", "meant", "one", "said", "sent", "taken", "there"),
    *("told", "wanted", "who", "whose"),
}
"""Words that say nothing of the thing that a variable holds."""


def places_of_names() -> dict[str, list[str]]:
    """Return where each name of a class is defined."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted(SOURCES.rglob("*.py")):
        if GENERATED not in path.parts:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef):
                    places[node.name].append(f"{path.relative_to(SOURCES)}:{node.lineno}")
    return places


def pronouns_of(path: Path) -> list[str]:
    """Return where a module names a variable, a parameter or a class by a pronoun; fields of classes may be words."""
    tree = ast.parse(path.read_text())
    fields = {
        id(line.target)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for line in node.body
        if isinstance(line, ast.AnnAssign)
    }
    return [
        f"{path.relative_to(SOURCES)}:{line}: {name}"
        for node in ast.walk(tree)
        if id(node) not in fields
        for line, name in _defined(node)
        if name.lower() in PRONOUNS
    ]


def _defined(node: ast.AST) -> list[tuple[int, str]]:
    match node:
        case (
            ast.Name(id=name, ctx=ast.Store(), lineno=line)
            | ast.arg(arg=name, lineno=line)
            | ast.ClassDef(name=name, lineno=line)
        ):
            return [(line, name)]
    return []


def test_variables_parameters_and_classes_are_named_after_what_they_hold() -> None:
    paths = [path for path in sorted(SOURCES.rglob("*.py")) if GENERATED not in path.parts]
    assert [place for path in paths for place in pronouns_of(path)] == []


def test_no_two_classes_have_one_name_but_for_those_of_the_table() -> None:
    shared = {name: places for name, places in places_of_names().items() if len(places) > 1}
    assert {name: len(places) for name, places in shared.items()} == dict.fromkeys(TWICE, 2), shared
