"""Reads what the code says of itself: the strings under the members of classes, as tables."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from enum import StrEnum

_OURS = "holdfast."


def member_docs(cls: type) -> dict[str, str]:
    """Return the string under each member or field of a class and of its bases here, by name; empty without any."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith(_OURS):
            docs |= _own_docs(base)
    return docs


def _own_docs(cls: type) -> dict[str, str]:
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    if not isinstance(body, ast.ClassDef):
        return {}
    docs: dict[str, str] = {}
    last = ""
    for node in body.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            last = ast.unparse(target)
            docs[last] = ""
        elif last and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docs[last] = inspect.cleandoc(str(node.value.value))
            last = ""
        else:
            last = ""
    return docs


def markdown(text: str) -> str:
    """Turn a docstring's double back-quotes into Markdown's single ones, on one line."""
    return re.sub(r"``([^`]+)``", r"`\1`", " ".join(text.split()))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def definitions(rows: Iterable[tuple[object, object]]) -> str:
    """Write a Markdown list of terms with their meanings."""
    return "\n".join(f"- {term}: {meaning}" for term, meaning in rows)


def enum_list(enum: type[StrEnum]) -> str:
    """List an enumeration's values with the string under each."""
    docs = member_docs(enum)
    return definitions((f"`{member.value}`", markdown(docs[member.name])) for member in enum)
