"""Names of jobs: any text, where a slash makes a child; its parent's full name is the group it is found by."""

from __future__ import annotations

import re

from holdfast.dialects.reading import LONGEST_NAME
from holdfast.domain.access.group import BELOW, LONGEST
from holdfast.domain.record import Struct
from holdfast.errors import Problem

_NOT_IN_LABEL = re.compile(r"[^a-z0-9]+")


class FlusterJobName(Struct, frozen=True):
    """What a job is called."""

    full: str
    """What Fluster's users know it by."""
    parent: str
    """The full name of its parent; empty of one that has none."""
    label: str
    """What it is called where names are DNS labels."""


def read_name(name: str, parent_job_id: str, problems: list[Problem]) -> FlusterJobName | None:
    """Read what a job is called; ``None`` when anything was wrong.

    Args:
        name: Its full name, as a launch has it.
        parent_job_id: The full name of its parent, where the launch says that; else what is before its last slash.
        problems: Where to note what is wrong.
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
    """Return the full name of a job's parent; empty of one that has none."""
    return name.rpartition(BELOW)[0]


def is_below(name: str, ancestor: str) -> bool:
    """Whether a job is a descendant of another, by their full names; ``ab`` is not below ``a``."""
    return name.startswith(ancestor + BELOW)


def _label(name: str) -> str:
    last = name.rpartition(BELOW)[2] or name
    return _NOT_IN_LABEL.sub("-", last.lower()).strip("-")[:LONGEST_NAME].rstrip("-") or "job"
