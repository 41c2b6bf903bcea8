"""Deletes what the runs of a job left on the disk."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from holdfast.engines.process.layout import job_directory
from holdfast.errors import Unavailable

_OWNERS = 0o700


class ProcessFiles:
    """The directories below one engine directory."""

    def __init__(self, directory: Path) -> None:
        """Remember the directory of the engine."""
        self._directory = directory

    def discard(self, job_id: str) -> None:
        """Delete everything a job's runs left on the disk; nothing there is fine.

        Raises:
            Unavailable: Something cannot be deleted.
        """
        directory = Path(job_directory(self._directory, job_id))
        try:
            try:
                shutil.rmtree(directory)
            except PermissionError:
                _open_up(directory)
                shutil.rmtree(directory)
        except FileNotFoundError:
            return
        except OSError as error:
            msg = f"cannot delete {error.filename}: {error.strerror}"
            raise Unavailable(msg) from error


def _open_up(directory: Path) -> None:
    """Make every directory writable: programs may leave some that not even their owner may write."""
    for folder, _, _ in os.walk(directory):
        Path(folder).chmod(_OWNERS)
        for entry in Path(folder).iterdir():
            if entry.is_dir() and not entry.is_symlink():
                entry.chmod(_OWNERS)
