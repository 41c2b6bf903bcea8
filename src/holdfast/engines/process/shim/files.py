"""Reads files that a run wrote, in bounded amounts; caps its log by freeing the oldest part."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from .libc import punch_hole

MESSAGE_BYTES = 4096
TAIL_BYTES = 4096
TAIL_LINES = 20
LOG_BYTES = 64 << 10
"""Bytes of a failed run's output that are handed over for rules to search."""
_BLOCK = 4096
_TOO_MANY_DIGITS = 19
_NO_ROOM = 64 << 10
"""Free bytes below which a disk counts as full: programs write several blocks at once."""


def read_head(path: str) -> str:
    """Return the first bytes of a file as text, empty if there is none."""
    return _text(path, MESSAGE_BYTES, from_end=False)


def tail(path: str, begin: int = 0) -> tuple[str, list[str]]:
    """Return the end of a file, without its first ``begin`` bytes, and its last lines; both bounded."""
    text = _text(path, LOG_BYTES, from_end=True, begin=begin).lstrip("\0")
    end = text.encode()[-TAIL_BYTES:].decode("utf-8", "replace")
    return text, last_lines(end)


def last_lines(text: str) -> list[str]:
    """Return the last lines of a text; what a progress bar overwrote counts as lines, too."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")
    return lines[-TAIL_LINES:] if text else []


def last_line(path: str, begin: int = 0) -> str:
    """Return the last non-empty line of a file, without its first ``begin`` bytes; bounded."""
    lines = _text(path, TAIL_BYTES, from_end=True, begin=begin).split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def offset_in(line: str) -> int:
    """Parse an offset in a line; 0 if it is invalid, because programs can write to the file, too."""
    return int(line) if line.isdecimal() and len(line) < _TOO_MANY_DIGITS else 0


def tail_text(path: str, size: int, owner: int | None = None) -> str:
    """Return the last lines of a file as text, bounded; empty if the owner has no such file."""
    text = _text(path, size, from_end=True, owner=owner)
    return text if len(text) < size else text[text.find("\n") + 1 :]


def text_from(path: str, begin: int, size: int) -> str:
    """Return the text of a file after its first ``begin`` bytes, bounded."""
    return _text(path, size, from_end=True, begin=begin)


def _text(path: str, size: int, *, from_end: bool, begin: int = 0, owner: int | None = None) -> str:
    try:
        fd = open_plain(path, os.O_RDONLY, owner)
    except OSError:
        return ""
    try:
        start = max(begin, os.fstat(fd).st_size - size) if from_end else begin
        return os.pread(fd, size, start).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(fd)


def open_plain(path: str, flags: int, owner: int | None = None) -> int:
    """Open a regular file: whatever a program put in its place must neither block nor redirect us.

    Raises:
        OSError: It does not exist; it is a link, a pipe or a directory; or it has not the given owner.
    """
    fd = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    status = os.fstat(fd)
    if stat.S_ISREG(status.st_mode) and owner in {None, status.st_uid}:
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, "not a plain file")


def is_full(directory: str) -> bool:
    """Whether a directory's file system is full, which may be why something failed."""
    try:
        facts = os.statvfs(directory)
    except OSError:
        return False
    return facts.f_bavail * facts.f_frsize < _NO_ROOM or lacks_inodes(directory)


def lacks_inodes(directory: str) -> bool:
    """Whether a directory's file system has run out of inodes, whatever space it has."""
    try:
        facts = os.statvfs(directory)
    except OSError:
        return False
    return facts.f_files > 0 and facts.f_favail == 0


def mark(path: str) -> tuple[int, int]:
    """Return a value that changes when a file does."""
    try:
        facts = os.lstat(path)
    except OSError:
        return 0, 0
    return facts.st_mtime_ns, facts.st_size


def cap(path: str, limit: int) -> None:
    """Free the oldest part of a log that takes more than ``limit`` bytes of disk, keeping the newest half of that.

    Its size and offsets stay the same, so that neither readers nor the program notice: the freed part becomes a hole.
    On a file system without holes the log starts again from nothing.
    """
    try:
        facts = os.lstat(path)
        if facts.st_blocks * 512 <= limit + _BLOCK or facts.st_nlink > 1:
            return
        fd = open_plain(path, os.O_RDWR)
    except OSError:
        return
    try:
        length = (facts.st_size - limit // 2) // _BLOCK * _BLOCK
        if length > 0 and not punch_hole(fd, length):
            with suppress(OSError):  # The disk has become read-only.
                os.ftruncate(fd, 0)
    finally:
        os.close(fd)
