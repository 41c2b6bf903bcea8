"""Unix accounts as principals: who runs this process, and who is at the other end of a Unix socket.

Names and groups are the operating system's, which may ask a directory service for them: that can take a while.
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
    """Return who runs this process: what the operating system says, not variables that anybody can set."""
    uid = os.geteuid()
    return Principal(_name(uid) or str(uid), uid=uid)  # a container may run as a number without a name


def own_peers() -> Callable[[int], Principal]:
    """Return who is let in by a socket and as whom, where programs run as the server itself: itself and root alone.

    Others' requests would run programs that can read all that the server can.
    """
    own = account()

    def principal(uid: int) -> Principal:
        if uid not in {own.uid, 0}:
            name = _name(uid) or f"the account with the number {uid}"
            message = f"this server runs programs as {own.name} and takes requests of that account only, not of {name}"
            raise Refused(message, hint="start a server of your own: holdfast up")
        return principal_of(uid)

    return principal


def every_peer(uid: int) -> Principal:
    """Return who is let in by a socket where programs run as who submits them: everybody whom the system knows.

    Raises:
        Refused: The number has no account here.
    """
    principal = principal_of(uid)
    if not _name(uid):
        message = f"there is no account with the number {uid} on the server's machine to run programs as"
        raise Refused(message, hint="have it made, or have the directory service tell it")
    return principal


def named(name: str, table: Mapping[str, str] = MappingProxyType({})) -> Principal | None:
    """Return who has a name, as the account that a table gives it or else its own, with all groups, if there is one."""
    try:
        uid = pwd.getpwnam(table.get(name, name)).pw_uid
    except (KeyError, ValueError):
        return None
    return evolve(principal_of(uid), name=name)


def other_people() -> Sequence[str]:
    """Name the accounts of people on this machine, beside the one that runs this process."""
    people = (
        account
        for account in pwd.getpwall()
        if _FIRST_PERSON <= account.pw_uid < _overflow() and account.pw_uid != os.geteuid()
    )
    return [account.pw_name for account in people if not account.pw_shell.endswith(_NO_SHELLS)]


def is_group(name: str) -> bool:
    """Whether there is a group of a name."""
    try:
        grp.getgrnam(name)
    except (KeyError, ValueError):
        return False
    return True


def principal_of(uid: int) -> Principal:
    """Return who has a number, with all groups; where the number has no name, it is the name.

    Raises:
        Refused: It is the number that stands for all accounts the system cannot tell apart.
    """
    if uid == _overflow() and uid != os.geteuid():
        message = f"an account of another user namespace is no account here: it is seen as number {uid}"
        raise Refused(message, hint="ask from outside the container, or by HOLDFAST_URL and HOLDFAST_TOKEN")
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
