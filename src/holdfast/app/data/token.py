"""The token of a server: one that a setting gives, else one that is made at its first start and kept."""

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
    """Return the token that the settings give, if they do.

    Raises:
        InvalidSetting: They give two, or name a file that cannot be read or holds no token.
        Refused: The file is another user's, or others can read or write it.
    """
    path, token = settings.token_file, settings.token.get_secret_value() if settings.token else None
    if path is None:
        return token
    if token is not None:
        raise _wrong(Problem(_FILE, "HOLDFAST_TOKEN is set, too", hint="unset one of them"))
    return token_in_file(path, _FILE)


def token_in_file(path: Path, named_by: str) -> str:
    """Read a token from a file that only its owner can read.

    Args:
        path: The file.
        named_by: The setting or the flag that names it.

    Raises:
        InvalidSetting: It cannot be read, or holds no token.
        Refused: It is another user's, or others can read or write it.
    """
    try:
        text = read_private(path, otherwise=f"set {named_by} to a file of your own")
    except OSError as error:
        hint = f"make one: (umask 077; openssl rand -hex 32 > {path})"
        hint = "holdfast token create NAME makes a token; keep it in a file of mode 0600" if named_by == FLAG else hint
        raise _wrong(Problem(named_by, f"cannot read {path}: {error.strerror}", hint=hint)) from error
    token = _token_in(text)
    if token is None:
        raise _wrong(Problem(named_by, f"{path} holds no token", hint="it is one line of printable ASCII characters"))
    return token


def kept_token(directory: DataDir, name: str = "token") -> str:
    """Return the token of the servers of a data directory, one after the other; its owner makes it if there is none.

    Args:
        directory: The directory.
        name: Of the file; another one is a key of theirs alone.

    Raises:
        Refused: It is another user's, or others can read or write it.
        Unavailable: It cannot be read or written, or the file holds no token.
    """
    path = directory.path / name
    try:
        with trusted_folder(directory.path) as folder:
            try:
                token = _token_in(read_private(path, folder=folder))
            except FileNotFoundError:
                return _made(path, folder)
    except OSError as error:
        msg = f"cannot use {path}: {error.strerror}"
        raise Unavailable(msg) from error
    if token is None:
        msg = f"{path} holds no token"
        raise Unavailable(msg, hint=f"have a new one made: rm {path}")
    return token


def _made(path: Path, folder: int) -> str:
    """Make a token; it is on the disk before anybody can use it."""
    token, fresh = secrets.token_urlsafe(_TOKEN_BYTES), path.with_suffix(".new")
    fd = open_trusted(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, folder=folder)
    with os.fdopen(fd, "w") as file:
        os.fchmod(fd, _PRIVATE)  # whatever was left there, and whatever the umask
        file.write(f"{token}\n")
        file.flush()
        os.fsync(fd)
    os.replace(fresh.name, path.name, src_dir_fd=folder, dst_dir_fd=folder)
    return token


def _token_in(text: str) -> str | None:
    token = text.strip()
    return token if token and token.isascii() and token.isprintable() else None


def _wrong(problem: Problem) -> InvalidSetting:
    msg = "A setting is not valid."
    return InvalidSetting(msg, problems=[problem])
