"""Reads plain YAML scalars and marks the ambiguous ones.

YAML 1.1 and 1.2 disagree about ``NO``, ``010``, ``1:30`` and ``2024-01-01``. Such a scalar stays text that remembers
its other meaning, so that the reader of its field can refuse it with a hint.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Self

_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_HEX = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+][0-9]+)?")
_NEWER_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+")
_OCTAL = re.compile(r"[-+]?0[0-9_]+|0o[0-7]+")
_UNDERSCORED = re.compile(r"[-+]?[0-9][0-9_]*_[0-9_]*")
_SEXAGESIMAL = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?")
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_OLD_BOOLEANS = frozenset({"yes", "no", "on", "off"})
_SPECIAL_FLOATS = frozenset({".inf", "-.inf", "+.inf", ".nan"})
_INFINITE = "an infinite number"
_MOST_DIGITS = 40
_MOST_ZEROS = 20
"""The most digits of a number written without an exponent."""


class Ambiguous(str):
    """A plain scalar that YAML versions read differently; ``kind`` names the other reading."""

    __slots__ = ("kind",)
    kind: str

    def __new__(cls, text: str, kind: str) -> Self:
        """Keep the text as written."""
        self = super().__new__(cls, text)
        self.kind = kind
        return self


def read_plain(text: str) -> object:
    """Read an unquoted scalar: null, boolean, number, ambiguous or plain text."""
    if not text or text[0] in "~nNtTfFyYoO":
        return _read_word(text)
    if text[0] in "0123456789+-.":
        return _read_number(text)
    return text


def read_json_number(text: str) -> object:
    """Read a JSON number with a fraction or exponent: there is one way to read it, unless it is out of bounds."""
    number = float(text)
    return number if math.isfinite(number) else Ambiguous(text, _INFINITE)


def write_number(number: float) -> str:
    """Write a number for a program: like Python, but small and large ones without an exponent, too."""
    text = repr(number)
    if "e" not in text or abs(math.log10(abs(number))) > _MOST_ZEROS:
        return text
    plain = f"{Decimal(text):f}"
    return plain if "." in plain else f"{plain}.0"


def _read_word(text: str) -> object:
    if text in _NULLS:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if text.lower() in _OLD_BOOLEANS:
        return Ambiguous(text, "a boolean in YAML 1.1")
    return text


def _read_number(text: str) -> object:
    if _INT.fullmatch(text):
        return int(text) if len(text) <= _MOST_DIGITS else text
    if kind := _ambiguity(text):
        return Ambiguous(text, kind)
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else Ambiguous(text, _INFINITE)
    if _HEX.fullmatch(text) and len(text) <= _MOST_DIGITS:
        return int(text, 16)
    return text


def _ambiguity(text: str) -> str | None:
    if _OCTAL.fullmatch(text):
        return "an octal number in YAML 1.1"
    if _UNDERSCORED.fullmatch(text):
        return "a number with separators in YAML 1.1"
    if _SEXAGESIMAL.fullmatch(text):
        return "a number to the base 60 in YAML 1.1"
    if _TIMESTAMP.fullmatch(text):
        return "a date"
    if text.lower() in _SPECIAL_FLOATS:
        return "a number that is not finite"
    return "a number in YAML 1.2 only" if _NEWER_FLOAT.fullmatch(text) and not _FLOAT.fullmatch(text) else None
