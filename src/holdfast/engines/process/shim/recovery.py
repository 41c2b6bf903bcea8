"""What a shim does about the one before it: which runs go on, with which supervisors, and which are over."""

from __future__ import annotations

from pathlib import Path

from . import journal, moment, pool, processes, record
from .records import FINISHED, OLD_JOURNAL
from .supervisor import outcomes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .journal import Journal
    from .pool import Pool
    from .records import Run
    from .runs import Runs
    from .supervisor.surroundings import Surroundings

_OF_ANOTHER = "this directory was copied while the run was going; it is a run of the original"


def recover(runs: Runs, seats: Pool, surroundings: Surroundings) -> None:
    """Find living supervisors, take over from dead ones, and settle what nobody has."""
    greetings = seats.find()
    for number, said in greetings.items():
        told = said["run"] if said is not None else None
        kept = None if said is not None else record.read(pool.path_of(number))
        runs.seat_found(seats.seats[number], kept, told)
    for number, path in list(pool.files()):
        if number not in greetings:
            _settle(runs, seats, number, path, surroundings)
    if seats.cgroups is not None:
        keep = {run.former for run in runs.active.values()} | set(seats.seats)
        seats.cgroups.clear({number for number in keep if number is not None})
    for run in list(runs.runs.values()):
        if run.phase != FINISHED and run.uid not in runs.active:
            del runs.runs[run.uid]  # no supervisor ever began with it, so it may be ordered again


def _settle(runs: Runs, seats: Pool, number: int, path: str, surroundings: Surroundings) -> None:
    """Take over from a supervisor that died while there was no shim."""
    kept = record.read(path)
    run = runs.runs.get(kept.uid) if kept is not None else None
    if kept is None or run is None or run.phase == FINISHED or run.uid in runs.active:
        seats.end_group(number)
        seats.remove_files(number)
    elif kept.place != surroundings.place:
        runs.lose(run, started=kept.start is not None, note=_OF_ANOTHER)
        seats.remove_files(number)
    else:
        runs.take_over(run, kept, number, adopted=False, gone=kept.boot != surroundings.boot)


def take_over_old_journal(runs: dict[str, Run], new: Journal) -> None:
    """Take in the results that the release before left, whose shim is dead; what ran under it is ended and lost."""
    old = journal.replay(OLD_JOURNAL)
    if not old:
        return
    unfinished = {uid for uid, run in old.items() if run.phase != FINISHED}
    for pid in processes.marked(unfinished, str(Path.cwd())) if unfinished else ():
        processes.kill_group(pid, 9)
        processes.kill(pid)
    for run in old.values():
        if run.phase != FINISHED:
            run.outcome = outcomes.lost(started=bool(run.pid), ended_at=moment.wall())
            run.phase = FINISHED
        if run.uid not in runs:
            runs[run.uid] = run
            new.ordered(run)
            new.ended(run)
    if new.flush():
        Path(OLD_JOURNAL).unlink()
