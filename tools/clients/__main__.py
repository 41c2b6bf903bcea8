"""Makes the environments of all clients that are not there yet, and prints where they are."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from tools.clients import NAMES, PYTHONS, python_of, requirements
from tools.clients.pythons import CHOSEN, python_for

if TYPE_CHECKING:
    from pathlib import Path


def main() -> int:
    """Run the task."""
    for name in NAMES:
        python, versions = python_of(name), PYTHONS.get(name)
        if not python.exists():
            environ = os.environ  # noqa: TID251 - where Pythons are looked for
            base = sys.executable if versions is None else python_for(versions, environ)
            if base is None:
                wanted = " or ".join(versions or ())
                print(
                    f"{name}: skipped: it runs on Python {wanted}, and none answers; {CHOSEN} names one",
                    file=sys.stderr,
                )
                continue
            _make(name, base, python.parents[1])
        print(f"{name}: {python}")
    return 0


def _make(name: str, base: str, folder: Path) -> None:
    """Make an environment beside its place first: one that was left halfway is not taken for one that is there."""
    fresh = folder.with_name(f"{folder.name}.{os.getpid()}")
    subprocess.run([base, "-m", "venv", "--clear", str(fresh)], check=True)  # noqa: S603 - what was found
    pip = [str(fresh / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    words = [*pip, "--require-hashes", "--requirement", str(requirements(name))]
    subprocess.run(words, check=True)  # noqa: S603 - what is written here
    try:
        fresh.rename(folder)
    except OSError:  # somebody else made it meanwhile
        shutil.rmtree(fresh)


if __name__ == "__main__":
    sys.exit(main())
