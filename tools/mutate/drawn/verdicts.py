"""What became of the mutants of a seed, kept in a file, so that a later run goes on where the last one stopped."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path


class Verdict(StrEnum):
    """What became of one."""

    NOTICED = "noticed"
    NEVER_ENDS = "never ends"
    """Noticed: tests that take seconds were stopped after a minute."""
    ARGUED = "argued"
    """No test can or should notice; ``argued`` says why."""
    SURVIVED = "SURVIVED"
    UNTESTED = "UNTESTED"
    """Survived, as no test runs that line."""
    UNUSABLE = "UNUSABLE"
    """The tests fail without it, too."""


FINE = frozenset({Verdict.NOTICED, Verdict.NEVER_ENDS, Verdict.ARGUED})


class Known(NamedTuple):
    """A verdict and what it rests on."""

    verdict: Verdict
    said: str
    """The test that noticed, or how many tests did not."""
    took_s: float
    content: str
    """Of code and tests, in short."""


class Verdicts:
    """The file of one seed: a line each, of which the last about a mutant counts."""

    def __init__(self, path: Path) -> None:
        """Read what is there."""
        self._path = path
        self._known: dict[str, Known] = {}
        for line in path.read_text().splitlines() if path.exists() else ():
            name, verdict, said, took_s, content = json.loads(line)
            self._known[name] = Known(Verdict(verdict), said, took_s, content)

    def of(self, name: str, content: str) -> Known | None:
        """Return what is known of a mutant: that it is noticed, or what was seen on this content."""
        known = self._known.get(name)
        if known is None or (known.verdict not in FINE and known.content != content):
            return None
        return known

    def add(self, name: str, known: Known) -> None:
        """Keep a verdict, on disk at once."""
        self._known[name] = known
        self._path.parent.mkdir(exist_ok=True)
        with self._path.open("a") as stream:
            stream.write(json.dumps([name, *known]) + "\n")
