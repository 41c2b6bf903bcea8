"""Whether programs can run as their submitters, and as which accounts."""

from __future__ import annotations

import os
import pwd
import stat
from typing import TYPE_CHECKING

from holdfast.engines.process.shim.libc import keeps_rights
from holdfast.errors import InvalidSetting, Problem, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from holdfast.app.settings import Settings

_PASSABLE = 0o711


def accounts_of(settings: Settings) -> Mapping[str, str] | None:
    """Return the table of accounts by submitters' names; ``None``: programs run as this process's account.

    Raises:
        Refused: This process is not root's, or programs would stay root; or others cannot reach the data directory.
        InvalidSetting: The table names an account that does not exist, or root.
    """
    if settings.run_as == "self":
        return None
    if os.geteuid() != 0:
        message = "only a server that runs as root can run programs as their submitters"
        raise Refused(message, hint="leave out --run-as, or start it as root: holdfast service install --multi-user")
    if keeps_rights():
        message = (
            "a program of any account would have root's rights here: this process has the securebit no_setuid_fixup"
        )
        raise Refused(message, hint="start it without that bit, such as by SecureBits= in a systemd unit")
    _require_way(settings.data)
    problems = [problem for entry in settings.accounts.items() if (problem := _problem(*entry)) is not None]
    if problems:
        message = "A setting is not valid."
        raise InvalidSetting(message, problems=problems)
    return settings.accounts


def _problem(principal: str, account: str) -> Problem | None:
    try:
        uid = pwd.getpwnam(account).pw_uid
    except KeyError:
        return Problem("HOLDFAST_ACCOUNTS", f"there is no account {account!r} for {principal!r}")
    if uid == 0:
        return Problem("HOLDFAST_ACCOUNTS", f"{principal!r} cannot run as root: only root itself can")
    return None


def _require_way(data: Path) -> None:
    """Let other accounts pass through the data directory; the folders above it must be open already."""
    for folder in data.absolute().resolve().parents:
        if not folder.stat().st_mode & stat.S_IXOTH:
            message = f"programs cannot reach the data directory {data}: {folder} is closed to other accounts"
            raise Refused(message, hint="set HOLDFAST_DATA to another place, such as /var/lib/holdfast")
    data.chmod(_PASSABLE)
