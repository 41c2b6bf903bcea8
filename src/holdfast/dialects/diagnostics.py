"""Finds every problem in a text that cannot be parsed as a whole, by checking each of its documents separately."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from holdfast.dialects.documents import DEEPEST, LARGEST_SECOND_LOOK, LARGEST_TEXT, Document, read_documents
from holdfast.dialects.manifests import read_one
from holdfast.dialects.yaml_text import read_yaml
from holdfast.domain.record import evolve
from holdfast.errors import InvalidManifest, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_PROBLEMS = 100
"""The most problems reported for an unreadable text."""
_NEXT_YAML = re.compile(r"^---(?=\s)", re.MULTILINE)


def all_problems(text: str, error: InvalidManifest) -> list[Problem]:
    """List the problems of a text: its syntax errors, and those of the fields that can be read.

    Args:
        text: A text that could not be read.
        error: Why; reported as it is if the text is one document, or its documents cannot be told apart.
    """
    if len(text) > LARGEST_TEXT:
        return list(error.problems)
    pieces = list(_pieces(text))
    if pieces == [(1, text)]:
        return [*error.problems, *_problems_of_fields(_despite_doubled_keys(text), 1)]
    all_found = [problem for line, piece in pieces for problem in _problems_of_piece(piece, line)]
    return all_found[:MOST_PROBLEMS] or list(error.problems)


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Split a text into its documents, each with its first line."""
    if text.lstrip("\ufeff \t\r\n")[:1] == "{":
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        alone = sum(_is_object(line) for _, line in lines)
        yield from lines if 2 * alone >= len(lines) else [(1, text)]
        return
    starts = [0, *(separator.start() for separator in _NEXT_YAML.finditer(text) if separator.start() > 0)]
    line = 1
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        yield line, text[start:end]
        line += text.count("\n", start, end)


def _is_object(line: str) -> bool:
    """Whether a line is a JSON object by itself; an element of a list ends with a comma and is not."""
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _problems_of_piece(piece: str, line: int) -> list[Problem]:
    try:
        return _problems_of_fields(read_documents(piece), line)
    except InvalidManifest as error:
        unread = [_moved(problem, line) for problem in error.problems]
        return unread + _problems_of_fields(_despite_doubled_keys(piece), line)


def _despite_doubled_keys(text: str) -> list[Document]:
    """Read a text whose only errors are duplicate keys."""
    if len(text) > LARGEST_SECOND_LOOK:
        return []
    roots, problems = read_yaml(text, deepest=DEEPEST, doubled=[])
    return [] if problems else [Document(root.value, root.lines) for root in roots if isinstance(root.value, dict)]


def _problems_of_fields(documents: Iterable[Document], line: int) -> list[Problem]:
    judged = (document for document in documents if "items" not in document.value)
    return [_moved(problem, line) for document in judged for problem in read_one(document).problems]


def _moved(problem: Problem, line: int) -> Problem:
    """Count lines from the beginning of the text instead of the document."""
    return problem if problem.line is None else evolve(problem, line=problem.line + line - 1)
