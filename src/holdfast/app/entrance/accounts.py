"""Unix accounts as principals: who runs this process, and who is at the other end of a Unix socket.

Names and groups come from the operating system, which may ask a directory service, so the functions may block.
"""

from __future__ import annotations

import grp
import os
import pwd
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from holdfast.domain.access import Principal, Via
from holdfast.domain.record import evolve
from holdfast.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_OVERFLOW = Path("/proc/sys/kernel/overflowuid")
_FIRST_PERSON = 1000
"""Numbers below are those of services, on all common distributions."""
_NO_SHELLS = ("/nologin", "/false")


def account() -> Principal:
    """Return who runs this process, by the operating system and not by variables that anybody can set."""
    uid = os.geteuid()
    # A container may run as a number without a name.
    return Principal(_name(uid) or str(uid), uid=uid)


def own_peers() -> Callable[[int], Principal]:
    """Return what identifies callers on a socket if programs run as the server's account: only that and root may call.

    Requests of others would run programs that can read everything that the server can.
    """
    own = account()

    def principal(uid: int) -> Principal:
        if uid not in {own.uid, 0}:
            name = _name(uid) or f"the account with the number {uid}"
            message = f"this server runs programs as {own.name} and accepts requests of that account only, not {name}"
            raise Refused(message, hint="start a server of your own: holdfast up")
        return principal_of(uid)

    return principal


def every_peer(uid: int) -> Principal:
    """Identify a caller on a socket if programs run as their submitters: everybody with an account may call.

    Raises:
        Refused: The number has no account here.
    """
    principal = principal_of(uid)
    if not _name(uid):
        message = f"there is no account with the number {uid} on the server's machine to run programs as"
        raise Refused(message, hint="create it, or make it known to the directory service")
    return principal


def named(name: str, table: Mapping[str, str] = MappingProxyType({})) -> Principal | None:
    """Return the principal of a name, with all groups, if it has an account: by the table, else by its own name."""
    try:
        uid = pwd.getpwnam(table.get(name, name)).pw_uid
    except (KeyError, ValueError):
        return None
    return evolve(principal_of(uid), name=name)


def other_people() -> Sequence[str]:
    """Return the names of the accounts of people on this machine, except the one that runs this process."""
    people = (
        account
        for account in pwd.getpwall()
        if _FIRST_PERSON <= account.pw_uid < _overflow() and account.pw_uid != os.geteuid()
    )
    return [account.pw_name for account in people if not account.pw_shell.endswith(_NO_SHELLS)]


def is_group(name: str) -> bool:
    """Whether there is a group with this name."""
    try:
        grp.getgrnam(name)
    except (KeyError, ValueError):
        return False
    return True


def principal_of(uid: int) -> Principal:
    """Return the principal of an account number with all groups; a number without a name is its own name.

    Raises:
        Refused: The number stands for all accounts that the system cannot tell apart.
    """
    if uid == _overflow() and uid != os.geteuid():
        message = f"the account belongs to another user namespace, and is seen here only as number {uid}"
        raise Refused(message, hint="run the command outside the container, or set HOLDFAST_URL and HOLDFAST_TOKEN")
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return Principal(str(uid), via=Via.SOCKET, uid=uid)
    groups = []
    for gid in os.getgrouplist(entry.pw_name, entry.pw_gid):
        with suppress(KeyError):  # a group without a name can be given no right
            groups.append(grp.getgrgid(gid).gr_name)
    return Principal(entry.pw_name, tuple(sorted(groups)), Via.SOCKET, uid)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""


def _overflow() -> int:
    try:
        return int(_OVERFLOW.read_text())
    except (OSError, ValueError):
        return 65534
