"""Names of jobs, ``/user/job/child...``, of their tasks, ``.../INDEX``, and of attempts, ``.../INDEX:ATTEMPT``.

The user in a name is a label: a job's owner is its submitter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.domain.record import Struct
from holdfast.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST = 900
"""Longest name, in characters: the name becomes a group, which may be little longer."""
_FEWEST = 2
_BARE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


class JobName(Struct, frozen=True):
    """The name of a job."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        """Write the name."""
        return "/" + "/".join(self.parts)

    @property
    def local(self) -> str:
        """The last part of the name."""
        return self.parts[-1]

    @property
    def parent(self) -> JobName | None:
        """The name of the parent, or ``None`` for a root job."""
        return JobName(self.parts[:-1]) if len(self.parts) > _FEWEST else None


class TaskName(Struct, frozen=True):
    """A task of a job, or one attempt of it."""

    job: JobName
    index: int
    attempt: int | None = None
    """The attempt, from 0; ``None`` for the current one."""

    def __str__(self) -> str:
        """Write the name."""
        return f"{self.job}/{self.index}" + ("" if self.attempt is None else f":{self.attempt}")


def read_name(text: str, path: str, problems: list[Problem]) -> JobName | None:
    """Read a job's name; adds problems."""
    wrong = _wrong(text)
    if wrong:
        problems.append(Problem(path, wrong, hint="such as /ann/train"))
        return None
    return JobName(tuple(text[1:].split("/")))


def read_new_name(text: str, path: str, problems: list[Problem]) -> JobName | None:
    """Read the name of a new job; a child whose name is a number would look like a task of its parent."""
    name = read_name(text, path, problems)
    if name is None or name.parent is None or not name.local.isdecimal():
        return name
    problems.append(Problem(path, f"{text!r} is the name of a task: a child cannot be called by a number"))
    return None


def read_task(text: str, path: str, problems: list[Problem]) -> TaskName | None:
    """Read the name of a task or of one of its attempts."""
    job_name = target_of(text, path, problems)
    if isinstance(job_name, JobName):
        problems.append(Problem(path, f"JobName is not a task: {text}", hint=f"its first one is {text}/0"))
        return None
    return job_name


def target_of(text: str, path: str, problems: list[Problem]) -> JobName | TaskName | None:
    """Read a name of a job, of a task or of an attempt."""
    body, colon, attempt = text.rpartition(":") if re.search(r"/\d+:\d+$", text) else (text, "", "")
    name = read_name(body, path, problems)
    if name is None:
        return None
    if name.parent is None or not (name.local.isdecimal() and name.local.isascii()):
        return name
    return TaskName(name.parent, int(name.local), int(attempt) if colon else None)


def _wrong(text: str) -> str:
    parts: Sequence[str] = text.split("/")
    if not text:
        return "Job name is required"
    if parts[0] or len(parts) <= _FEWEST:
        return f"Job name must use canonical '/<user>/<job>[...]' format: {text[:LONGEST]}"
    if not all(part.strip() for part in parts[1:]):
        return f"Job name contains empty or whitespace-only component: {text[:LONGEST]}"
    if len(text) > LONGEST:
        return f"has {len(text)} characters; at most {LONGEST} are allowed"
    return "contains characters that cannot be printed" if _BARE.search(text) else ""
