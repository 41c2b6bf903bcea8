"""Splits text into documents: YAML (many), JSON, JSON lines.

Strict, because a silently dropped or duplicated field can mean "never retry": duplicate keys, documents that are not
mappings, unknown tags and excessive nesting are reported with line numbers.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, NoReturn

from holdfast.dialects.scalars import read_json_number
from holdfast.dialects.yaml_text import read_yaml
from holdfast.domain.record import Struct, evolve, field
from holdfast.errors import InvalidManifest, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

LARGEST_TEXT = 16 * 1024 * 1024
DEEPEST = 64
LARGEST_SECOND_LOOK = 1024 * 1024
"""Characters up to which invalid JSON is read again as YAML for better errors."""
_PLACEHOLDER = re.compile(r"^([^#\n]*?[:-][ \t]+)(\{\{[^{}\n']*\}\})([ \t]*(?:#[^\n]*)?)$", re.MULTILINE)
"""A plain value that is one placeholder: ``key: {{name}}``."""
_NOT_SPACE = re.compile(r"[^ \t\n\r]")


class Document(Struct, frozen=True):
    """One document of an input."""

    value: Mapping[str, Any]
    lines: Mapping[str, int] = field(default_factory=dict)
    """1-based line by field path; ``""`` is the document itself."""
    index: int = 0
    """Its position in the input, from 0."""
    warnings: tuple[Problem, ...] = ()
    """Warnings of a lenient reading; those about the whole input are with its first document."""

    def line_of(self, path: str) -> int | None:
        """Return the line of a field, or of its nearest known parent."""
        while path and path not in self.lines:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return self.lines.get(path)


class _DuplicateKey(ValueError):
    """A JSON object named a key twice."""


def read_documents(
    text: str, *, name: str = "input", largest: int = LARGEST_TEXT, lenient: bool = False
) -> list[Document]:
    """Read every document of a text; empty YAML documents are left out.

    Args:
        text: YAML with any number of documents, one JSON object, or JSON objects one after another.
        name: The input's name in messages.
        largest: The most characters accepted.
        lenient: Accept duplicate keys, of which the last one counts, and unfilled template placeholders; both become
            warnings of the first document.

    Raises:
        InvalidManifest: With every problem found.
    """
    if len(text) > largest:
        _refuse(name, Problem("", f"is {len(text)} characters long; at most {largest} are read", hint="split the file"))
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        _refuse(name, Problem("", "is not valid Unicode text", hint="save it as UTF-8", line=line))
    text = text.removeprefix("\ufeff")
    if text.lstrip()[:1] == "{" and not text.lstrip().startswith("{{"):
        documents = _read_json(text, name)
    else:
        documents = _read_leniently(text, name) if lenient else _read_yaml(text, name)
    return _without_lists(documents, name) if any(map(_is_list, documents)) else documents


def _is_list(document: Document) -> bool:
    return document.value.get("kind") == "List" and document.value.get("apiVersion") == "v1"


def _without_lists(documents: Iterable[Document], name: str) -> list[Document]:
    """Replace Kubernetes lists by their items."""
    flat: list[Document] = []
    for document in documents:
        for item in _items(document, name) if _is_list(document) else (document,):
            flat.append(evolve(item, index=len(flat)))
    return flat


def _items(document: Document, name: str) -> Iterator[Document]:
    items = document.value.get("items")
    if not isinstance(items, list):
        _refuse(name, Problem("items", "must be a list of manifests", line=document.line_of("items")))
    for place, item in enumerate(items):
        path = f"items[{place}]"
        if not isinstance(item, dict):
            _refuse(name, evolve(_not_a_mapping(item, document.line_of(path)), path=path))
        inner = {at.removeprefix(path).lstrip("."): line for at, line in document.lines.items() if at.startswith(path)}
        yield Document(item, inner, warnings=document.warnings if place == 0 else ())


def _refuse(name: str, *problems: Problem) -> NoReturn:
    msg = f"{name} cannot be read"
    raise InvalidManifest(msg, problems=problems)


def _read_leniently(text: str, name: str) -> list[Document]:
    warnings = _placeholders(text)
    if warnings:
        text = _PLACEHOLDER.sub(r"\1'\2'\3", text)
    documents = _read_yaml(text, name, warnings)
    if documents:
        documents[0] = evolve(documents[0], warnings=tuple(warnings))
    return documents


def _placeholders(text: str, prefix: str = "") -> list[Problem]:
    """Find unquoted template placeholders that were not filled in."""
    placeholders = []
    for match in _PLACEHOLDER.finditer(text):
        message = f"{prefix}'{match[2]}' is an unfilled template placeholder"
        line = text.count("\n", 0, match.start(2)) + 1
        placeholders.append(Problem("", message, hint="fill it in, or quote it to mean the text itself", line=line))
    return placeholders


def _read_yaml(text: str, name: str, doubled: list[Problem] | None = None) -> list[Document]:
    roots, problems = read_yaml(text, deepest=DEEPEST, doubled=doubled)
    if problems and (placeholders := _placeholders(text, "could not parse: ")):
        problems = placeholders
    documents: list[Document] = []
    for root in roots:
        if isinstance(root.value, dict):
            documents.append(Document(root.value, root.lines, len(documents)))
        elif root.value is not None:
            problems.append(_not_a_mapping(root.value, root.lines.get("")))
    if problems:
        _refuse(name, *problems)
    return documents


def _not_a_mapping(value: object, line: int | None) -> Problem:
    kind = "a list" if isinstance(value, list) else f"{value!r:.40}"
    return Problem(
        "",
        f"a document must be a mapping of fields, not {kind}",
        hint="separate several documents with a line of ---, or write one JSON object a line",
        line=line,
    )


def _read_json(text: str, name: str) -> list[Document]:
    """Read JSON objects one after another."""
    documents: list[Document] = []
    try:
        for value, line in _json_values(text):
            documents.append(Document(value, {"": line}, len(documents)))
    except RecursionError as error:
        _refuse(name, _json_problem(error, text))
    except ValueError as error:
        return _read_json_as_yaml(text, name, error)
    if len(documents) == 1 and "\n" in text.strip() and len(text) <= LARGEST_SECOND_LOOK:
        return [Document(documents[0].value, _lines_by_yaml(text) or documents[0].lines)]
    return documents


def _read_json_as_yaml(text: str, name: str, error: ValueError) -> list[Document]:
    """Try YAML for text that begins like JSON but is not; if both fail, report the format that the text resembles."""
    if len(text) <= LARGEST_SECOND_LOOK:
        try:
            return _read_yaml(text, name)
        except InvalidManifest:
            looks_like_json = text.lstrip()[1:].lstrip()[:1] in {'"', "}"}
            if not looks_like_json or isinstance(error, _DuplicateKey):
                raise
    _refuse(name, _json_problem(error, text))


def _lines_by_yaml(text: str) -> Mapping[str, int]:
    """Find the lines of a JSON document's fields; YAML's reader knows them, JSON's does not."""
    roots, problems = read_yaml(text, deepest=DEEPEST)
    return {} if problems or len(roots) != 1 else roots[0].lines


