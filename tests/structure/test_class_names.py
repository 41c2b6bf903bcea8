"""One name, one thing: no two classes of Holdfast have the same name."""

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


def places_of_names() -> dict[str, list[str]]:
    """Return where each name of a class is defined."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted(SOURCES.rglob("*.py")):
        if GENERATED not in path.parts:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef):
                    places[node.name].append(f"{path.relative_to(SOURCES)}:{node.lineno}")
    return places


def test_no_two_classes_have_one_name_but_for_those_of_the_table() -> None:
    shared = {name: places for name, places in places_of_names().items() if len(places) > 1}
    assert {name: len(places) for name, places in shared.items()} == dict.fromkeys(TWICE, 2), shared
