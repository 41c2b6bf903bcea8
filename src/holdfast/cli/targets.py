"""Tells a kind from names where a command takes both, as in ``wait jobset train``; leaves what follows to commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.cli.nouns import Noun, read_noun
from holdfast.errors import InvalidRequest, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

JOBS_OR_SETS = (Noun.JOB, Noun.JOB_SET)


@dataclass(frozen=True, slots=True)
class Target:
    """Things of one kind."""

    noun: Noun
    names: Sequence[str]

    @property
    def one(self) -> str:
        """The name, where there may be only one.

        Raises:
            InvalidRequest: There are several.
        """
        if len(self.names) > 1:
            msg = "Only one can be named here."
            raise InvalidRequest(
                msg, problems=[Problem("NAME", f"{len(self.names)} were named: {', '.join(self.names)}")]
            )
        return self.names[0]


def job_or_set(words: Sequence[str]) -> Target:
    """Read ``[KIND] NAME...`` of a command that is about jobs or job sets; without a kind all are names of jobs."""
    if len(words) > 1:
        try:
            return Target(read_noun(words[0], JOBS_OR_SETS), words[1:])
        except InvalidRequest:
            pass
    return Target(Noun.JOB, words)
