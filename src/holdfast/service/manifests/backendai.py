"""Describes sessions in Backend.AI's terms."""

from __future__ import annotations

from holdfast.dialects.backendai.sessions import environ_of
from holdfast.dialects.backendai.slots import slots_of

__all__ = ["environ_of", "slots_of"]
