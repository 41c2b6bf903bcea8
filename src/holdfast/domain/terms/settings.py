"""The plain settings of a job: the numbers, durations and words that are valid by themselves, each described once.

From these follow how manifests are read and written (``dialects/native/settings.py``), the flags of ``holdfast run``,
and the options of Python programs, whose types ``Options`` in ``sdk/manifest.py`` lists for type checkers. A setting
that nobody makes has the default of its field in ``JobSpec``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

LARGEST_GANG = 100_000
MOST_PRIORITY = 1_000_000


class UnknownEnd(StrEnum):
    """What happens to a job when the end of its run is unknown and no rule matches: ``onUnknownEnd``."""

    RETRY = "Retry"
    """A new attempt on the infrastructure budget, as for any lost run."""
    HOLD = "Hold"
    """Wait for a user, who can find out what the program has done."""
    FAIL = "Fail"
    """Give up."""


class Streams(StrEnum):
    """How a program's two output streams are kept."""

    TOGETHER = "together"
    """In one log, in the order of writing."""
    SEPARATE = "separate"
    """In one log each; the order between them is lost."""


class Whole(NamedTuple):
    """A whole number, within bounds."""

    low: int
    high: int


class Duration(NamedTuple):
    """A duration, in seconds where it is stored."""

    may_be_zero: bool = False


class Word(NamedTuple):
    """One of an enumeration's values."""

    options: type[StrEnum]


class Setting(NamedTuple):
    """One plain setting."""

    key: str
    """In manifests."""
    attribute: str
    """Of ``JobSpec``."""
    values: Whole | Duration | Word
    help: str = ""
    """Of its flag of ``holdfast run``; without it there is no flag."""
    spelling: str = ""
    """Of its flag, unless that is the option's name."""
    changeable: bool = False
    """Whether it can be changed once the job has been submitted."""

    @property
    def option(self) -> str:
        """What Python programs call it."""
        return self.attribute.removesuffix("_s")

    @property
    def flag(self) -> str:
        """What ``holdfast run`` calls it."""
        return self.spelling or f"--{self.option.replace('_', '-')}"

    @property
    def metavar(self) -> str:
        """What stands for its value in help."""
        if isinstance(self.values, Word):
            return "|".join(self.values.options).lower()
        return "N" if isinstance(self.values, Whole) else "DURATION"


_PRIORITY, _GANG = Whole(-MOST_PRIORITY, MOST_PRIORITY), Whole(1, LARGEST_GANG)
SETTINGS = (
    Setting("priority", "priority", _PRIORITY, "Jobs with a higher priority start first; default 0."),
    Setting("gang", "gang", _GANG, "Ranks that start, fail and restart together."),
    Setting("deadline", "deadline_s", Duration(), "Longest time one attempt may run.", "--timeout", changeable=True),
    Setting("totalDeadline", "total_deadline_s", Duration(), changeable=True),
    Setting("schedulingTimeout", "scheduling_timeout_s", Duration(), changeable=True),
    Setting(
        "grace",
        "grace_s",
        Duration(may_be_zero=True),
        "Time between SIGTERM and SIGKILL; default 10s.",
        changeable=True,
    ),
    Setting(
        "checkpointedExitCode",
        "checkpointed_exit_code",
        Whole(1, 255),
        "Exit code that means: saved, run me again; 85 with --signal.",
    ),
    Setting(
        "onUnknownEnd",
        "on_unknown_end",
        Word(UnknownEnd),
        "What to do when nobody knows how it ended; default retry.",
        changeable=True,
    ),
    Setting("logs", "logs", Word(Streams)),
)
