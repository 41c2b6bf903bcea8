"""Reads the scopes of a token as people write them: ``verbs@kind``, for work also with a place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.access.grants import Right
from holdfast.domain.access.group import LONGEST
from holdfast.domain.access.people import Scope
from holdfast.domain.access.places import WorkScope
from holdfast.domain.rights import TABLE, WORK
from holdfast.domain.suggestion import closest
from holdfast.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_SCOPES = 32
LONGEST_QUEUE = 255
_ALL = "*"
_KINDS = sorted(TABLE)
_RIGHTS = sorted(right.value for right in Right)
_FORMS = ("queue=NAME", "group=GROUP", "group=GROUP/")
_LONGEST_SHOWN = 80


def read_scopes(texts: Sequence[str]) -> tuple[tuple[Scope, ...], list[Problem]]:
    """Read the scopes of a token; returns the valid ones and every problem.

    Each is ``submit,watch@job``, ``*@node`` or, for work in one place only, ``watch@job:queue=gpu``,
    ``*@array:group=sweeps/7`` or, with the groups below it, ``*@job:group=sweeps/``.
    """
    scopes: list[Scope] = []
    problems: list[Problem] = []
    if len(texts) > MOST_SCOPES:
        problems.append(Problem("scopes", f"has {len(texts)} entries; at most {MOST_SCOPES} are allowed"))
    for number, text in enumerate(texts[:MOST_SCOPES]):
        wrong, scope = _read(text)
        problems += [Problem(f"scopes[{number}]", *fault) for fault in wrong]
        scopes += [] if wrong else [scope]
    return tuple(scopes), problems


def _read(text: str) -> tuple[list[tuple[str, tuple[str, ...], str | None]], Scope]:
    verbs, at, what = text.partition("@")
    kind, colon, where = what.partition(":")
    rights = verbs.split(",")
    wrong: list[tuple[str, tuple[str, ...], str | None]] = []
    if not at:
        wrong.append((f"{_shown(text)} does not have the form VERBS@KIND", (), "submit,watch@job"))
    elif kind not in {*_KINDS, _ALL}:
        wrong.append((f"{_shown(kind)} is not a kind", (_ALL, *_KINDS), closest(kind, _KINDS)))
    elif colon and kind not in WORK:
        hint = f"{verbs}@{kind} without a place, or {verbs}@job:{where}"
        wrong.append((f"{kind} has no queue and no group", WORK, hint[:_LONGEST_SHOWN]))
    unknown = [unknown_right for unknown_right in rights if unknown_right not in {*_RIGHTS, _ALL}]
    wrong += [
        (f"{_shown(unknown_right)} is not a verb", (_ALL, *_RIGHTS), closest(unknown_right, _RIGHTS))
        for unknown_right in unknown
    ]
    place = _place(where) if colon else None
    if isinstance(place, str):
        wrong.append((place, _FORMS, f"{verbs}@{kind}:queue=default"[:_LONGEST_SHOWN]))
        place = None
    return wrong, Scope(() if _ALL in rights else tuple(rights), "" if kind == _ALL else kind, place)


def _place(text: str) -> WorkScope | str:
    """Read a place; returns the problem's message if it is not valid."""
    what, equals, name = text.partition("=")
    if not equals or what not in {"queue", "group"}:
        return f"{_shown(text)} is not a queue or a group"
    longest = LONGEST_QUEUE if what == "queue" else LONGEST
    if not name or len(name) > longest or not name.isprintable() or (what == "group" and not name.strip("/")):
        return f"{_shown(name)} is not the name of a {what}"
    return WorkScope(queue=name) if what == "queue" else WorkScope(group=name)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}...")
