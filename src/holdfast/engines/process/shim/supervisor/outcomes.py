"""Turns an observed end into the facts that are reported; reads files, changes nothing."""

from __future__ import annotations

from .. import files, moment
from ..records import BEGAN_OF, PROGRESS, TERMINATION
from . import preparing
from .stacks import HEADER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..records import Exit, Message, SupervisedRun

_CONDITION_OF = {"deadline": "DeadlineExceeded", "stall": "Stalled"}
DIED_UNSEEN = "every process that watched this run was killed; nobody saw the run end"
MAY_HAVE_RUN = "every process that watched this run was killed; it may have run, and nobody saw it end"


def ended(program: SupervisedRun, end: Exit, *, ended_at: float, oom: bool, own_rss: int) -> Message:
    """Report a program that ran and ended.

    Args:
        program: The program.
        end: How its leader ended.
        ended_at: When, in seconds since the epoch.
        oom: Whether there is evidence that it exceeded its memory limit.
        own_rss: The kernel's peak includes this much of the parent's memory.
    """
    failed = end.signal is not None or end.code != 0
    by_memory = oom and failed and not program.stop_reason
    facts: Message = {
        "started": True,
        "ended_at": ended_at,
        "ended_by": "memory" if by_memory else program.stop_reason or "itself",
        "exit_code": end.code if end.signal is None else 128 + end.signal,
        "signal": end.signal,
        "reason": "OOMKilled" if by_memory else "Error" if failed else "Completed",
        "message": files.read_head(program.path(TERMINATION)),
        "note": (program.note or _circumstances(program)) if failed or program.stop_reason else "",
        "peak_memory": _peak(program, end, own_rss) or None,
    }
    if program.warned_at is not None:
        facts["warned_at"] = program.warned_at
    if by_memory:
        facts["conditions"] = ["OOMKilled"]
    elif program.stop_reason in _CONDITION_OF:
        facts["conditions"] = [_CONDITION_OF[program.stop_reason]]
    return {**facts, **_printed(program)} if failed or program.stop_reason else facts


def _peak(program: SupervisedRun, end: Exit, own_rss: int) -> int:
    """Return its known peak of memory; periodic checks may have missed the true one."""
    return max(program.peak_memory, end.max_rss if end.max_rss > own_rss else 0)


def _circumstances(program: SupervisedRun) -> str:
    """Name causes that the program could not know or print: a full disk swallows its last words, too."""
    places = (program.order["directory"], program.order.get("cwd") or program.order["directory"])
    return next((f"the disk of {place} is full" for place in places if files.is_full(place)), "")


def _printed(program: SupervisedRun) -> Message:
    """Read the end of its output, without that of earlier programs."""
    log, tail = "", list[str]()
    for name in program.logs:  # Their order is not known; errors are mostly on stderr.
        text, lines = files.tail(program.path(name), files.offset_in(files.last_line(program.path(BEGAN_OF[name]))))
        if program.stop_reason == "stall":  # The message comes from Holdfast and says nothing about the program.
            text, header, _ = text.partition(f"\n{HEADER}")
            lines = files.last_lines(text) if header else lines
        log += ("\n" if log and not log.endswith("\n") else "") + text
        tail += lines
    return {"log": log, "log_tail": tail[-files.TAIL_LINES :]}


def bare(end: Exit, start: Message, *, ended_by: str) -> Message:
    """Report a program that ran and ended whose files cannot be read, because their disk does not answer."""
    failed = end.signal is not None or end.code != 0
    return {
        "started": True,
        "started_at": start["started_at"],
        "ended_at": moment.wall(),
        "ended_by": ended_by or "itself",
        "exit_code": end.code if end.signal is None else 128 + end.signal,
        "signal": end.signal,
        "reason": "Error" if failed else "Completed",
        "note": "its files could not be read",
    }


def unprepared(program: SupervisedRun, end: Exit, *, ended_at: float, oom: bool, own_rss: int) -> Message:
    """Report a run that ended before its process became its program; arguments as for ``ended``."""
    if program.stop_reason:
        return {**never_started(program.stop_reason, ended_at=ended_at), **_printed(program)}
    reason, message = preparing.failure(program)
    if oom:
        message = f"its preparation {program.note}"
    facts = not_launched(reason, message, ended_at=ended_at)
    return {**facts, "peak_memory": _peak(program, end, own_rss) or None, **_printed(program)}


def not_launched(reason: str, message: str, *, ended_at: float) -> Message:
    """Report a program that could not be started."""
    return {
        "started": False,
        "ended_at": ended_at,
        "ended_by": "itself",
        "exit_code": None,
        "reason": reason,
        "message": message,
        "note": message,
        "conditions": ["LaunchFailed"],
    }


def never_started(reason: str, *, ended_at: float) -> Message:
    """Report a run that was stopped before its turn came."""
    return {"started": False, "ended_at": ended_at, "ended_by": reason, "note": "stopped before it started"}


def lost(*, ended_at: float, note: str = DIED_UNSEEN) -> Message:
    """Report a run whose end nobody saw; without ``started_at`` it may not have started."""
    return {"started": True, "ended_at": ended_at, "ended_by": "lost", "note": note, "conditions": ["ExecutorLost"]}


def lost_program(program: SupervisedRun, *, ended_at: float) -> Message:
    """Report an ended program whose end nobody saw, with its output."""
    facts = lost(ended_at=ended_at)
    return {**facts, "message": files.read_head(program.path(TERMINATION)), **_printed(program)}


def progress(program: SupervisedRun) -> str:
    """Read the last line of a program's progress file."""
    return files.last_line(program.path(PROGRESS))
