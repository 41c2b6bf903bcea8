"""Fluster's job names: any text; a slash makes a child, and the parent's full name is the group of its children."""

from __future__ import annotations

import re

from holdfast.dialects.reading import LONGEST_NAME
from holdfast.domain.access.group import BELOW, LONGEST
from holdfast.domain.record import Struct
from holdfast.errors import Problem

_NOT_IN_LABEL = re.compile(r"[^a-z0-9]+")


class FlusterJobName(Struct, frozen=True):
    """The names of a job."""

    full: str
    """The full name, as Fluster's users know it."""
    parent: str
    """The parent's full name; empty for a root job."""
    label: str
    """Its name where names are DNS labels."""


def read_name(name: str, parent_job_id: str, problems: list[Problem]) -> FlusterJobName | None:
    """Read a job's name; ``None`` if anything is wrong.

    Args:
        name: The full name, as in a launch.
        parent_job_id: The parent's full name, if the launch has it; otherwise the part before the last slash.
        problems: Where to add problems.
    """
    before = len(problems)
    if not name:
        problems.append(Problem("name", "name must not be empty"))
    elif len(name) > LONGEST:
        problems.append(Problem("name", f"is {len(name)} characters long; at most {LONGEST} are allowed"))
    if "\0" in name:
        problems.append(Problem("name", "must not contain a NUL character"))
    if parent_job_id and not is_below(name, parent_job_id):
        hint = f"a child of it is called {parent_job_id}{BELOW}NAME"
        problems.append(Problem("parent_job_id", f"{name!r} is not below {parent_job_id!r}", hint=hint))
    if len(problems) > before:
        return None
    return FlusterJobName(name, parent_job_id or parent_of(name), _label(name))


def parent_of(name: str) -> str:
    """Return the parent's full name, or an empty string for a root job."""
    return name.rpartition(BELOW)[0]


def is_below(name: str, ancestor: str) -> bool:
    """Whether a job is a descendant of another, by their full names; ``ab`` is not below ``a``."""
    return name.startswith(ancestor + BELOW)


def _label(name: str) -> str:
    last = name.rpartition(BELOW)[2] or name
    return _NOT_IN_LABEL.sub("-", last.lower()).strip("-")[:LONGEST_NAME].rstrip("-") or "job"
