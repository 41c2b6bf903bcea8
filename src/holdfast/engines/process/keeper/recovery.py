"""What becomes of runs whose keeper died: decides that they are lost, and makes sure that they are over."""

from __future__ import annotations

import time

from . import moment, processes, verdict
from .journal import boot_id
from .records import FINISHED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .journal import Journal, Started
    from .records import Run

_KILL_WAIT_S = 2.0
_POLL_S = 0.01


def account_for(runs: dict[str, Run], started: dict[str, Started], journal: Journal) -> None:
    """Kill what is left of unfinished runs, and finish them as lost.

    Nobody can learn the exit code of a process that is not a child of its own, and an attempt that may still
    run must not be tried again elsewhere: so it ends here, and its end is called what it is.
    """
    unfinished = [run for run in runs.values() if run.phase != FINISHED]
    if not unfinished:
        return
    uids = {run.uid for run in unfinished}
    _kill_all(uids, started)
    for run in unfinished:
        run.outcome = verdict.lost(run, started=run.uid in started, ended_at=moment.wall())
        run.progress = verdict.progress(run)
        run.phase = FINISHED
        journal.ended(run)


def _kill_all(uids: set[str], started: dict[str, Started]) -> None:
    boot = boot_id()
    victims = set()
    for where in started.values():
        if where.boot == boot and processes.born_between(where.pid, where.before, where.after):
            processes.kill_group(where.pid, 9)
            victims.add(where.pid)
    for pid in processes.marked(uids):  # also those that left the group, and any started but not noted
        processes.kill(pid)
        victims.add(pid)
    deadline = moment.monotonic() + _KILL_WAIT_S
    while processes.any_alive(victims) and moment.monotonic() < deadline:
        time.sleep(_POLL_S)
