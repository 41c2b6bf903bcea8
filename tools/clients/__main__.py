"""Makes the environments of all clients that are not there yet, and prints where they are."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from typing import TYPE_CHECKING

from tools.clients import NAMES, python_of, requirements

if TYPE_CHECKING:
    from pathlib import Path


def main() -> int:
    """Run the task."""
    for name in NAMES:
        python = python_of(name)
        if not python.exists():
            _make(name, python.parents[1])
        print(f"{name}: {python}")
    return 0


def _make(name: str, folder: Path) -> None:
    """Make an environment beside its place first: one that was left halfway is not taken for one that is there."""
    fresh = folder.with_name(f"{folder.name}.{os.getpid()}")
    venv.create(fresh, with_pip=True, clear=True)
    pip = [str(fresh / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    words = [*pip, "--require-hashes", "--requirement", str(requirements(name))]
    subprocess.run(words, check=True)  # noqa: S603 - what is written here
    try:
        fresh.rename(folder)
    except OSError:  # somebody else made it meanwhile
        shutil.rmtree(fresh)


if __name__ == "__main__":
    sys.exit(main())
