"""One way to break the code, and which tests should notice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORLDS = "property/test_simulation.py::test_everything_that_was_promised_holds_in_every_world[seeds 1-10]"
"""Ten simulated worlds, for what only they can see."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """A text of a source file, and what stands in its place."""

    name: str
    """What is wrong with the code then; also how it is called for alone."""
    file: str
    """From ``src/holdfast`` on."""
    old: str
    """Occurs exactly once there."""
    new: str
    tests: tuple[str, ...]
    """What pytest is to run, from ``tests`` on: the smallest set that should notice."""

    @property
    def source(self) -> str:
        """The file, from the root of the repository on."""
        return f"src/holdfast/{self.file}"

    def problem(self, root: Path = ROOT) -> str | None:
        """Say why it cannot be applied any more; ``None`` when it can."""
        path = root / self.source
        if not path.is_file():
            return f"there is no {self.source}"
        times = path.read_text().count(self.old)
        if times != 1:
            return f"its text is {times} times in {self.source}"
        missing = [test for test in self.tests if not (root / "tests" / test.partition("::")[0]).exists()]
        return f"there is no {missing[0]} in tests" if missing else None

    def apply(self, root: Path) -> str:
        """Break the file in a copy of the repository; returns what it was."""
        path = root / self.source
        text = path.read_text()
        path.write_text(text.replace(self.old, self.new))
        return text
