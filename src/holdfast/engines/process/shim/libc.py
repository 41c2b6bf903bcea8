"""The calls of the C library that Python does not offer; where there is no such call, nothing happens."""

from __future__ import annotations

import errno
import os

try:
    import ctypes
except ImportError:  # a Python built without it
    ctypes = None  # type: ignore[assignment]  # -- the checker knows modules only as present

_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_GET_SECUREBITS = 27
_NO_SETUID_FIXUP = 1 << 2
_PUNCH_HOLE_KEEP_SIZE = 3
_CAPABILITIES_VERSION = 0x20080522
_KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "loongarch64": 219, "ppc64le": 271, "s390x": 280}
"""The number of that system call, which the C library has no function for."""
_JOIN_SESSION_KEYRING = 1
_libc = getattr(ctypes, "CDLL", lambda *_, **__: None)(None, use_errno=True)
"""Opened once: that costs every process that does it a hundred pages."""
_prctl = getattr(_libc, "prctl", None)


def adopt_orphans() -> None:
    """Become the parent of every orphan below, so that no process a run leaves behind is lost."""
    if _prctl is not None:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def gain_no_privileges() -> None:
    """Have no program that this process becomes or starts gain any by being setuid; raises OSError if it cannot be."""
    if _prctl is None or _prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


def keeps_rights() -> bool:
    """Whether root keeps its rights when it becomes another account, by the securebit ``no_setuid_fixup``."""
    return _prctl is not None and bool(_prctl(_PR_GET_SECUREBITS, 0, 0, 0, 0) & _NO_SETUID_FIXUP)


def give_up_capabilities() -> None:
    """Have none of root's rights left, nor any to inherit.

    Raises:
        OSError: They cannot be given up.
    """
    if _libc is None or not hasattr(_libc, "capset"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    header, none = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION, 0), (ctypes.c_uint32 * 6)()
    if _libc.capset(header, none) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def leave_keyring() -> None:
    """Join a session keyring that is new and empty: whoever inherits one can read the keys in it, whosever they are.

    Raises:
        OSError: There are keyrings, and it cannot be left.
    """
    number = _KEYCTL.get(os.uname().machine)
    if _libc is None or number is None:
        return
    if _libc.syscall(ctypes.c_long(number), ctypes.c_long(_JOIN_SESSION_KEYRING), None) < 0:
        refused = ctypes.get_errno()
        if refused not in {errno.ENOSYS, errno.EPERM}:  # a kernel or a container where nobody has any
            raise OSError(refused, os.strerror(refused))


def set_name(name: str) -> None:
    """Name the calling process for ``ps`` and ``top``; at most 15 characters count."""
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
