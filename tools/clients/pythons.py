"""Finds a Python of a version, for clients that do not run on the one that Holdfast runs on."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

CHOSEN = "HOLDFAST_TEST_PYTHON"
"""The variable that names one; no other is looked for then."""
_ASK = ("-c", "import sys; print(*sys.version_info[:2], sep='.')")
_PATIENCE_S = 30


def python_for(versions: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """Return a Python of one of these versions that answers, the first that is found of them; ``None``: there is none.

    What is on the path may be there and not answer, such as pyenv's stand-ins for versions that are not chosen.
    """
    chosen = environ.get(CHOSEN)
    places = [chosen] if chosen else (place for version in versions for place in _places(version, environ))
    return next((place for place in places if _answers(place, environ) in versions), None)


def _places(version: str, environ: Mapping[str, str]) -> Iterator[str]:
    name = f"python{version}"
    for folder in filter(None, environ.get("PATH", "").split(":")):
        if (found := Path(folder, name)).is_file():
            yield str(found)
    kept = Path(environ.get("PYENV_ROOT") or Path(environ.get("HOME", "/"), ".pyenv"), "versions")
    yield from (str(found) for found in sorted(kept.glob(f"{version}*/bin/{name}"), reverse=True))


def _answers(python: str, environ: Mapping[str, str]) -> str:
    """Return the version that it says it is; nothing if it says none."""
    try:
        said = subprocess.run(  # noqa: S603 - what is looked at is what a person has as Python
            [python, *_ASK], capture_output=True, text=True, check=False, timeout=_PATIENCE_S, env=environ
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return said.stdout.strip() if said.returncode == 0 else ""
