"""Writes the table of events from their registry."""

from __future__ import annotations

import inspect

from holdfast.domain.audit import Act, Subject
from holdfast.domain.events.registry import BY_NAME
from tools.docs.source import enum_table, markdown, member_docs, table


def registry() -> str:
    """List every event with its meaning and its fields."""
    rows = []
    for entry in BY_NAME.values():
        docs = member_docs(entry.kind)
        fields = [f"`{name}`{f' ({_note(docs[name])})' if docs.get(name) else ''}" for name in entry.fields]
        meaning = markdown(inspect.getdoc(entry.kind) or "")
        version = "" if entry.version == 1 else f", version {entry.version}"
        rows.append([f"`{entry.name}`{version}", meaning, ", ".join(fields)])
    return table(["Type", "Meaning", "Fields of `data`"], rows)


def _note(text: str) -> str:
    note = markdown(text).rstrip(".")
    return note if note[:2].isupper() else note[0].lower() + note[1:]


def acts() -> str:
    """List what the audit log tells of."""
    subjects = ", ".join(f"`{subject}`" for name, subject in vars(Subject).items() if name.isupper())
    return f"{enum_table(Act, title='Action')}\n\nKinds: {subjects}."
