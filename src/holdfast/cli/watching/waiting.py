"""Waits for jobs and job sets to reach a state, and notices when they never will."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.cli import exit_codes
from holdfast.cli.watching.follow import ENDED
from holdfast.cli.watching.pacing import Pace
from holdfast.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from holdfast.cli.context import Cli
    from holdfast.client import Client

    Look = Callable[[Sequence[str]], Mapping[str, str]]
    """Reads the states of what is waited for; what is gone is left out."""

TERMINAL = "terminal"
JOB_STATES = ("Queued", "Running", "BackOff", "Held", "Waiting", "Succeeded", "Failed", "Cancelled")
SET_STATES = ("Pending", "Running", "Restarting", "Suspended", "Completed", "Failed")
"""That can be waited for."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How waiting for one kind of thing ends, and what is said of one that waits for a person."""

    plural: str
    ended: frozenset[str]
    success: str
    paused: Mapping[str, str]
    """States in which it does not go on by itself, each with what is said of it; ``{0}`` is its name."""


JOBS = Kind("jobs", ENDED, "Succeeded", {"Held": "{0} is held; to release it: holdfast release {0}"})
JOB_SETS = Kind(
    "job sets",
    frozenset({"Completed", "Failed"}),
    "Completed",
    {
        "Suspended": "{0} is suspended; to resume it: holdfast resume jobset {0}",
        "Unmanaged": "{0} is not run by Holdfast: its manifest names another controller (managedBy)",
    },
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to wait for."""

    state: str = TERMINAL
    timeout_s: float | None = None
    kind: Kind = JOBS

    def reached(self, state: str | None) -> bool:
        """Whether waiting for a thing in this state is over, for good or ill."""
        return state is None or state in self.kind.ended or state == self.state

    def good(self, state: str | None) -> bool:
        """Whether it is over for good."""
        return state == (self.kind.success if self.state == TERMINAL else self.state)


def wait_for(client: Client, ids: Sequence[str], wanted: Wanted, cli: Cli) -> int:
    """Wait for all jobs; returns the exit code and names the jobs that ended otherwise."""
    return _wait(client.states, ids, wanted, cli)


def wait_for_sets(client: Client, references: Sequence[str], wanted: Wanted, cli: Cli) -> int:
    """Wait for all job sets; returns the exit code and names those that ended otherwise.

    Raises:
        NotFound: There is no such job set.
    """
    ids = {found.name: found.id for found in map(client.job_set, references)}
    return _wait(lambda names: _states(client, {name: ids[name] for name in names}), list(ids), wanted, cli)


def _states(client: Client, ids: Mapping[str, str]) -> dict[str, str]:
    """Read states by name; by id, because another set may have taken the name of one that is gone."""
    found = {}
    for name, set_id in ids.items():
        try:
            found[name] = client.job_set(set_id).state
        except NotFound:
            continue
    return found


def wait_until_gone(there: Callable[[], Sequence[str]], wanted: Wanted, cli: Cli) -> int:
    """Wait until nothing is there any more; says each name that has gone."""
    pace, deadline = Pace(cli.sleep), _deadline(wanted, cli)
    left = there()
    while left:
        left_s = None if deadline is None else deadline - cli.now()
        if left_s is not None and left_s <= 0:
            cli.say(f"timed out: {', '.join(left)} {'is' if len(left) == 1 else 'are'} not gone yet")
            return exit_codes.TIMED_OUT
        pace.rest(at_most_s=left_s)
        left = there()
    return exit_codes.OK


def _wait(look: Look, ids: Sequence[str], wanted: Wanted, cli: Cli) -> int:
    outcome = _Waiting(cli, wanted, dict.fromkeys(ids, ""))
    pace, deadline = Pace(cli.sleep), _deadline(wanted, cli)
    while waiting := outcome.waiting():
        news = outcome.note(look(waiting))
        left = None if deadline is None else deadline - cli.now()
        if not (waiting := outcome.waiting()):
            break
        if left is not None and left <= 0:
            cli.say(f"timed out: {len(waiting)} of {len(ids)} {wanted.kind.plural} are not {wanted.state} yet")
            return exit_codes.TIMED_OUT
        pace.rest(news=news, things=len(waiting), at_most_s=left)
    return outcome.exit_code()


def _deadline(wanted: Wanted, cli: Cli) -> float | None:
    return None if wanted.timeout_s is None else cli.now() + wanted.timeout_s


class _Waiting:
    """What is known of each thing, and what the person was told already."""

    def __init__(self, cli: Cli, wanted: Wanted, states: dict[str, str]) -> None:
        self._cli = cli
        self._wanted = wanted
        self._states: dict[str, str | None] = {**states}
        self._told: set[str] = set()

    def waiting(self) -> list[str]:
        """List those that are not where they should be."""
        return [name for name, state in self._states.items() if not self._wanted.reached(state)]

    def note(self, states: Mapping[str, str]) -> bool:
        """Remember states; returns whether any changed."""
        before = dict(self._states)
        for name in self.waiting():
            self._states[name] = states.get(name)
        for name, advice in self._paused():
            self._told.add(name)
            self._cli.say(advice.format(name))
        return before != self._states

    def _paused(self) -> Iterator[tuple[str, str]]:
        for name, state in self._states.items():
            advice = self._wanted.kind.paused.get(state or "")
            if advice and name not in self._told and self._wanted.state != state:
                yield name, advice

    def exit_code(self) -> int:
        """Judge the outcome and name those that ended otherwise."""
        bad = {name: state for name, state in self._states.items() if not self._wanted.good(state)}
        for name, state in bad.items():
            self._cli.say(f"{name}: {state or 'is gone'}")
        return exit_codes.FAILED if bad else exit_codes.OK
