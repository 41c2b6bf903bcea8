"""Installs other systems' own clients for the tests of the doors, each in an environment of its own.

They need other versions of libraries than Holdfast, some another version of Python, and register the same names in
them: they run as processes apart. ``./dev clients`` makes the environments; the tests look for them, and say that they
skip where there is none.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import platformdirs

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("armada", "backendai", "iris")
PYTHONS = {"backendai": ("3.13",), "iris": ("3.12", "3.13")}
"""Of those that do not run on every Python, the versions that they run on, the best first."""


def requirements(name: str) -> Path:
    """Return the file that pins a client and all it needs, by version and hash."""
    return ROOT / "tests" / "clients" / f"{name}.txt"


def python_of(name: str) -> Path:
    """Return the Python of a client's environment, which may have to be made yet; it is another for other pins."""
    pinned = hashlib.sha256(requirements(name).read_bytes()).hexdigest()[:12]
    folder = platformdirs.user_cache_path("holdfast-clients", appauthor=False) / f"{name}-{pinned}"
    return folder / "bin" / "python"
