"""Writes the table of events from their registry."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from holdfast.domain.audit import Act, Subject
from holdfast.domain.events.registry import BY_NAME
from tools.docs.source import markdown, member_docs, table

if TYPE_CHECKING:
    from holdfast.domain.events.registry import EventType


_CHANGES = ("created", "updated", "deleted")


def registry() -> str:
    """List every event with its meaning and its fields; what happens to an entry of the catalogue shares a row."""
    rows = []
    for entry in BY_NAME.values():
        family, _, change = entry.name.partition(".")
        name, meaning = f"`{entry.name}`", markdown(inspect.getdoc(entry.kind) or "")
        if change in _CHANGES and all(f"{family}.{each}" in BY_NAME for each in _CHANGES):
            if change != _CHANGES[0]:
                continue
            name, meaning = f"{name}, `.updated`, `.deleted`", meaning.replace("created", "created, updated or deleted")
        version = "" if entry.version == 1 else f", version {entry.version}"
        rows.append([name + version, meaning, ", ".join(_fields(entry))])
    return table(["Type", "Meaning", "Fields of `data`"], rows)


def _fields(entry: EventType) -> list[str]:
    docs = member_docs(entry.kind)
    return [f"`{name}`{f' ({_note(docs[name])})' if docs.get(name) else ''}" for name in entry.fields]


def _note(text: str) -> str:
    note = markdown(text).rstrip(".")
    return note if note[:2].isupper() else note[0].lower() + note[1:]


def acts() -> str:
    """List what the audit log tells of."""
    subjects = ", ".join(f"`{subject}`" for name, subject in vars(Subject).items() if name.isupper())
    return f"Actions: {', '.join(f'`{act}`' for act in Act)}.\n\nKinds: {subjects}."
