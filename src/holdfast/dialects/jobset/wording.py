"""Words problems as the Kubernetes API does, because its users search for those messages.

``ManifestNotes`` also tells errors that may be forgiven: something upstream accepts but should not, or a mistake in an
example of an upstream document, is an error by default and a warning for a lenient reader.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

from holdfast.domain.containers import LOCAL
from holdfast.domain.record import Struct, field
from holdfast.domain.suggestion import closest
from holdfast.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from holdfast.dialects.jobset.program import ReadProgram
    from holdfast.domain.containers import EngineInfo

Engines: TypeAlias = "Callable[[], Sequence[EngineInfo]]"
"""Lists the engines that may run a manifest."""
_LONGEST_VALUE = 200


def local() -> tuple[EngineInfo]:
    """List only the engine of local processes."""
    return (LOCAL,)


class ManifestNotes(Struct, gc=True):
    """Problems and warnings of a manifest."""

    lenient: bool = False
    engines: Engines = local
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    programs: dict[str, ReadProgram] = field(default_factory=dict)
    """Compiled pod templates, by the path of the pod; only those without problems."""

    def is_counted(self, name: str) -> bool:
        """Whether some engine, or the whole cluster, counts a resource of that name."""
        return any(name in engine.offers for engine in self.engines())

    def error(self, path: str, message: str, *, hint: str | None = None) -> None:
        """Add an error."""
        self.problems.append(Problem(path, message, hint=hint))

    def forgivable(self, path: str, message: str, *, allowed: tuple[str, ...] = (), hint: str | None = None) -> None:
        """Add an error, which is a warning for a lenient reader."""
        (self.warnings if self.lenient else self.problems).append(Problem(path, message, allowed, hint))

    def warn(self, path: str, message: str, *, hint: str | None = None) -> None:
        """Add a warning."""
        self.warnings.append(Problem(path, message, hint=hint))

    def invalid(self, path: str, value: object, message: str, *, hint: str | None = None) -> None:
        """Add an error: the value is invalid."""
        self.error(path, f"Invalid value: {shown(value)}: {message}", hint=hint)

    def required(self, path: str, message: str = "") -> None:
        """Add an error: the value is missing."""
        self.error(path, f"Required value: {message}" if message else "Required value")

    def not_supported(self, path: str, value: object, supported: Sequence[str]) -> None:
        """Add an error: the value is not supported."""
        hint = closest(value, supported)
        self.error(path, f"Unsupported value: {shown(value)}: supported values: {quoted(supported)}", hint=hint)

    def duplicate(self, path: str, value: object) -> None:
        """Add an error: the value is a duplicate."""
        self.error(path, f"Duplicate value: {shown(value)}")

    def too_many(self, path: str, count: int, most: int) -> None:
        """Add an error: the list is too long."""
        self.error(path, f"Too many: {count}: must have at most {most} items")


def shown(value: object) -> str:
    """Format a value as Kubernetes does: texts in double quotes, lists without spaces."""
    if value is None:
        return "null"
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def quoted(values: Iterable[str]) -> str:
    """Format texts in double quotes."""
    return ", ".join(f'"{value}"' for value in values)


def bracketed(values: Iterable[str]) -> str:
    """Format texts as Go prints a slice."""
    return f"[{quoted(values).replace(', ', ' ')}]"
