"""Turns errors into problem details and back; pure.

The HTTP status is its caller's (``api`` has the one table).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import Problem, VersionConflict
from holdfast.wire.problems import ProblemDetails, ProblemEntry, problem_type

if TYPE_CHECKING:
    from holdfast.errors import HoldfastError


def problem_details(error: HoldfastError, *, status: int) -> ProblemDetails:
    """Show an error with all its problems."""
    return ProblemDetails(
        type=problem_type(error.code),
        title=(type(error).__doc__ or error.code).splitlines()[0],
        status=status,
        code=error.code,
        detail=error.message,
        hint=error.hint,
        errors=[problem_entry(problem) for problem in error.problems],
        resource_version=error.current if isinstance(error, VersionConflict) else None,
    )


def problem_entry(problem: Problem) -> ProblemEntry:
    """Show one thing wrong with an input."""
    return ProblemEntry(
        path=problem.path,
        message=problem.message,
        allowed=list(problem.allowed),
        hint=problem.hint,
        line=problem.line,
    )


def read_problem(entry: ProblemEntry) -> Problem:
    """Read one thing wrong with an input back."""
    return Problem(entry.path, entry.message, allowed=tuple(entry.allowed), hint=entry.hint, line=entry.line)