def _json_values(text: str) -> Iterator[tuple[dict[str, Any], int]]:
    position, line = 0, 1
    while True:
        match = _NOT_SPACE.search(text, position)
        if match is None:
            return
        start = match.start()
        line += text.count("\n", position, start)
        value, position = _DECODER.raw_decode(text, start)
        if not isinstance(value, dict):
            msg = "a document must be a mapping of fields"
            raise json.JSONDecodeError(msg, text, start)
        _check_depth(value, text, start, position)
        yield value, line
        line += text.count("\n", start, position)


def _check_depth(value: object, text: str, start: int, end: int) -> None:
    if text.count("{", start, end) + text.count("[", start, end) > DEEPEST and _depth(value) > DEEPEST:
        msg = f"is nested more than {DEEPEST} levels deep"
        raise json.JSONDecodeError(msg, text, start)
    if "\\u" in text[start:end]:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            msg = "contains half of a surrogate pair, which is not text"
            raise json.JSONDecodeError(msg, text, start) from None


def _depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0


def _json_problem(error: Exception, text: str) -> Problem:
    if isinstance(error, json.JSONDecodeError):
        return Problem("", f"not JSON: {error.msg}", line=error.lineno)
    if isinstance(error, RecursionError):
        return Problem("", f"is nested more than {DEEPEST} levels deep")
    if isinstance(error, _DuplicateKey):
        return Problem("", f"{error}", hint="keep one of them", line=_line_of_duplicate(text))
    return Problem("", f"not JSON: {error}")


def _line_of_duplicate(text: str) -> int | None:
    """Find the line of the first duplicate key, which the JSON reader reports only for one object per line."""
    for number, line in enumerate(text.split("\n"), 1):
        try:
            json.loads(line, object_pairs_hook=_unique)
        except _DuplicateKey:
            return number
        except (ValueError, RecursionError):
            continue
    return None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        msg = f"duplicate key {twice!r}"
        raise _DuplicateKey(msg)
    return mapping


def _no_constant(constant: str) -> object:
    msg = f"{constant} is not JSON"
    raise ValueError(msg)


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=read_json_number)
