"""Reads the log files of local runs."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from holdfast.engines.process.layout import log_beginnings, log_path, log_start
from holdfast.engines.process.shim import files
from holdfast.errors import Unavailable
from holdfast.ports.logs import LogPart

if TYPE_CHECKING:
    from pathlib import Path

_NO_LOG = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EMLINK, errno.EINVAL)
"""There is none yet or no more, or the program put something else in its place."""


class ProcessLogs:
    """The logs below one engine directory."""

    def __init__(self, directory: Path) -> None:
        """Remember the directory of the engine."""
        self._directory = directory

    def read(self, job_id: str, attempt: int, rank: int, *, offset: int, limit: int) -> LogPart:
        """Read at most ``limit`` bytes from ``offset``, or from where a capped log still begins.

        Raises:
            Unavailable: The file is there and cannot be read.
        """
        path = log_path(self._directory, job_id, attempt, rank)
        try:
            with open(files.open_plain(os.fspath(path), os.O_RDONLY), "rb", buffering=0) as file:  # noqa: PTH123 - of an fd
                size = os.fstat(file.fileno()).st_size
                begins = max(offset, log_start(path)) if offset < size else offset
                file.seek(begins)
                data = file.read(limit)
                # Looked up after reading: whatever was read of a program, its beginning was written down before.
                return LogPart(data, size, begins, log_beginnings(path, size))
        except OSError as error:
            if error.errno in _NO_LOG:
                return LogPart(b"", 0, offset)
            msg = f"cannot read {path}: {error.strerror}"
            raise Unavailable(msg) from error
