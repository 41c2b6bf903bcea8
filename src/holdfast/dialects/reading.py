"""A strict reader of one mapping's fields.

Every getter notes problems and returns its default, so that one pass finds all problems. ``finish`` reports unknown
fields: those that no getter has read.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, TypeVar

import re2

from holdfast.dialects.scalars import Ambiguous, write_number
from holdfast.domain.suggestion import closest
from holdfast.domain.units import parse_cpu, parse_duration, parse_memory
from holdfast.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from enum import StrEnum

E = TypeVar("E", bound="StrEnum")
T = TypeVar("T")

DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
LONGEST_NAME = 63
LONGEST_TEXT = 4096
LONGEST_PATTERN = 1000
LONGEST_QUOTE = 80
MOST_UNKNOWN = 100
"""Unknown fields that are named per mapping, each with a hint, which takes time to find."""
NAME_RULE = (
    "must consist of lowercase alphanumeric characters or '-', and must start and end with an alphanumeric character"
)
_REGEX = re2.Options()
_REGEX.log_errors = False


def kind_of(value: object) -> str:
    """Name a value's type as people who write YAML do."""
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, (list, tuple)):
        return "a list"
    return "nothing" if value is None else "a mapping"


def shown(value: object) -> str:
    """Quote a value for a message, shortened."""
    text = repr(str(value)) if isinstance(value, str) else _bare(value) if isinstance(value, float) else repr(value)
    return text if len(text) <= LONGEST_QUOTE else f"{text[: LONGEST_QUOTE - 3]}..."


def regex_error(pattern: str) -> str | None:
    """Return the problem of an RE2 pattern, or ``None`` if it compiles."""
    try:
        re2.compile(pattern, options=_REGEX)
    except re2.error as error:
        detail = error.args[0] if error.args else error
        return detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail)
    return None


