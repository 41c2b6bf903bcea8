"""What a run leaves behind when its program ends."""

from __future__ import annotations

import os
from contextlib import suppress

from ..account import acting
from ..cgroups import V1, Group
from ..records import WORK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..records import SupervisedRun


def has_no_children() -> bool:
    """Whether this process has no children; orphans of its run would be."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def kill_in(groups: tuple[str, ...]) -> bool:
    """Kill the processes in a dead supervisor's group, and remove it once it is empty."""
    group = Group(V1, groups)
    if not groups or group.kill():
        return bool(groups)
    group.remove()
    return False


def set_aside(program: SupervisedRun) -> str:
    """Move the work directory of an ended run out of the way of a later run, if its job wants a new one each time.

    Returns:
        Its path, for another process to delete; empty if nothing is left of it or it cannot be moved.
    """
    if not program.order.get("clear"):
        return ""
    from ..removal import folder  # noqa: PLC0415 - seldom needed

    with suppress(OSError), acting(program.account):
        return folder.set_aside(program.path(WORK))
    return ""
