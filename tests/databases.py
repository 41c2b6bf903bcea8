"""SQLite databases as the migrations leave them, made once in each process of tests: it takes a tenth of a second.

That they are made when nothing is there is shown where that matters: by tests of migrations, and of the documentation.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from holdfast.storage.sql import migrations


def migrated(path: Path) -> Path:
    """Make one at the newest schema and without rows, where nothing may be yet; returns the path."""
    path.touch(0o600, exist_ok=False)
    path.write_bytes(_empty())
    return path


def begin(data: Path) -> None:
    """Make a data directory that has one, unless the directory is there."""
    if not data.exists():
        data.mkdir(0o700, parents=True)
        migrated(data / "holdfast.db")


@cache
def _empty() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "holdfast.db"
        migrations.upgrade(path)
        return path.read_bytes()
