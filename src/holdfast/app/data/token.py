"""The token of a server: from a setting, or created at its first start and stored."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

from holdfast.app.data.trust import open_trusted, read_private, trusted_folder
from holdfast.errors import InvalidSetting, Problem, Unavailable

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.app.data.datadir import DataDir
    from holdfast.app.reach import ServerReach

_TOKEN_BYTES = 32
_PRIVATE = 0o600
_FILE = "HOLDFAST_TOKEN_FILE"
FLAG = "--token-file"


def given_token(settings: ServerReach) -> str | None:
    """Return the token in the settings, if there is one.

    Raises:
        InvalidSetting: They have two, or name a file that cannot be read or has no token.
        Refused: The file is another user's, or others can read or write it.
    """
    path, token = settings.token_file, settings.token.get_secret_value() if settings.token else None
    if path is None:
        return token
    if token is not None:
        raise _wrong(Problem(_FILE, "HOLDFAST_TOKEN is also set", hint="unset one of them"))
    return token_in_file(path, _FILE)


def token_in_file(path: Path, named_by: str) -> str:
    """Read a token from a file that only its owner can read.

    Args:
        path: The file.
        named_by: The setting or the flag that names it.

    Raises:
        InvalidSetting: It cannot be read, or has no token.
        Refused: It is another user's, or others can read or write it.
    """
    try:
        text = read_private(path, otherwise=f"set {named_by} to a file of your own")
    except OSError as error:
        hint = f"create one: (umask 077; openssl rand -hex 32 > {path})"
        if named_by == FLAG:
            hint = "create a token, and store it in a file of mode 0600: holdfast token create NAME"
        raise _wrong(Problem(named_by, f"cannot read {path}: {error.strerror}", hint=hint)) from error
    token = _token_in(text)
    if token is None:
        raise _wrong(Problem(named_by, f"{path} has no token", hint="it is one line of printable ASCII characters"))
    return token


def kept_token(directory: DataDir, name: str = "token") -> str:
    """Return the token of a data directory's servers, and create it if there is none.

    Args:
        directory: The directory.
        name: The name of the file; another one is another secret of the servers.

    Raises:
        Refused: It is another user's, or others can read or write it.
        Unavailable: It cannot be read or written, or the file has no token.
    """
    path = directory.path / name
    try:
        with trusted_folder(directory.path) as folder:
            try:
                token = _token_in(read_private(path, folder=folder))
            except FileNotFoundError:
                return _create_token(path, folder)
    except OSError as error:
        msg = f"cannot use {path}: {error.strerror}"
        raise Unavailable(msg) from error
    if token is None:
        msg = f"{path} has no token"
        raise Unavailable(msg, hint=f"remove it, so that a new one is created: rm {path}")
    return token


def _create_token(path: Path, folder: int) -> str:
    """Create a token, which is on the disk before anybody can use it."""
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    write_private(path, f"{token}\n", folder)
    return token


def write_private(path: Path, text: str, folder: int) -> None:
    """Write a file that only its owner can read, all of it or nothing.

    Args:
        path: The file.
        text: What to write.
        folder: The descriptor of its directory.

    Raises:
        Refused: A file that was left over is another user's.
        OSError: It cannot be written.
    """
    fresh = path.with_name(f"{path.name}.new")
    fd = open_trusted(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, folder=folder)
    with os.fdopen(fd, "w") as file:
        # A file left over from before keeps its mode, and the umask may differ.
        os.fchmod(fd, _PRIVATE)
        file.write(text)
        file.flush()
        os.fsync(fd)
    os.replace(fresh.name, path.name, src_dir_fd=folder, dst_dir_fd=folder)


def _token_in(text: str) -> str | None:
    token = text.strip()
    return token if token and token.isascii() and token.isprintable() else None


def _wrong(problem: Problem) -> InvalidSetting:
    msg = "A setting is not valid."
    return InvalidSetting(msg, problems=[problem])
