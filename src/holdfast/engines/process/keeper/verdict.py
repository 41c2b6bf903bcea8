"""Turns what the keeper saw of an end into the facts it reports; reads files, changes nothing."""

from __future__ import annotations

from . import files
from .records import BEGAN, LOG, PROGRESS, TERMINATION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .records import Exit, Message, Run

_DEADLINE = "deadline"
_DIED_UNSEEN = "the process that watched this run died; nobody saw the run end"


def ended(run: Run, end: Exit, *, ended_at: float, oom: bool, keeper_rss: int) -> Message:
    """Report a program that ran and ended.

    Args:
        run: The run.
        end: How its leader ended.
        ended_at: When.
        oom: Whether there is evidence that it exceeded its memory limit.
        keeper_rss: What the kernel's own peak starts from: a child inherits its parent's.
    """
    failed = end.signal is not None or end.code != 0
    by_memory = oom and failed and not run.stop_reason
    facts: Message = {
        "started": True,
        "ended_at": ended_at,
        "ended_by": "memory" if by_memory else run.stop_reason or "itself",
        "exit_code": end.code if end.signal is None else 128 + end.signal,
        "signal": end.signal,
        "reason": "OOMKilled" if by_memory else "Error" if failed else "Completed",
        "message": files.read_head(run.path(TERMINATION)),
        "note": (run.note or _circumstances(run)) if failed or run.stop_reason else "",
        "peak_memory": _peak(run, end, keeper_rss) or None,
    }
    if by_memory:
        facts["conditions"] = ["OOMKilled"]
    elif run.stop_reason == _DEADLINE:
        facts["conditions"] = ["DeadlineExceeded"]
    if failed or run.stop_reason:
        facts["log_tail"] = _log_tail(run)
    return facts


def _peak(run: Run, end: Exit, keeper_rss: int) -> int:
    """Return the most memory it is known to have had at once; what looks now and then may have looked too early."""
    return max(run.peak_memory, end.max_rss if end.max_rss > keeper_rss else 0)


def _circumstances(run: Run) -> str:
    """Name what a program that failed cannot have known how to say: a full disk also keeps its last words."""
    places = (run.directory, run.order.get("cwd") or run.directory)
    return next((f"the disk of {place} is full" for place in places if files.is_full(place)), "")


def _log_tail(run: Run) -> list[str]:
    """Read the last lines it wrote, without those of programs whose place it took."""
    return files.tail_lines(run.path(LOG), files.offset_in(files.last_line(run.path(BEGAN))))


def not_launched(run: Run, reason: str, message: str, *, ended_at: float) -> Message:
    """Report a program that could not be started: never the user's failure."""
    return {
        "started": False,
        "ended_at": ended_at,
        "ended_by": run.stop_reason or "itself",
        "exit_code": None,
        "reason": reason,
        "message": message,
        "note": message,
        "conditions": ["LaunchFailed"],
    }


def never_started(run: Run, *, ended_at: float) -> Message:
    """Report a run that was stopped before its turn came."""
    return {"started": False, "ended_at": ended_at, "ended_by": run.stop_reason, "note": "stopped before it started"}


def lost(run: Run, *, started: bool, ended_at: float) -> Message:
    """Report a run whose end nobody saw."""
    return {
        "started": started,
        "ended_at": ended_at,
        "ended_by": "lost",
        "note": _DIED_UNSEEN,
        "conditions": ["ExecutorLost"],
        "message": files.read_head(run.path(TERMINATION)),
        "log_tail": _log_tail(run),
    }


def progress(run: Run) -> str:
    """Read the last line a run wrote about its progress."""
    return files.last_line(run.path(PROGRESS))
