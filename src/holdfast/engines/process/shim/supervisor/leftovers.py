"""What a run leaves behind when its program has ended."""

from __future__ import annotations

import os
from contextlib import suppress

from ..account import acting
from ..cgroups import V1, Group
from ..records import FINISHED, WORK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..records import SupervisedRun


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


def clear(program: SupervisedRun | None) -> None:
    """Remove the work directory of a run that has ended, where its job wants that.

    What cannot be removed stays, as where this process dies meanwhile, until all that is left of the job is deleted.
    """
    if program is None or program.phase != FINISHED or not program.order.pop("clear", False):
        return
    from .removal import remove  # noqa: PLC0415 - seldom needed

    with suppress(OSError), acting(program.account):
        remove(program.path(WORK))
