"""Writes the table of settings from ``app.settings``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.app.reach import PREFIX
from holdfast.app.settings import Settings
from tools.docs.source import definitions, markdown, member_docs

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo


def settings() -> str:
    """List every setting: its variable, its default, its meaning."""
    docs = member_docs(Settings)
    return definitions(
        (f"`{PREFIX}{name}`".upper() + _default(field), markdown(docs[name]))
        for name, field in Settings.model_fields.items()
    )


def _default(field: FieldInfo) -> str:
    if field.default_factory not in {None, dict}:
        return " (the platform's)"
    return "" if field.default_factory or field.default in {None, (), ""} else f" (`{field.default}`)"
