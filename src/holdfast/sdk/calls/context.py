"""The run that a program is in: its attempt and rank, and what it reports to Holdfast."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import threading
from functools import cache
from pathlib import Path

from holdfast.sdk.calls.naming import in_words, kinds

TYPE_CHECKING = False  # importing typing would take a tenth of the time that a small program has
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType, TracebackType
    from typing import NoReturn

MESSAGE_BYTES = 4096
"""How much of a termination message is kept."""
RETRYABLE, NOT_RETRYABLE = "[retryable]", "[not retryable]"
"""The last line of a termination message by which a run says so; rules look for it."""
TEMPORARY, PERMANENT, UNKNOWN = 75, 70, 1
"""Exit codes of a run that says that another try may help (``EX_TEMPFAIL``), will not (``EX_SOFTWARE``), or neither."""
_INDEXES = ("HOLDFAST_ARRAY_INDEX", "JOB_COMPLETION_INDEX")


class RunFailed(SystemExit):
    """Ends a run that has reported its failure; it need not be caught."""

    def __init__(self, message: str, code: int = UNKNOWN) -> None:
        super().__init__(code)
        self.message = message

    def __str__(self) -> str:
        """Return what the run said."""
        return self.message


class Warned:
    """A warning that the end of a run is near."""

    def __init__(self, reason: str, stop_at: float) -> None:
        self.reason = reason
        """``deadline`` or ``preemption``."""
        self.stop_at = stop_at
        """When the run gets SIGTERM and its grace begins, in seconds since the epoch."""


class Run:
    """One run of an attempt of a job, seen from inside."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Read the environment in which Holdfast started the run.

        Raises:
            KeyError: Holdfast did not start it.
        """
        self.job_id = environ["HOLDFAST_JOB_ID"]
        self.job_name = environ["HOLDFAST_JOB_NAME"]
        self.attempt = int(environ["HOLDFAST_ATTEMPT"])
        """From 1; more than 1 is a retry."""
        self.rank = int(environ["HOLDFAST_RANK"])
        """Within the gang, from 0."""
        self.size = int(environ["HOLDFAST_SIZE"])
        """The size of the gang."""
        self.index = next((int(environ[name]) for name in _INDEXES if name in environ), self.rank)
        """Which part of its job it is, of a job with many parts; else its rank."""
        self.uid = environ["HOLDFAST_ATTEMPT_UID"]
        """Unique for every start."""
        self.checkpoint_dir = Path(environ["HOLDFAST_CHECKPOINT_DIR"])
        """Kept over attempts, shared by the ranks, and already created."""
        self.termination_log = Path(environ["HOLDFAST_TERMINATION_LOG"])
        self.progress_file = Path(environ["HOLDFAST_PROGRESS_FILE"])
        self._stop_file = environ.get("HOLDFAST_STOP_FILE", "")
        self._stop_at = environ.get("HOLDFAST_STOP_AT", "")
        self._checkpointed = int(environ.get("HOLDFAST_CHECKPOINTED_EXIT_CODE", UNKNOWN))

    def __repr__(self) -> str:
        return f"<Run {self.job_name} {self.uid}>"

    @property
    def tracking_id(self) -> str:
        """Return a name that is the same in every attempt, for trackers of experiments to resume by."""
        return self.job_id if self.index == 0 and self.size == 1 else f"{self.job_id}-{self.index}"

    def track(self) -> None:
        """Have Weights & Biases take all attempts for one run: call it before ``wandb.init()``.

        Sets ``WANDB_RUN_ID`` to ``tracking_id`` and ``WANDB_RESUME`` to ``allow``, unless they are set.
        """
        os.environ.setdefault("WANDB_RUN_ID", self.tracking_id)
        os.environ.setdefault("WANDB_RESUME", "allow")

    def progress(self, done: float | str, total: float | None = None, text: str = "") -> None:
        """Report its progress; ``holdfast describe`` and notebooks show it.

        Args:
            done: How much is done, in any unit, or just words.
            total: How much there is in all.
            text: Anything else, such as a loss.
        """
        amount = done if isinstance(done, str) else _amount(done) + (f"/{_amount(total)}" if total is not None else "")
        line = " ".join(f"{amount} {text}".split())
        fresh = self.progress_file.with_name(f"{self.progress_file.name}.{os.getpid()}")
        fresh.write_text(f"{line}\n")
        fresh.replace(self.progress_file)  # a reader sees the old line or the new one, never half of one

    def should_stop(self) -> bool:
        """Whether the run was told to stop, or warned that it will be: save what there is, and end.

        It has its grace period left, or the time its job asked for with ``signal``. The first call makes SIGTERM be
        noted instead of ending the program, so call it early, in the main thread.

        Raises:
            RuntimeError: The first call was made in another thread, where Python takes no signals.
        """
        return _noted_stop().is_set() or self.warning() is not None

    def warning(self) -> Warned | None:
        """Return the warning that its end is near, once it was given; jobs ask for it with ``signal``."""
        if not self._stop_file:
            return None
        try:
            notice = json.loads(Path(self._stop_file).read_bytes())
        except FileNotFoundError:
            return None
        return Warned(str(notice["reason"]), float(notice["stop_at"]))

    @property
    def stop_at(self) -> float | None:
        """When it will be told to end, in seconds since the epoch: at its deadline, or as its warning says."""
        warned = self.warning()
        if warned is not None:
            return warned.stop_at
        return float(self._stop_at) if self._stop_at else None

    def checkpointed(self) -> NoReturn:
        """End the program: it has saved what it has, and wants to be run again, which costs it no retry.

        Of a job without ``checkpointedExitCode`` it is a failure like any other.

        Raises:
            SystemExit: Always, so ``finally`` and ``with`` do their work.
        """
        raise SystemExit(self._checkpointed)

    def fail(self, message: str, *, retryable: bool | None = None) -> NoReturn:
        """End the program as failed, with a message and whether another attempt may help.

        Args:
            message: The failure's message; rules match it, and ``holdfast why`` shows it.
            retryable: ``False``: another attempt would fail, too; ``True``: it may succeed; ``None``: unknown.

        Raises:
            RunFailed: Always; it is a ``SystemExit``, so ``finally`` and ``with`` do their work.
        """
        words = {None: "", True: RETRYABLE, False: NOT_RETRYABLE}[retryable]
        self.say_why(message, words)
        raise RunFailed(message, {None: UNKNOWN, True: TEMPORARY, False: PERMANENT}[retryable])

    def report_exceptions(self) -> None:
        """Have an exception that ends the program be the failure's message, so that rules can match its class.

        Functions submitted from Python do so by themselves.
        """
        before = sys.excepthook

        def report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            self.say_why(in_words(error), kinds(error))
            before(kind, error, trace)

        sys.excepthook = report

    def say_why(self, message: str, last_line: str = "") -> None:
        """Write the message of a failure; a long one is cut, but never its last line."""
        end = f"\n{last_line}".encode() if last_line else b""
        whole = message.replace("\r\n", "\n").removesuffix("\n").encode(errors="backslashreplace")
        cut = whole[: max(0, MESSAGE_BYTES - len(end))].decode(errors="ignore").encode()
        self.termination_log.write_bytes(cut + end)


def current() -> Run:
    """Return the run of this program; if its job sets ``stall``, its stacks are printed before it is ended for that.

    Raises:
        LookupError: Holdfast did not start this program.
    """
    try:
        run = Run(os.environ)
    except KeyError as error:
        msg = (
            f"this program is not in a run of Holdfast: {error.args[0]} is not set; start it with: holdfast run -- ..."
        )
        raise LookupError(msg) from None
    if "HOLDFAST_STACK_SIGNAL" in os.environ:
        _tell_stacks(int(os.environ["HOLDFAST_STACK_SIGNAL"]))
    return run


@cache
def _tell_stacks(number: int) -> None:
    """Have the stacks of all threads written to stderr on a signal: it is sent before a silent run is ended."""
    faulthandler.register(number, file=2, all_threads=True)


@cache
def _noted_stop() -> threading.Event:
    """Note SIGTERM from now on, beside what was done about it before."""
    if threading.current_thread() is not threading.main_thread():
        msg = "call should_stop() in the main thread first: Python takes signals only there"
        raise RuntimeError(msg)
    stopped = threading.Event()
    before = signal.getsignal(signal.SIGTERM)

    def note(number: int, frame: FrameType | None) -> None:
        stopped.set()
        if callable(before):
            before(number, frame)

    signal.signal(signal.SIGTERM, note)
    return stopped


def _amount(number: float) -> str:
    return f"{number:.10g}"
