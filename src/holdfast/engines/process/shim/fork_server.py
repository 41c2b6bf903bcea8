"""The process from which supervisors, and deleters of work directories, are forked.

It does nothing else, so that its children share nearly all their memory. Forked from the shim itself, each would get
its own copy of whatever the shim changes afterwards.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import socket
import sys
from contextlib import suppress

from . import processes
from .complaints import complain_of_exception
from .libc import adopt_orphans, set_name
from .removal import clearing
from .supervisor.process import Supervisor
from .supervisor.surroundings import heed_children, set_oom_score

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from .cgroups import Cgroups, Group
    from .supervisor.surroundings import Surroundings

_CLOSED_ON_EXEC = False
_FD_BYTES = 4
"""A descriptor, as it is passed in a message."""
_MOST_BYTES = 8192
"""The content of a request: the number of a supervisor, or the path to delete."""


class ForkServer:
    """The shim's side; it forks the server again if that was killed."""

    def __init__(self, surroundings: Surroundings, cgroups: Cgroups | None) -> None:
        """Fork it; raises OSError."""
        self._surroundings = surroundings
        self._cgroups = cgroups
        self.pid, self._sock = self._make()

    def supervisor(self, number: int, sock: socket.socket) -> None:
        """Fork a supervisor that talks over a socket; raises OSError."""
        self._insist(b"%d" % number, sock)

    def clear(self, path: str, sock: socket.socket) -> None:
        """Fork a process that deletes a work directory and reports over a socket; raises OSError."""
        self._insist(os.fsencode(path), sock)

    def _insist(self, request: bytes, sock: socket.socket) -> None:
        try:
            self._ask(request, sock)
        except OSError:  # The fork server was killed.
            self._sock.close()
            self.pid, self._sock = self._make()
            self._ask(request, sock)

    def _ask(self, request: bytes, sock: socket.socket) -> None:
        socket.send_fds(self._sock, [request], [sock.fileno()])

    def wake(self) -> None:
        """Resume it, in case somebody suspended it."""
        if processes.is_suspended(self.pid):
            processes.resume(self.pid)

    def close(self) -> None:
        """Close it."""
        self._sock.close()

    def _make(self) -> tuple[int, socket.socket]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            pid = os.fork()
        except OSError:
            ours.close()
            theirs.close()
            raise
        if pid == 0:
            _serve(theirs, self._surroundings, self._cgroups)
        theirs.close()
        ours.settimeout(0)
        return pid, ours


def _serve(sock: socket.socket, surroundings: Surroundings, cgroups: Cgroups | None) -> NoReturn:
    """Fork a process for each request until the shim is gone.

    Memory that this loop touches is no longer shared with earlier supervisors: so it does little, and plainly.
    """
    with suppress(BaseException):
        set_name("holdfast-fork")
        signal.set_wakeup_fd(-1)
        signal.signal(
            signal.SIGCHLD, signal.SIG_IGN
        )  # A supervisor that has ended must not count as a process any more.
        kept = sorted({sock.fileno(), surroundings.home})
        os.closerange(3, kept[0])
        os.closerange(kept[0] + 1, kept[1])
        os.closerange(kept[1] + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        gc.collect()
        filling = _fill_pages()
        gc.freeze()
        gc.disable()
        room = socket.CMSG_SPACE(_FD_BYTES)
        while filling:
            request, passed, _, _ = sock.recvmsg(_MOST_BYTES, room)
            if not request:
                break
            fd = int.from_bytes(passed[0][2], sys.byteorder)
            if _fork(fd) == 0:
                # Whoever holds it could speak for the supervisor and outlive it.
                os.set_inheritable(fd, _CLOSED_ON_EXEC)
                sock.close()
                _become(request, fd, surroundings, cgroups)
            os.close(fd)
    os._exit(0)


def _fork(fd: int) -> int:
    """Fork; if that is refused, tell the shim why and return a number that no child has."""
    try:
        return os.fork()
    except OSError as error:
        _tell_failure(fd, error)
        return -1


def _tell_failure(fd: int, error: OSError) -> None:
    """Tell the shim why no supervisor will answer at the other end."""
    with suppress(OSError):
        os.write(fd, b'{"failed":%d}\n' % (error.errno or 0))


def _fill_pages() -> list[object]:
    """Fill up partly used memory pages, so that what a supervisor allocates unshares few of them."""
    filling: list[object] = [bytes(size) for size in range(15, 495, 16) for _ in range(120)]
    filling += [[None] * size for size in range(1, 60) for _ in range(30)]
    filling += [{number: number} for number in range(300)]
    return filling


def _become(request: bytes, fd: int, surroundings: Surroundings, cgroups: Cgroups | None) -> NoReturn:
    """Turn a newly forked child into what was requested; ends the process."""
    if request.isdigit():
        number = int(request)
        _become_supervisor(number, fd, surroundings, None if cgroups is None else cgroups.group(number))
    if surroundings.oom_scores is not None:
        set_oom_score(surroundings.oom_scores[1])
    clearing.become(os.fsdecode(request), fd)


def _begun(number: int, fd: int, surroundings: Surroundings, group: Group | None) -> Supervisor:
    try:
        return Supervisor(number, fd, surroundings, group)
    except OSError as error:
        _tell_failure(fd, error)
        raise


def _become_supervisor(number: int, fd: int, surroundings: Surroundings, group: Group | None) -> NoReturn:
    """Turn a newly forked child into a supervisor; ends the process."""
    code = 1
    try:
        os.setsid()
        heed_children()
        set_name("holdfast-run")
        kept = sorted({fd, surroundings.home})
        os.closerange(3, kept[0])
        os.closerange(kept[0] + 1, kept[1])
        os.closerange(kept[1] + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        if surroundings.files_limit is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, surroundings.files_limit)
        adopt_orphans()
        _begun(number, fd, surroundings, group).serve()
        code = 0
    except BaseException:  # noqa: BLE001 - nothing above this may go on in this process
        complain_of_exception()
    finally:
        os._exit(code)
