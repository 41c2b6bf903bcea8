"""What checking one case can come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Case: TypeAlias = Mapping[str, Any]


class Skip(Exception):
    """This case cannot be checked here; the message is the reason."""


class Deviates(Exception):
    """This case comes out differently on purpose; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One thing that was not as the case expects."""

    what: str
    expected: object
    got: object

    def __str__(self) -> str:
        """Render on one line."""
        return f"{self.what}: expected {self.expected!r}, got {self.got!r}"


def differences(expected: Mapping[str, object], got: Mapping[str, object]) -> list[Mismatch]:
    """Compare what was expected with what was found, field by field."""
    return [Mismatch(what, value, got.get(what)) for what, value in expected.items() if got.get(what) != value]
