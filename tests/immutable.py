"""A folder that becomes read-only under whoever uses it, and later can be written again."""

from __future__ import annotations

import contextlib
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Immutable:
    """Everything in it has the immutable flag: what is open for writing can be written no more, either (EPERM)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _set(self, flag: str) -> bool:
        """Set it on all but sockets, which cannot have it."""
        inside = [path for path in self.folder.rglob("*") if path.is_file() or path.is_dir()]
        return subprocess.run(["chattr", flag, self.folder, *inside], check=False, capture_output=True).returncode == 0

    def freeze(self, *, only: Path | None = None) -> None:
        """Set it; with ``only`` on this one folder inside, in which files can be written, and none made or removed."""
        if only is None:
            assert self._set("+i")
        else:
            subprocess.run(["chattr", "+i", only], check=True)

    def thaw(self) -> None:
        assert self._set("-i")

    def works(self) -> bool:
        """Whether we may do that here, and the file system heeds it."""
        with contextlib.suppress(FileNotFoundError):
            if self._set("+i"):
                try:
                    (self.folder / "file").touch()
                except PermissionError:
                    return True
                finally:
                    self._set("-i")
        return False


@contextlib.contextmanager
def becoming_immutable(folder: Path) -> Iterator[Immutable]:
    """Skip the test where that cannot be; leave nothing immutable behind."""
    found = Immutable(folder)
    if not found.works():
        pytest.skip("nobody here may make files immutable (chattr +i): nothing becomes read-only")
    try:
        yield found
    finally:
        with contextlib.suppress(AssertionError):
            found.thaw()
