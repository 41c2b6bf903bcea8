"""Keeps this process the one writer of its database, or says which process is.

The lease says who should write; the proof is the epoch that each commit checks.

Why a lease is not enough: a process can be suspended between looking at its lease and committing, for longer than any
lease, and goes on with the next instruction as if no time had passed. No clock that it reads can tell it so in time.
The database can: the process that takes the lease raises the epoch in the same row that every commit locks, so a commit
that was decided under the earlier epoch is either over before the takeover, which waits for its lock, or refused after
it. Clocks that differ, or are set, make a takeover too early or too late, and never a wrong write.

Programs are outside that proof: nothing checks an epoch before a program opens a file. So three times are chosen to
nest. A leader that was not confirmed for ``Terms.programs_s`` takes its programs for others' and stops them, by a
clock that nobody sets, counted from when it asked and not from when the answer came. That is two thirds of the lease,
and others may lead after all of it: the last third is for programs to die. Supervisors of runs know the lease as well
and keep it without the server, as the server may be what is suspended. A server that leaves programs behind when it
exits does not free its lease: whoever is next does not see them, and has to wait until they are gone.

On a file of this machine none of that is needed for programs: whoever opens the file next finds them there, and their
lock dies with its owner (``ALONE``). The epoch is checked all the same, as a file can be opened twice.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.domain.record import Struct
from holdfast.errors import NotLeader, Refused, Unavailable

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.ports.clock import SteadyClock
    from holdfast.ports.store import ControllerStore, RunsAs


class Terms(Struct, frozen=True):
    """How long a silent writer keeps others out, and for how much of that time its programs may run on."""

    ttl_s: float = 15.0
    renew_every_s: float = 5.0
    programs_s: float | None = None
    """How long after the last renewal the programs are stopped, well before others may start them; ``None``: never, as
    no other machine can reach the database."""


ALONE = Terms()
"""On a file of this machine: its lock dies with its owner, so the lease keeps nobody out for long."""


def shared(ttl_s: float) -> Terms:
    """Return the terms on a database that other machines reach: a third of the lease is left for programs to die."""
    return Terms(ttl_s, renew_every_s=min(1.0, ttl_s / 10), programs_s=ttl_s * 2 / 3)


def place_of(path: Path, word: str) -> str:
    """Name a data directory; the process that holds its locks is the only one there."""
    return f"the holdfast on {socket.gethostname()}, data directory {path} ({word})"


def process_at(place: str) -> str:
    """Name this process at a place, by a name that no other process has or had."""
    return f"{place}, process {os.getpid()}-{secrets.token_hex(4)}"


def is_here_and_alive(owner: str) -> bool:
    """Whether the process of this machine with this name is alive."""
    number = owner.rpartition(", process ")[2].partition("-")[0]
    if not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True


class Leadership:
    """The lease of one process on one store; one thread calls ``keep``, and any thread the rest."""

    def __init__(  # noqa: PLR0913 - what it is told once, by name
        self,
        store: ControllerStore,
        owner: str,
        clock: SteadyClock,
        *,
        terms: Terms = ALONE,
        heir_of: str | None = None,
        place: str = "",
        runs_as: RunsAs | None = None,
    ) -> None:
        """Prepare the lease; ``take`` takes it.

        Args:
            store: Where the lease is.
            owner: A name no other process has or had.
            clock: The time; durations are measured by its steady part, which nobody sets.
            terms: The durations.
            heir_of: Owners whose names begin with this are known to be dead when the lease is taken for the first time.
            place: The word of the data directory where its jobs have their files.
            runs_as: The account that its programs run as.
        """
        self._store = store
        self._owner = owner
        self._clock = clock
        self._terms = terms
        self._heir_of = heir_of
        self._place = place
        self._runs_as = runs_as
        self._turn = threading.Lock()
        self._epoch: int | None = None
        self._confirmed_at = self._tried_at = float("-inf")
        self._refusal: Unavailable | None = None
        self._leaves_programs = False

    def take(self) -> int:
        """Take or renew the lease now, and return the epoch to commit with.

        When this returns, no earlier commit of this process is under way, not even one whose answer was lost.

        Raises:
            NotLeader: Another process leads.
            Refused: Work in the database belongs to other accounts than the one that would run it.
            Unavailable: The database cannot be written.
        """
        with self._turn:
            asked_at = self._tried_at = self._clock.steady()
            try:
                self._epoch = self._store.lead(
                    self._owner,
                    self._terms.ttl_s,
                    self._clock.now(),
                    heir_of=self._heir_of,
                    place=self._place,
                    runs_as=self._runs_as,
                )
            except Refused as error:
                self._epoch, self._refusal = None, NotLeader(error.message, hint=error.hint)
                raise
            except Unavailable as error:
                self._refusal = error
                if isinstance(error, NotLeader):
                    self._epoch = None
                raise
            self._confirmed_at, self._refusal = asked_at, None
            # A process that leads after this one did is alive.
            self._heir_of = None
            return self._epoch

    def keep(self) -> float:
        """Renew the lease if that is due, or try to take it again; returns how soon to call this again."""
        every_s = self._terms.renew_every_s
        left_s = self._tried_at + every_s - self._clock.steady()
        if left_s > 0:
            return left_s
        try:
            self.take()
        except (Unavailable, Refused):  # the loop that works under the lease reports it
            return min(every_s, 1.0)
        return every_s

    def epoch(self) -> int:
        """Return the epoch to commit with.

        Raises:
            Unavailable: This process does not lead.
        """
        if self._epoch is None or self.is_over():
            raise self._refusal or Unavailable(self.trouble())
        return self._epoch

    def is_over(self) -> bool:
        """Whether this process must give the lease up for lost and stop its programs, because others may soon lead."""
        if self._terms.programs_s is None:
            return False
        return self._epoch is None or self._clock.steady() - self._confirmed_at > self._terms.programs_s

    def lose(self, why: str) -> None:
        """Forget the epoch after a commit was refused because of it."""
        self._epoch, self._refusal = None, NotLeader(why)

    def refusal(self) -> Unavailable | None:
        """Return why this process may write nothing now, not even requests; ``None`` if it may."""
        if self._epoch is not None and not self.is_over():
            return None
        return NotLeader(self.trouble(), hint="ask the server that leads; this one writes again once it leads")

    def trouble(self) -> str | None:
        """Return what keeps the lease from being held or renewed, or ``None``."""
        if self._refusal is not None:
            return self._refusal.message
        if self._epoch is None:
            return "this process does not lead the database"
        if self.is_over():
            return f"the lease on the database was not renewed for {self._clock.steady() - self._confirmed_at:.0f} s"
        return None

    def leave_programs(self) -> None:
        """Note that programs go on without this process: the next leader elsewhere must wait until they have ended."""
        self._leaves_programs = self._terms.programs_s is not None

    def step_down(self) -> None:
        """Free the lease at once, unless programs are left that the next leader cannot see."""
        with self._turn, suppress(Unavailable):
            if self._epoch is not None and not self._leaves_programs:
                self._epoch = None
                self._store.lead(self._owner, 0.0, self._clock.now())
