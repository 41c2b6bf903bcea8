"""Puts a job's inputs into the work directory, with the rights of the run's account.

Archives were checked on arrival. They are unpacked into a directory that nobody else has been in, each file newly
created, so that nothing in them leads anywhere.
"""

from __future__ import annotations

import base64
import codecs
import io
import os
import shutil
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import IO, TypeAlias

    from ..records import SupervisedRun

    OpenFile: TypeAlias = tuple[str, str, str]
    """A name, empty for an archive; the bytes as base64; or the file that contains them."""

_EXECUTABLE = 0o100
_OF_NAMES = "cp437"
"""The encoding of names in archives that declare none."""


class Unusable(Exception):
    """An input cannot be put into place."""


def opened(program: SupervisedRun) -> list[int]:
    """Open the files of inputs with the server's rights, which a run's account may not have.

    Raises:
        OSError: A file no longer exists.
    """
    import zipfile  # noqa: F401, PLC0415 - now, as the account of the run may not be able to read it

    codecs.lookup(_OF_NAMES)  # likewise
    descriptors: list[int] = []
    try:
        for _, _, file in program.order.get("inputs", ()):
            if file:
                descriptors.append(os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW))
    except OSError:
        close(descriptors)
        raise
    return descriptors


def close(descriptors: Sequence[int]) -> None:
    """Close the files."""
    for fd in descriptors:
        os.close(fd)


def put(entries: Sequence[OpenFile], descriptors: Sequence[int]) -> None:
    """Put all inputs into the working directory; called with the rights of the run's account.

    Raises:
        Unusable: An input cannot be put into place; the message says why.
    """
    left = list(descriptors)
    for name, data, file in entries:
        try:
            _put(name, os.fdopen(left.pop(0), "rb") if file else io.BytesIO(base64.b64decode(data)))
        except Exception as error:
            why = error.strerror if isinstance(error, OSError) else error
            msg = f"{name or 'its archive'} cannot be put into its work directory: {why}"
            raise Unusable(msg) from error


def _put(name: str, source: IO[bytes]) -> None:
    with source:
        if name:
            _write(name, source)
        else:
            _unpack(source)


def _unpack(source: IO[bytes]) -> None:
    import zipfile  # noqa: PLC0415 - few runs need it

    with zipfile.ZipFile(source) as archive:
        for entry in archive.infolist():
            name = entry.orig_filename
            if name.startswith("/") or not {"", ".", ".."}.isdisjoint(name.removesuffix("/").split("/")):
                msg = f"{name!r} is outside"
                raise Unusable(msg)
            if name.endswith("/"):
                Path(name).mkdir(parents=True, exist_ok=True)
                continue
            with archive.open(entry) as packed:
                _write(name, packed, executable=bool(entry.external_attr >> 16 & _EXECUTABLE))


def _write(name: str, source: IO[bytes], *, executable: bool = False) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    mode = 0o755 if executable else 0o644
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with os.fdopen(fd, "wb") as file:
        shutil.copyfileobj(source, file)
