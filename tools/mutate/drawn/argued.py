"""Drawn mutants that survive with reason: what they change makes no difference, or none that anybody was promised."""

from __future__ import annotations

from typing import NamedTuple


class Argued(NamedTuple):
    """A mutant that need not be noticed."""

    file: str
    """From ``src/holdfast`` on."""
    where: str
    before: str
    after: str
    why: str

    @property
    def source(self) -> str:
        """The file, from the root of the repository on."""
        return f"src/holdfast/{self.file}"

    @property
    def about(self) -> tuple[str, str, str, str]:
        """Which mutants it is about: all that read the same there."""
        return self.source, self.where, self.before, self.after


ARGUED = (
    Argued(
        "controller/workloads/gangs.py", "Gangs.delete", "False", "True", "A gang takes the argument and ignores it."
    ),
)
