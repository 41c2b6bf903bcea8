"""Waits for jobs to come into a state; decides when that has happened, or never will."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.cli import exit_codes
from holdfast.cli.follow import ENDED
from holdfast.cli.pacing import Pace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holdfast.cli.context import Cli
    from holdfast.client import Client

TERMINAL = "terminal"
JOB_STATES = ("Queued", "Running", "BackOff", "Held", "Succeeded", "Failed", "Cancelled")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to wait for."""

    state: str = TERMINAL
    timeout_s: float | None = None

    def reached(self, state: str | None) -> bool:
        """Whether waiting for a job in this state is over, for good or ill."""
        return state is None or state in ENDED or state == self.state

    def good(self, state: str | None) -> bool:
        """Whether it is over for good."""
        return state == ("Succeeded" if self.state == TERMINAL else self.state)


def wait_for(client: Client, ids: Sequence[str], wanted: Wanted, cli: Cli) -> int:
    """Wait for all jobs; returns the exit code and names the jobs that ended otherwise."""
    outcome = _Waiting(cli, wanted, dict.fromkeys(ids, ""))
    pace = Pace(cli.sleep)
    deadline = None if wanted.timeout_s is None else cli.now() + wanted.timeout_s
    while waiting := outcome.waiting():
        news = outcome.note(client.states(waiting))
        left = None if deadline is None else deadline - cli.now()
        if not outcome.waiting():
            break
        if left is not None and left <= 0:
            cli.say(f"timed out: {len(outcome.waiting())} of {len(ids)} jobs are not {wanted.state} yet")
            return exit_codes.TIMED_OUT
        pace.rest(news=news, at_most_s=left)
    return outcome.exit_code()


class _Waiting:
    """What is known of each job, and what the person was told already."""

    def __init__(self, cli: Cli, wanted: Wanted, states: dict[str, str]) -> None:
        self._cli = cli
        self._wanted = wanted
        self._states: dict[str, str | None] = {**states}
        self._told: set[str] = set()

    def waiting(self) -> list[str]:
        """List the jobs that are not where they should be."""
        return [job for job, state in self._states.items() if not self._wanted.reached(state)]

    def note(self, states: Mapping[str, str]) -> bool:
        """Remember states; returns whether any changed."""
        before = dict(self._states)
        for job in self.waiting():
            self._states[job] = states.get(job)
        for job in self._held():
            self._told.add(job)
            self._cli.say(f"{job} is held for a person; to let it go on: holdfast release {job}")
        return before != self._states

    def _held(self) -> Iterator[str]:
        if self._wanted.state != "Held":
            yield from [job for job, state in self._states.items() if state == "Held" and job not in self._told]

    def exit_code(self) -> int:
        """Judge the outcome and name the jobs that ended otherwise."""
        bad = {job: state for job, state in self._states.items() if not self._wanted.good(state)}
        for job, state in bad.items():
            self._cli.say(f"{job}: {state or 'is gone'}")
        return exit_codes.FAILED if bad else exit_codes.OK
