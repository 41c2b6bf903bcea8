"""Which variables of the caller's shell a program is given: a virtual environment that is active stays active."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.cli.flags import Flags

USUAL = ("PATH", "VIRTUAL_ENV", "CONDA_*", "LD_LIBRARY_PATH", "PYTHONPATH")
"""What decides which program is found, and what it loads."""
ALL, NONE = "ALL", "NONE"
_OF_THE_SHELL = frozenset({"_", "OLDPWD", "PWD", "SHLVL"})
_OURS = "HOLDFAST_"
"""Begins what names a server and its token, which no program is given."""


def exported(chosen: str | None, environ: Mapping[str, str], flags: Flags) -> dict[str, str]:
    """Return the variables to set for a program.

    Args:
        chosen: ``ALL``, ``NONE``, or names and patterns separated by commas; ``None`` is the usual ones.
        environ: The caller's environment.
        flags: Told of a name that is not set.
    """
    found = {name: value for name, value in environ.items() if not name.startswith(_OURS) and _is_text(value)}
    if chosen == NONE:
        return {}
    if chosen == ALL:
        return {name: value for name, value in found.items() if name not in _OF_THE_SHELL}
    patterns = USUAL if chosen is None else flags.names([chosen])
    for pattern in patterns:
        if chosen is not None and "*" not in pattern and pattern not in found:
            hint = f"{ALL}, {NONE}, or names and patterns separated by commas, such as PATH,CUDA_*"
            flags.wrong("--export", f"{pattern!r} is not set here", hint=hint)
    return {name: value for name, value in found.items() if any(fnmatchcase(name, each) for each in patterns)}


def _is_text(value: str) -> bool:
    """Whether it can be stored: a variable may hold any bytes."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
