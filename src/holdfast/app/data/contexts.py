"""Servers that a person has named, with the tokens to get in, and which of them is asked when nothing else is said.

The list is a file that only its owner can read. A token is in the keyring of the desktop where there is one, and else
in that file.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import platformdirs

from holdfast.app.data.trust import open_trusted, read_private, trusted_folder
from holdfast.domain.record import Struct
from holdfast.errors import Conflict, InvalidSetting, NotFound, Problem, Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LOCAL = "local"
"""The name of no context: the server of the data directory."""
_SERVICE = "holdfast"
_FILE = "contexts.json"
_OTHERWISE = "remove it and log in again"


class Context(Struct, frozen=True):
    """A server with a name."""

    name: str
    url: str
    token: str | None = None
    """Where the token is not in a keyring."""
    in_keyring: bool = False


class _Keyring(Protocol):
    def get_password(self, service: str, name: str) -> str | None: ...

    def set_password(self, service: str, name: str, password: str) -> None: ...

    def delete_password(self, service: str, name: str) -> None: ...


class Contexts:
    """The list, as it was when it was read; whoever changes it last is right."""

    def __init__(self) -> None:
        """Read it.

        Raises:
            Refused: It is another user's, or others can read or write it.
            Unavailable: It cannot be read.
        """
        self.file = _place() / _FILE
        self.current, self._known = LOCAL, dict[str, Context]()
        try:
            stored: dict[str, Any] = json.loads(read_private(self.file, otherwise=_OTHERWISE))
            self.current = str(stored["current"])
            self._known = {name: Context(name, **facts) for name, facts in stored["contexts"].items()}
        except FileNotFoundError:
            return
        except OSError as error:
            message = f"cannot read {self.file}: {error.strerror}"
            raise Unavailable(message) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            message = f"{self.file} is not what `holdfast login` writes"
            raise Unavailable(message, hint=_OTHERWISE) from error

    @property
    def all(self) -> Mapping[str, Context]:
        """Every one, by name."""
        return self._known

    def named(self, name: str) -> Context:
        """Return one.

        Raises:
            NotFound: There is none of that name.
        """
        if name not in self._known:
            message = f"there is no context {name!r}"
            raise NotFound(message, hint=f"the contexts are: {', '.join((LOCAL, *sorted(self._known)))}")
        return self._known[name]

    def add(self, name: str, url: str, token: str | None = None, *, replace: bool = False) -> Context:
        """Add one, or replace what has its name.

        Raises:
            Conflict: The name is taken.
            Unavailable: It cannot be written.
        """
        if name == LOCAL or (name in self._known and not replace):
            message = f"there is a context {name!r} already"
            raise Conflict(message, hint=f"choose another name, or remove it: holdfast context remove {name}")
        in_keyring = token is not None and _is_kept(name, token)
        self._known[name] = context = Context(name, url, None if in_keyring else token, in_keyring)
        self._write()
        return context

    def use(self, name: str) -> None:
        """Have one asked from now on when nothing else is said.

        Raises:
            NotFound: There is none of that name.
            Unavailable: It cannot be written.
        """
        self.current = LOCAL if name == LOCAL else self.named(name).name
        self._write()

    def remove(self, name: str) -> None:
        """Forget one and its token; if it was the current one, none is.

        Raises:
            NotFound, Unavailable: As ``use``.
        """
        keyring = _keyring() if self.named(name).in_keyring else None
        if keyring is not None:
            with suppress(Exception):  # it was removed there, each keyring says so in its own way
                keyring.delete_password(_SERVICE, name)
        del self._known[name]
        self.current = LOCAL if self.current == name else self.current
        self._write()

    def token(self, name: str) -> str | None:
        """Return the token of one, if it has any.

        Raises:
            Unavailable: It is in a keyring that is not there or not open.
        """
        context = self.named(name)
        if not context.in_keyring:
            return context.token
        keyring = _keyring()
        try:
            password = keyring.get_password(_SERVICE, name) if keyring is not None else None
        except Exception as error:  # of each keyring's own
            message = f"the keyring does not give the token of {name}: {error}"
            raise Unavailable(message) from error
        if password is None:
            message = f"the token of {name} is not in the keyring"
            raise Unavailable(message, hint=f"log in again: holdfast login {context.url} --name {name}")
        return password

    def _write(self) -> None:
        stored = {
            context.name: {"url": context.url, "token": context.token, "in_keyring": context.in_keyring}
            for context in self.all.values()
        }
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh = self.file.with_suffix(".new")
            with trusted_folder(self.file.parent, otherwise=_OTHERWISE) as folder:
                with suppress(FileNotFoundError):
                    os.unlink(fresh.name, dir_fd=folder)
                fd = open_trusted(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, folder=folder)
                with os.fdopen(fd, "w") as file:
                    json.dump({"current": self.current, "contexts": stored}, file, indent=1)
                    file.flush()
                    os.fsync(fd)
                os.replace(fresh.name, self.file.name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError as error:
            message = f"cannot write {self.file}: {error.strerror}"
            raise Unavailable(message) from error


def chosen(name: str | None) -> tuple[str, str | None] | None:
    """Return the address and the token of a context, by default of the current one; ``None``: there is none.

    Raises:
        InvalidSetting: There is none of the name that was given.
        Refused, Unavailable: The list or the token cannot be read.
    """
    if name == LOCAL or (name is None and not (_place() / _FILE).exists()):
        return None
    contexts = Contexts()
    chosen_name = contexts.current if name is None else name
    if chosen_name == LOCAL:
        return None
    try:
        return contexts.named(chosen_name).url, contexts.token(chosen_name)
    except NotFound as error:
        raise InvalidSetting(problems=[Problem("HOLDFAST_CONTEXT", error.message, hint=error.hint)]) from error


def _place() -> Path:
    return platformdirs.user_config_path("holdfast", appauthor=False)


def _is_kept(name: str, token: str) -> bool:
    """Put a token into the keyring; returns whether there is one that took it."""
    keyring = _keyring()
    with suppress(Exception):  # of each keyring's own: locked, without a desktop, refused
        if keyring is not None:
            keyring.set_password(_SERVICE, name, token)
            return True
    return False


def _keyring() -> _Keyring | None:
    """Return the keyring of this desktop, if there is one that keeps anything."""
    try:
        import keyring
        from keyring.backends import fail, null
    except ImportError:
        return None
    backend = keyring.get_keyring()
    return None if isinstance(backend, fail.Keyring | null.Keyring) else backend
