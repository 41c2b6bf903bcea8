"""Explains why an existing program cannot be started: what is wrong with its first line or its loader.

The kernel's error number is about the interpreter but names the script. The program belongs to the run's account; the
caller acts with that account's rights.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

_SEEN = 256
"""Bytes of a program that Linux searches for its interpreter."""
_DEEPEST = 5
"""Interpreters that are scripts themselves; Linux follows so many."""
_ELF = b"\x7fELF"


def trouble(number: int, path: str, directory: str) -> str:
    """Say what keeps a program in a directory from starting; empty if the system's error says it all."""
    if number == errno.ENOEXEC:
        return _unknown_form(_head(Path(directory, path)))
    if number not in {errno.ENOENT, errno.EACCES}:
        return ""
    script, file = path, Path(directory, path)
    for _ in range(_DEEPEST):
        head = _head(file) if _can_be_executed(file) else b""
        if head.startswith(_ELF) and number == errno.ENOENT:
            return f"{_shown(script)} is there, but not the loader that it was built for"
        interpreter = _interpreter(head)
        if not interpreter:
            break
        file = Path(directory, interpreter)
        if not _can_be_executed(file):
            return _no_interpreter(script, interpreter, is_there=number == errno.EACCES)
        script = interpreter
    return ""


def _can_be_executed(path: Path) -> bool:
    return os.access(path, os.X_OK, effective_ids=True)


def _no_interpreter(script: str, interpreter: str, *, is_there: bool) -> str:
    named = f"the interpreter {_shown(interpreter)} that {_shown(script)} names in its #! line"
    if interpreter.endswith("\r"):
        return f"{named} does not exist: its lines end as on Windows; convert it: sed -i 's/\\r$//' {_shown(script)}"
    return f"{named} {'cannot be executed' if is_there else 'does not exist'}"


def _unknown_form(head: bytes) -> str:
    if head.startswith(_ELF):
        return "it was built for another kind of machine"
    if head.startswith(b"#!"):
        return "its #! line names no interpreter"
    if b"\0" in head:
        return ""
    return "it is empty" if not head else "it does not begin with a #! line, such as #!/bin/sh"


def _interpreter(head: bytes) -> str:
    """Return the interpreter in a script's first line; empty if there is none, or it is no script."""
    if not head.startswith(b"#!"):
        return ""
    words = head[2:].partition(b"\n")[0].partition(b"\0")[0].replace(b"\t", b" ").strip(b" ").split(b" ")
    return os.fsdecode(words[0])


def _head(path: Path) -> bytes:
    """Read the beginning of a regular file; empty if it is none or cannot be read."""
    with suppress(OSError, ValueError):
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                return os.pread(fd, _SEEN, 0)
        finally:
            os.close(fd)
    return b""


def _shown(path: str) -> str:
    return repr(path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"))
