"""Calls of the C library that Python does not offer; where a call does not exist, nothing happens."""

from __future__ import annotations

import errno
import os

try:
    import ctypes
except ImportError:  # A Python built without ctypes.
    ctypes = None  # type: ignore[assignment]  # -- the checker knows modules only as present

_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_GET_SECUREBITS = 27
_NO_SETUID_FIXUP = 1 << 2
_PUNCH_HOLE_KEEP_SIZE = 3
_CAPABILITIES_VERSION = 0x20080522
_KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "loongarch64": 219, "ppc64le": 271, "s390x": 280}
"""The number of the system call, for which the C library has no function."""
_JOIN_SESSION_KEYRING = 1
_libc = getattr(ctypes, "CDLL", lambda *_, **__: None)(None, use_errno=True)
"""Opened once: opening it costs each process a hundred pages."""
_prctl = getattr(_libc, "prctl", None)


def adopt_orphans() -> None:
    """Become the parent of every orphan below this process, so that no process of a run is lost."""
    if _prctl is not None:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def gain_no_privileges() -> None:
    """Keep this process and its programs from gaining privileges by setuid; raises OSError if that fails."""
    if _prctl is None or _prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


def keeps_rights() -> bool:
    """Whether root keeps its rights when it becomes another account, by the securebit ``no_setuid_fixup``."""
    return _prctl is not None and bool(_prctl(_PR_GET_SECUREBITS, 0, 0, 0, 0) & _NO_SETUID_FIXUP)


def give_up_capabilities() -> None:
    """Give up all of root's rights, including inheritable ones.

    Raises:
        OSError: They cannot be given up.
    """
    if _libc is None or not hasattr(_libc, "capset"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    header, none = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION, 0), (ctypes.c_uint32 * 6)()
    if _libc.capset(header, none) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def leave_keyring() -> None:
    """Join a new, empty session keyring: an inherited one lets this process read the keys in it, whoever owns them.

    Raises:
        OSError: There are keyrings, and the inherited one cannot be left.
    """
    number = _KEYCTL.get(os.uname().machine)
    if _libc is None or number is None:
        return
    if _libc.syscall(ctypes.c_long(number), ctypes.c_long(_JOIN_SESSION_KEYRING), None) < 0:
        refused = ctypes.get_errno()
        if refused not in {errno.ENOSYS, errno.EPERM}:  # A kernel or container without keyrings.
            raise OSError(refused, os.strerror(refused))


def set_name(name: str) -> None:
    """Name the calling process for ``ps`` and ``top``; only 15 characters count."""
    try:
        fd = os.open("/proc/self/comm", os.O_WRONLY)
        os.write(fd, name.encode())
        os.close(fd)
    except OSError:
        return


def punch_hole(fd: int, length: int) -> bool:
    """Free the first ``length`` bytes of a file without moving the rest; returns whether the file system could."""
    if _libc is None:
        return False
    try:
        offsets = (ctypes.c_int64(0), ctypes.c_int64(length))
        return bool(_libc.fallocate(fd, _PUNCH_HOLE_KEEP_SIZE, *offsets) == 0)
    except (OSError, AttributeError):
        return False
