"""Deletes work directories of ended runs in processes of its own, so that no run waits for it.

Only a few run at a time, and one per account: an account whose files are many, or grow while they are deleted, delays
only itself. What cannot be deleted, or not in time, stays until the rest of its job is deleted.
"""

from __future__ import annotations

import os
import signal
import socket
from collections import deque
from contextlib import suppress
from pathlib import Path
from selectors import EVENT_READ

from ..complaints import complain, complain_of_exception
from ..libc import set_name
from .folder import clear

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from selectors import BaseSelector
    from typing import NoReturn

LIMIT_S = 120.0
"""Seconds that the deletion of one work directory may take."""
_KILLED_AFTER_S = 150
AT_ONCE = 4
MOST_WAITING = 10_000
"""The most work directories of one account per process, which deletes some hundreds of small ones a second."""
_KILLED = "the process that should have deleted it was killed"
_NICENESS = 10
_MOST_BYTES = 4096


class Clearing:
    """The work directories to delete, and those being deleted."""

    def __init__(self, fork: Callable[[str, socket.socket], None], selector: BaseSelector) -> None:
        """``fork`` starts a process that deletes a path and reports over a socket."""
        self._fork = fork
        self._selector = selector
        self._waiting: dict[int, deque[str]] = {}
        """Paths by account number; the account that has waited longest is first."""
        self._going: set[int] = set()
        """Account numbers."""
        self._named: set[int] = set()
        """Accounts for which a failure was logged."""

    @property
    def busy(self) -> bool:
        """Whether there is anything to delete."""
        return bool(self._waiting or self._going)

    def add(self, path: str) -> None:
        """Have a work directory deleted soon."""
        try:
            owner = Path(path).parent.lstat().st_uid
        except OSError:
            return
        paths = self._waiting.setdefault(owner, deque())
        if len(paths) < MOST_WAITING:
            paths.append(path)
        else:
            self._name(owner, f"{path} stays until its job is deleted: too many are to be deleted before it")
        self._begin()

    def _begin(self) -> None:
        for owner in [owner for owner in self._waiting if owner not in self._going]:
            if len(self._going) >= AT_ONCE:
                return
            paths = self._waiting.pop(owner)
            self._delete(owner, paths.popleft())
            if paths:
                self._waiting[owner] = paths

    def _delete(self, owner: int, path: str) -> None:
        ours, theirs = socket.socketpair()
        ours.settimeout(0)
        with theirs:
            try:
                self._fork(path, theirs)
            except OSError as error:
                ours.close()
                self._name(owner, f"{path} stays until its job is deleted: {error}")
                return
        self._going.add(owner)
        self._selector.register(ours, EVENT_READ, lambda: self._ended(ours, owner, path))

    def _ended(self, sock: socket.socket, owner: int, path: str) -> None:
        try:
            answer = sock.recv(_MOST_BYTES).decode(errors="replace")
        except OSError:
            answer = _KILLED
        self._selector.unregister(sock)
        sock.close()
        self._going.discard(owner)
        if answer != "gone":
            self._name(owner, f"{path} stays until its job is deleted: {answer or _KILLED}")
        self._begin()

    def _name(self, owner: int, what: str) -> None:
        """Log what could not be deleted, once per account."""
        if owner not in self._named:
            self._named.add(owner)
            complain(what)


def become(path: str, fd: int) -> NoReturn:
    """Delete a work directory in a process forked for it, report the result, and end."""
    try:
        os.setsid()
        set_name("holdfast-clear")
        os.nice(_NICENESS)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_KILLED_AFTER_S)
        answer = clear(path, LIMIT_S) or "gone"
        with suppress(BrokenPipeError):  # The shim was killed meanwhile.
            os.write(fd, answer.encode(errors="backslashreplace")[:_MOST_BYTES])
    except BaseException:  # noqa: BLE001 - nothing above this may go on in this process
        complain_of_exception()
    finally:
        os._exit(0)
