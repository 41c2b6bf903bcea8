"""Every error Holdfast raises for its callers, as one tree with stable codes.

HTTP statuses (``api``) and exit codes (``cli``) have one table each. A workload's failure is data
(``domain.failure``), never one of these.

    HoldfastError
    ├── InvalidRequest      invalid_request      the caller sent something that cannot be accepted
    │   ├── InvalidPolicy   invalid_policy
    │   ├── InvalidManifest invalid_manifest
    │   └── InvalidSetting  invalid_setting
    ├── Unauthenticated     unauthenticated      no token, or a wrong one
    ├── Forbidden           forbidden            the caller has no right to it
    ├── NotFound            not_found
    ├── Conflict            conflict             the thing's state forbids it
    │   ├── AlreadyExists   already_exists
    │   └── VersionConflict version_conflict the thing is another by now than the caller knows
    ├── Refused             refused              a quota or a policy forbids it
    │   ├── QueueFull       queue_full           a queue lets no more jobs wait
    │   └── RateLimited     rate_limited         too much was submitted in a minute
    ├── Unavailable         unavailable          try again later
    │   ├── DataDirLocked   data_dir_locked
    │   ├── NotLeader       not_leader           another process writes this database
    │   └── Uncertain       uncertain            it may have been done
    ├── EngineError         engine_error         an engine itself failed (not its workload)
    └── Internal            internal             a defect of Holdfast
        └── UnreadableSpec  unreadable_spec  a stored specification cannot be read
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Problem(Struct, frozen=True):
    """One thing wrong with an input, precise enough to correct it without a manual."""

    path: str
    """Where: a field path such as ``spec.rules[2].onExitCodes.operator``; empty for the whole input."""
    message: str
    """What is wrong, quoting the offending value."""
    allowed: tuple[str, ...] = ()
    """The values that would be accepted, when they can be listed."""
    hint: str | None = None
    """What to do about it."""
    line: int | None = None
    """1-based line in the input text, when there is one."""

    def __str__(self) -> str:
        """Render as one line: path, line, message, allowed values, hint."""
        where = self.path or "input"
        if self.line is not None:
            where = f"{where} (line {self.line})"
        text = f"{where}: {self.message}"
        if self.allowed:
            text += f"; allowed: {', '.join(self.allowed)}"
        if self.hint:
            text += f"; hint: {self.hint}"
        return text


class HoldfastError(Exception):
    """Something went wrong in Holdfast."""

    code: ClassVar[str] = "internal"

    def __init__(
        self,
        message: str | None = None,
        *,
        problems: Iterable[Problem] = (),
        hint: str | None = None,
    ) -> None:
        """Remember the message (default: the class's first docstring line) and all problems found."""
        self.problems: tuple[Problem, ...] = tuple(problems)
        self.hint = hint
        self.message = message or (type(self).__doc__ or "error").splitlines()[0]
        super().__init__(self.message)

    def __str__(self) -> str:
        """Render the message followed by one line per problem."""
        lines = [self.message, *(f"  - {problem}" for problem in self.problems)]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class InvalidRequest(HoldfastError):
    """The request is not valid."""

    code = "invalid_request"


class InvalidPolicy(InvalidRequest):
    """The retry policy is not valid."""

    code = "invalid_policy"


class InvalidManifest(InvalidRequest):
    """The manifest is not valid."""

    code = "invalid_manifest"


class InvalidSetting(InvalidRequest):
    """A setting is not valid."""

    code = "invalid_setting"


class Unauthenticated(HoldfastError):
    """A valid token is required."""

    code = "unauthenticated"


class Forbidden(HoldfastError):
    """You have no right to this."""

    code = "forbidden"


class NotFound(HoldfastError):
    """Not found."""

    code = "not_found"


class Conflict(HoldfastError):
    """The current state does not allow this."""

    code = "conflict"


class AlreadyExists(Conflict):
    """That name exists already."""

    code = "already_exists"


class VersionConflict(Conflict):
    """It has changed since that version."""

    code = "version_conflict"
    current: str = ""
    """Its version now, as answers carry it."""

    @classmethod
    def of(cls, kind: str, name: str, *, current: str) -> VersionConflict:
        """Say which version something has now."""
        hint = "read it again, and repeat the change if it is still wanted"
        error = cls(f"{kind} {name!r} has changed: its version is {current} now", hint=hint)
        error.current = current
        return error


class Refused(HoldfastError):
    """A limit or a policy forbids this."""

    code = "refused"


class QueueFull(Refused):
    """The queue lets no more jobs wait."""

    code = "queue_full"


class RateLimited(Refused):
    """Too much was submitted within a minute."""

    code = "rate_limited"
    retry_after_s: float | None = None
    """When there is room again for all of it; ``None``: never for so much at once."""


class Unavailable(HoldfastError):
    """Not available right now; try again."""

    code = "unavailable"


class DataDirLocked(Unavailable):
    """Another Holdfast process holds the data directory."""

    code = "data_dir_locked"


class NotLeader(Unavailable):
    """Another Holdfast process leads the database."""

    code = "not_leader"


class Uncertain(Unavailable):
    """The answer was lost: it may have been done, or not."""

    code = "uncertain"


class EngineError(HoldfastError):
    """The engine itself failed."""

    code = "engine_error"


class Internal(HoldfastError):
    """An unexpected error inside Holdfast."""

    code = "internal"


class UnreadableSpec(Internal):
    """A stored specification cannot be read."""

    code = "unreadable_spec"


def all_errors(root: type[HoldfastError] = HoldfastError) -> Sequence[type[HoldfastError]]:
    """List the whole tree, parents before children, so that tables over it can be checked for gaps."""
    errors = [root]
    for child in root.__subclasses__():
        errors.extend(all_errors(child))
    return errors