class Fields:
    """Reads one mapping, and remembers which fields were read."""

    __slots__ = ("_names", "path", "problems", "value")

    def __init__(self, value: Mapping[str, Any], path: str, problems: list[Problem]) -> None:
        """Read ``value``; problems get field paths below ``path``."""
        self.value = value
        self.path = path
        self.problems = problems
        self._names: set[str] = set()

    def at(self, name: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def problem(
        self, name: str, message: str, *, allowed: Sequence[str] = (), hint: str | None = None, line: int | None = None
    ) -> None:
        """Add a problem of a field; an empty name stands for the mapping itself."""
        path = self.at(name) if name else self.path
        self.problems.append(Problem(path, message, tuple(allowed), hint, line))

    def has(self, name: str) -> bool:
        """Whether a field is present and not null."""
        return self.value.get(name) is not None

    @property
    def names(self) -> frozenset[str]:
        """The names of the fields that were read."""
        return frozenset(self._names)

    def lacks(self, names: frozenset[str]) -> bool:
        """Whether none of these fields is present, even as null; they then count as read."""
        if not names.isdisjoint(self.value):
            return False
        self._names |= names
        return True

    def raw(self, name: str, *, required: bool = False) -> object:
        """Take a field as it is; ``None`` if it is absent or null."""
        self._names.add(name)
        value = self.value.get(name)
        if value is None and required:
            self.problem(name, "is required")
        return value

    def mistyped(self, name: str, value: object, expected: str, hint: str | None = None) -> None:
        """Add a problem: the value has the wrong type."""
        self.problem(name, f"must be {expected}, not {kind_of(value)} {shown(value)}", hint=hint)

    def text(self, name: str, *, required: bool = False, longest: int = LONGEST_TEXT) -> str | None:
        """Read text that is not empty."""
        value = self.raw(name, required=required)
        if value is None or not self.check_text(name, value, longest=longest):
            return None
        if not value:
            self.problem(name, f"{name} must not be empty")
            return None
        return str(value)

    def check_text(self, name: str, value: object, *, longest: int = LONGEST_TEXT) -> bool:
        """Whether a value is text of bounded length; adds a problem if not."""
        if isinstance(value, Ambiguous):
            self.problem(name, f"{shown(value)} is unclear: unquoted it is {value.kind}", hint=f'quote it: "{value}"')
        elif not isinstance(value, str):
            self.mistyped(
                name, value, "text", None if isinstance(value, (dict, list)) else f'quote it: "{_bare(value)}"'
            )
        elif len(value) > longest:
            self.problem(name, f"is {len(value)} characters long; at most {longest} are allowed")
        elif "\0" in value:
            self.problem(name, "must not contain a NUL character")
        else:
            return True
        return False

    def name(self, name: str, *, required: bool = False) -> str | None:
        """Read a DNS label: up to 63 lower-case letters, digits and dashes."""
        value = self.text(name, required=required)
        return value if value is not None and self.check_name(name, value) else None

    def check_name(self, field: str, value: str) -> bool:
        """Whether a text is a DNS label; adds a problem if not."""
        if len(value) > LONGEST_NAME:
            self.problem(field, f"name {shown(value)} must be at most {LONGEST_NAME} characters")
        elif not DNS_LABEL.fullmatch(value):
            self.problem(field, f"name {shown(value)} is invalid: {NAME_RULE}")
        else:
            return True
        return False

    def integer(self, name: str, *, low: int, high: int) -> int | None:
        """Read a whole number within bounds."""
        value = self.raw(name)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            self.mistyped(name, value, "a whole number")
            return None
        return value if self._within(name, value, low, high) else None

    def number(self, name: str, *, low: float, high: float) -> float | None:
        """Read a number within bounds."""
        value = self.raw(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            self.mistyped(name, value, "a number")
            return None
        return float(value) if self._within(name, value, low, high) else None

    def _within(self, name: str, value: float, low: float, high: float) -> bool:
        if low <= value <= high:
            return True
        self.problem(name, f"{shown(value)} is out of range", allowed=(f"{_exactly(low)} to {_exactly(high)}",))
        return False

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Read a boolean."""
        value = self.raw(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.problem(name, f"must be a boolean, not {shown(value)}", allowed=("true", "false"))
            return default
        return value

    def choice(self, name: str, options: type[E], *, required: bool = False) -> E | None:
        """Read one of an enumeration's values."""
        value = self.raw(name, required=required)
        if value is None:
            return None
        allowed = [option.value for option in options]
        if value not in allowed:
            self.problem(
                name, f"{shown(value)} is not one of its values", allowed=allowed, hint=closest(value, allowed)
            )
            return None
        return options(value)

    def duration(self, name: str, *, low: float = 0.0, high: float = math.inf) -> float | None:
        """Read a duration in seconds."""
        value = self._parsed(name, parse_duration)
        if value is None or low <= value <= high:
            return value
        self.problem(
            name, f"{shown(self.value[name])} must be {'more than 0' if value <= low else f'at most {high:g}s'}"
        )
        return None

    def memory(self, name: str) -> int | None:
        """Read a memory size in bytes."""
        return self._parsed(name, parse_memory)

    def cpu(self, name: str) -> int | None:
        """Read cpu in millicores."""
        return self._parsed(name, parse_cpu)

    def _parsed(self, name: str, parse: Callable[[object], T]) -> T | None:
        value = self.raw(name)
        if value is None:
            return None
        try:
            return parse(value)
        except (ValueError, OverflowError) as error:
            self.problem(name, str(error))
            return None

    def pattern(self, name: str, *, required: bool = True) -> str | None:
        """Read a regular expression in RE2's syntax."""
        value = self.text(name, required=required, longest=LONGEST_PATTERN)
        if value is not None and (wrong := regex_error(value)):
            self.problem(name, f"invalid regex {shown(value)}: {wrong}", hint="the syntax is RE2's")
            return None
        return value

    def items(self, name: str, *, most: int) -> list[Any] | None:
        """Read a list of bounded length."""
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, (list, tuple)):
            self.mistyped(name, value, "a list", hint=None if isinstance(value, dict) else f"write [{_bare(value)}]")
            return None
        if len(value) > most:
            self.problem(name, f"has {len(value)} entries; at most {most} are allowed")
            return None
        return list(value)

    def texts(self, name: str, *, most: int, longest: int = LONGEST_TEXT) -> list[str] | None:
        """Read a list of texts."""
        values = self.items(name, most=most)
        if values is None:
            return None
        return [str(v) for i, v in enumerate(values) if self.check_text(f"{name}[{i}]", v, longest=longest)]

    def mapping(self, name: str, *, most: int, longest: int = LONGEST_TEXT) -> dict[str, str]:
        """Read a mapping of text to text."""
        value = self.raw(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.mistyped(name, value, "a mapping")
            return {}
        if len(value) > most:
            self.problem(name, f"has {len(value)} entries; at most {most} are allowed")
            return {}
        return {key: str(text) for key, text in value.items() if self._check_entry(name, key, text, longest)}

    def _check_entry(self, name: str, key: object, text: object, longest: int) -> bool:
        if not isinstance(key, str) or not key:
            self.problem(name, f"the key {shown(key)} is not text")
            return False
        if text is None:
            self.problem(f"{name}.{key}", "has no value", hint='write "" for an empty text')
            return False
        return self.check_text(f"{name}.{key}", text, longest=longest)

    def nested(self, name: str, *, required: bool = False) -> Fields | None:
        """Read a mapping with fields of its own; the caller finishes its reader."""
        value = self.raw(name, required=required)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.mistyped(name, value, "a mapping")
            return None
        return Fields(value, self.at(name), self.problems)

    def mappings(self, name: str, *, most: int) -> list[Fields]:
        """Read a list of mappings."""
        readers = []
        for i, value in enumerate(self.items(name, most=most) or ()):
            if isinstance(value, dict):
                readers.append(Fields(value, f"{self.at(name)}[{i}]", self.problems))
            else:
                self.mistyped(f"{name}[{i}]", value, "a mapping")
        return readers

    def finish(self) -> None:
        """Report unknown fields: the first ones by name, and the number of the others."""
        unknown = [name for name in self.value if name not in self._names]
        if not unknown:
            return
        allowed = sorted(self._names)
        for name in unknown[:MOST_UNKNOWN]:
            self.problem(str(name), f"unknown field {shown(name)}", allowed=allowed, hint=closest(name, allowed))
        if len(unknown) > MOST_UNKNOWN:
            self.problem("", f"has {len(unknown) - MOST_UNKNOWN} more unknown fields", allowed=allowed)


def _bare(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return write_number(value) if isinstance(value, float) else str(value)[:60]


def _exactly(bound: float) -> str:
    return str(bound) if isinstance(bound, int) else f"{bound:g}"
