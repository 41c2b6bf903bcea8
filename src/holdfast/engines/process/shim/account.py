"""The Unix account that a program runs as, if not the server's: only root can switch, and only the child does.

The account can replace the files of such a run by anything. Whatever is done with them is done with the account's
rights: so a link leads nowhere that the account could not go itself.
"""

from __future__ import annotations

import errno
import os
import pwd
import signal
from contextlib import contextmanager

from .libc import gain_no_privileges, give_up_capabilities, leave_keyring

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, NoReturn

_NOBODY = 65534
_UMASK = 0o022
_ENTERING, _STARTING, _INVALID = "entering", "starting", "invalid"
_LONGEST_COMPLAINT, _COULD_NOT = 64, 127
IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT)
"""Signals that a program must not find ignored; handlers disappear by themselves when it starts."""


class NoAccount(Exception):
    """The account does not exist, or no longer."""


class CannotEnter(OSError):
    """The account cannot enter the working directory, or there is none."""


class Account:
    """An account as an order names it; ``look_up`` completes it."""

    __slots__ = ("environment", "gid", "groups", "name", "uid")

    def __init__(self, name: str, uid: int | None) -> None:
        """Remember the account as it was when the run was submitted."""
        self.name = name
        self.uid = -1 if uid is None else uid
        self.gid = _NOBODY
        self.groups: Sequence[int] = ()
        self.environment: Mapping[str, str] = {}

    @classmethod
    def of(cls, order: Mapping[str, Any]) -> Account | None:
        """Return the account an order names, or ``None`` if the program runs as the server's account."""
        named = order.get("account")
        return None if named is None else cls(*named)

    def look_up(self) -> None:
        """Ask the system for its groups and home, which may take as long as a directory service does.

        Raises:
            NoAccount: It no longer exists, or its number belongs to another account by now.
        """
        try:
            entry = pwd.getpwnam(self.name)
        except KeyError:
            msg = f"there is no account {self.name!r} on this machine"
            raise NoAccount(msg) from None
        if entry.pw_uid != self.uid:
            had = "nobody knows which number it had" if self.uid < 0 else f"it had number {self.uid}"
            msg = f"the account {self.name!r} has number {entry.pw_uid}, and when the job was submitted {had}"
            raise NoAccount(msg)
        self.gid, self.groups = entry.pw_gid, os.getgrouplist(entry.pw_name, entry.pw_gid)
        shell = entry.pw_shell or "/bin/sh"
        self.environment = {"HOME": entry.pw_dir, "USER": self.name, "LOGNAME": self.name, "SHELL": shell}

    def give(self, path: str) -> None:
        """Make it the owner of a new file, in a directory that only the server's account can change."""
        os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def owns(self, path: str) -> bool:
        """Whether a file exists and is its own."""
        try:
            return os.lstat(path).st_uid == self.uid
        except FileNotFoundError:
            return True


@contextmanager
def acting(account: Account | None) -> Iterator[None]:
    """Act with an account's rights only; ours are set aside, so that it can neither signal nor trace us."""
    if account is None:
        yield
        return
    gid, groups = os.getegid(), os.getgroups()
    try:
        os.setgroups(account.groups)
        os.setegid(account.gid)
        os.seteuid(account.uid)
        yield
    finally:
        os.seteuid(0)
        os.setegid(gid)
        os.setgroups(groups)


def start(
    account: Account | None, logs: Sequence[int], *, enter: Callable[[], object], execute: Callable[[], object]
) -> int:
    """Start a program as an account, in a session of its own; returns its pid.

    Args:
        account: The account; ``None`` for the server's own.
        logs: Descriptors for its output; the last one is stderr.
        enter: Changes to its working directory; called with the account's rights, as is ``execute``.
        execute: Becomes the program.

    Raises:
        CannotEnter: It cannot start there.
        OSError: It cannot be started.
        ValueError: An argument cannot be passed to a system call.
    """
    reading, writing = os.pipe2(os.O_CLOEXEC)
    try:
        pid = os.fork()
    except OSError:
        os.close(reading)
        os.close(writing)
        raise
    if pid == 0:
        _become_the_program(writing, account, logs, enter, execute)
    os.close(writing)
    complaint = os.read(reading, _LONGEST_COMPLAINT).decode()
    os.close(reading)
    if not complaint:
        return pid
    os.waitpid(pid, 0)
    step, _, number = complaint.partition(" ")
    if step == _INVALID:
        msg = "embedded null byte"
        raise ValueError(msg)
    raise (CannotEnter if step == _ENTERING else OSError)(int(number), os.strerror(int(number)))


def _give_up_rights(account: Account) -> None:
    os.umask(_UMASK)
    if account.uid != 0:
        leave_keyring()  # Done while it still counts as the server's process: an account may have few processes.
    os.setgroups(account.groups)
    os.setresgid(account.gid, account.gid, account.gid)
    os.setresuid(account.uid, account.uid, account.uid)
    if account.uid != 0:
        give_up_capabilities()
    gain_no_privileges()


def _become_the_program(
    complaints: int,
    account: Account | None,
    logs: Sequence[int],
    enter: Callable[[], object],
    execute: Callable[[], object],
) -> NoReturn:
    """Give up our rights for good, then be the program; whoever forked us is told what keeps us from that."""
    step, number = _STARTING, errno.EIO
    try:
        os.setsid()
        for ignored in IGNORED_BY_PYTHON:
            signal.signal(ignored, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.dup2(logs[0], 1)
        os.dup2(logs[-1], 2)
        if account is not None:
            _give_up_rights(account)
        step = _ENTERING
        enter()
        step = _STARTING
        execute()
    except OSError as error:
        number = error.errno or errno.EIO
    except ValueError:
        step = _INVALID
    finally:
        os.write(complaints, f"{step} {number}".encode())
        os._exit(_COULD_NOT)
