"""What a run leaves behind when its program has ended."""

from __future__ import annotations

import os

from ..cgroups import V1, Group


def has_no_children() -> bool:
    """Whether this process has none; each orphan of its run is one."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def kill_in(groups: tuple[str, ...]) -> bool:
    """Kill what is in the group of a supervisor that is dead, and remove it when it is empty."""
    group = Group(V1, groups)
    if not groups or group.kill():
        return bool(groups)
    group.remove()
    return False
