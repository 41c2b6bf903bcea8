"""Which mutations come first where there is no time for all: those of files that changed last, and others by lot."""

from __future__ import annotations

import subprocess
from hashlib import sha256
from typing import TYPE_CHECKING

from tools.mutate.mutation import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tools.mutate.mutation import Mutation

_LATELY = 40
"""Commits."""


def ordered(mutations: Sequence[Mutation], root: Path = ROOT) -> list[Mutation]:
    """Put the mutations of files that the last commits changed first, and the others in an order of this commit's own.

    So each of them has its turn within a few commits, and a run of one commit can be repeated.
    """
    changed = set(_git(root, "log", f"-{_LATELY}", "--format=", "--name-only"))
    commit = "".join(_git(root, "rev-parse", "HEAD"))
    return sorted(
        mutations, key=lambda each: (each.source not in changed, sha256(f"{commit} {each.name}".encode()).digest())
    )


def _git(root: Path, *words: str) -> list[str]:
    """Return the lines that git says; none where there is no git, or no repository."""
    try:
        told = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)  # noqa: S603, S607 - git
    except FileNotFoundError:
        return []
    return told.stdout.splitlines()
