"""Finds everything wrong with a text that cannot be read as a whole, so that all is told at once.

Decides where one document of such a text ends and the next begins; leaves reading each to ``documents`` and what its
fields may be to ``manifests``.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.dialects.documents import DEEPEST, LARGEST_SECOND_LOOK, LARGEST_TEXT, Document, read_documents
from holdfast.dialects.manifests import try_manifest
from holdfast.dialects.yaml_text import read_yaml
from holdfast.errors import InvalidManifest, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_PROBLEMS = 100
"""Told of a text that cannot be read; more help nobody."""
_NEXT_YAML = re.compile(r"^---(?=\s)", re.MULTILINE)


def all_problems(text: str, error: InvalidManifest) -> list[Problem]:
    """List what is wrong with a text: what cannot be read of it, and the fields of the rest.

    Args:
        text: A text that could not be read.
        error: Why; told as it stands when the text is one document or nobody can say where its documents end.
    """
    if len(text) > LARGEST_TEXT:
        return list(error.problems)
    pieces = list(_pieces(text))
    if pieces == [(1, text)]:
        return [*error.problems, *_problems_of_fields(_despite_doubled_keys(text), 1)]
    found = [problem for line, piece in pieces for problem in _problems_of_piece(piece, line)]
    return found[:MOST_PROBLEMS] or list(error.problems)


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Cut a text into its documents, each with its first line."""
    if text.lstrip("\ufeff \t\r\n")[:1] == "{":
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        alone = sum(_is_object(line) for _, line in lines)
        yield from lines if 2 * alone >= len(lines) else [(1, text)]
        return
    starts = [0, *(found.start() for found in _NEXT_YAML.finditer(text) if found.start() > 0)]
    line = 1
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        yield line, text[start:end]
        line += text.count("\n", start, end)


def _is_object(line: str) -> bool:
    """Tell whether a line could be one of JSON lines; a list's element ends with a comma and could not."""
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
    """Read what only doubled keys keep from being read."""
    if len(text) > LARGEST_SECOND_LOOK:
        return []
    roots, problems = read_yaml(text, deepest=DEEPEST, doubled=[])
    return [] if problems else [Document(root.value, root.lines) for root in roots if isinstance(root.value, dict)]


def _problems_of_fields(documents: Iterable[Document], line: int) -> list[Problem]:
    judged = (document for document in documents if "items" not in document.value)
    return [_moved(problem, line) for document in judged for problem in try_manifest(document)[1]]


def _moved(problem: Problem, line: int) -> Problem:
    """Count lines from the text's beginning instead of the piece's."""
    return problem if problem.line is None else replace(problem, line=problem.line + line - 1)
