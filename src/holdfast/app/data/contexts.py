"""The servers that a person has named, with their tokens, and which of them commands use by default.

The list is a file that only its owner can read. Tokens are in the keyring of the desktop if there is one, otherwise in
that file.
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
    """The token, if it is not in a keyring."""
    in_keyring: bool = False


class _Keyring(Protocol):
    def get_password(self, service: str, name: str) -> str | None: ...

    def set_password(self, service: str, name: str, password: str) -> None: ...

    def delete_password(self, service: str, name: str) -> None: ...


class Contexts:
    """The list as it was read; the last change wins."""

    def __init__(self) -> None:
        """Read the list.

        Raises:
            Refused: It is another user's, or others can read or write it.
            Unavailable: It cannot be read.
        """
        self.file = _place() / _FILE
        self.current, self._by_name = LOCAL, dict[str, Context]()
        try:
            stored: dict[str, Any] = json.loads(read_private(self.file, otherwise=_OTHERWISE))
            self.current = str(stored["current"])
            self._by_name = {name: Context(name, **facts) for name, facts in stored["contexts"].items()}
        except FileNotFoundError:
            return
        except OSError as error:
            message = f"cannot read {self.file}: {error.strerror}"
            raise Unavailable(message) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            message = f"{self.file} was not written by `holdfast login`"
            raise Unavailable(message, hint=_OTHERWISE) from error

    @property
    def all(self) -> Mapping[str, Context]:
        """All contexts, by name."""
        return self._by_name

    def named(self, name: str) -> Context:
        """Return a context by its name.

        Raises:
            NotFound: There is none of that name.
        """
        if name not in self._by_name:
            message = f"there is no context {name!r}"
            raise NotFound(message, hint=f"the contexts are: {', '.join((LOCAL, *sorted(self._by_name)))}")
        return self._by_name[name]

    def add(self, name: str, url: str, token: str | None = None, *, replace: bool = False) -> Context:
        """Add a context, or replace the one with its name.

        Raises:
            Conflict: The name is taken.
            Unavailable: It cannot be written.
        """
        if name == LOCAL or (name in self._by_name and not replace):
            message = f"a context {name!r} exists already"
            raise Conflict(message, hint=f"choose another name, or remove it: holdfast context remove {name}")
        in_keyring = token is not None and _put_in_keyring(name, token)
        self._by_name[name] = context = Context(name, url, None if in_keyring else token, in_keyring)
        self._write()
        return context

    def use(self, name: str) -> None:
        """Use a context by default from now on.

        Raises:
            NotFound: There is none of that name.
            Unavailable: It cannot be written.
        """
        self.current = LOCAL if name == LOCAL else self.named(name).name
        self._write()

    def remove(self, name: str) -> None:
        """Remove a context and its token; if it was the current one, none is current.

        Raises:
            NotFound, Unavailable: As ``use``.
        """
        keyring = _keyring() if self.named(name).in_keyring else None
        if keyring is not None:
            with suppress(Exception):  # removed already, which each keyring reports in its own way
                keyring.delete_password(_SERVICE, name)
        del self._by_name[name]
        self.current = LOCAL if self.current == name else self.current
        self._write()

    def token(self, name: str) -> str | None:
        """Return the token of a context, if it has one.

        Raises:
            Unavailable: It is in a keyring that is missing or locked.
        """
        context = self.named(name)
        if not context.in_keyring:
            return context.token
        keyring = _keyring()
        try:
            password = keyring.get_password(_SERVICE, name) if keyring is not None else None
        except Exception as error:  # each keyring has its own errors
            message = f"the token of {name} cannot be read from the keyring: {error}"
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
    """Return the address and the token of a context, by default of the current one; ``None`` if there is none.

    Raises:
        InvalidSetting: There is none of the given name.
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


def _put_in_keyring(name: str, token: str) -> bool:
    """Put a token into the keyring, and return whether there is one that accepted it."""
    keyring = _keyring()
    with suppress(Exception):  # each keyring has its own errors: locked, without a desktop, refused
        if keyring is not None:
            keyring.set_password(_SERVICE, name, token)
            return True
    return False


def _keyring() -> _Keyring | None:
    """Return the keyring of this desktop, if there is one that stores anything."""
    try:
        import keyring
        from keyring.backends import fail, null
    except ImportError:
        return None
    backend = keyring.get_keyring()
    return None if isinstance(backend, fail.Keyring | null.Keyring) else backend
