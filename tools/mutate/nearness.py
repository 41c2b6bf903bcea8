"""Finds the test files that are likely to run a module: those that share words with it, or changed together with it."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tools.mutate.project import Project


class Nearness:
    """Compares modules with some files of tests."""

    def __init__(self, project: Project, files: Iterable[str], together: Mapping[tuple[str, str], float]) -> None:
        """Read the files.

        Args:
            project: Where they are.
            files: The files of tests.
            together: How often commits changed a module and a file of tests together.
        """
        self._root = project.root
        self._together = together
        self._words = {file: self._words_of(file) for file in files}
        self._number = Counter(word for words in self._words.values() for word in words)

    def nearest(self, module: str, number: int) -> list[str]:
        """List the nearest files of a module, except those that have nothing in common with it."""
        alike = self._alike(module)
        most = max(alike.values(), default=0) or 1
        scores = {file: alike[file] / most + self._together.get((module, file), 0) for file in alike}
        return sorted((file for file in scores if scores[file] > 0), key=lambda file: -scores[file])[:number]

    def _alike(self, module: str) -> dict[str, float]:
        """Add up the words in common with each file: the fewer files use a word, the more it says."""
        own = self._words_of(module)
        return {
            file: sum(math.log(len(self._words) / self._number[word]) for word in own & words)
            / math.sqrt(len(words) + 1)
            for file, words in self._words.items()
        }

    def _words_of(self, file: str) -> set[str]:
        return set(re.findall(r"\w{4,}", f"{file} {(self._root / file).read_text()}"))
