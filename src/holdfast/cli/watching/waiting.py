"""Waits for work to reach a state, and notices when it never will."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.cli import exit_codes
from holdfast.cli.render.arrays import progress
from holdfast.cli.watching.endings import counted, tell_endings
from holdfast.cli.watching.live import job_line, live_line, waited
from holdfast.cli.watching.pacing import Polling
from holdfast.domain.terms.kinds import ARRAY, JOB
from holdfast.errors import NotFound, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from holdfast.cli.context import Cli
    from holdfast.cli.watching.live import LiveLine
    from holdfast.client import Client
    from holdfast.domain.terms.kinds import KindInfo
    from holdfast.wire.jobs import JobOutcome

TERMINAL = "terminal"


@dataclass(frozen=True, slots=True)
class WaitGoal:
    """What to wait for."""

    state: str = TERMINAL
    timeout_s: float | None = None
    kind: KindInfo = JOB

    def reached(self, state: str | None) -> bool:
        """Whether a thing in this state has reached the goal, or never will."""
        return state is None or state in self.kind.ended or self.good(state)

    def good(self, state: str | None) -> bool:
        """Whether a thing in this state has reached the goal."""
        return state == (self.kind.success if self.state == TERMINAL else self.state)


def wait_for(client: Client, ids: Sequence[str], goal: WaitGoal, cli: Cli) -> int:
    """Wait for all jobs; returns the exit code and says how they ended."""
    return _wait(_Jobs(client), ids, goal, cli)


def wait_for_owners(client: Client, references: Sequence[str], goal: WaitGoal, cli: Cli) -> int:
    """Wait for all of some work that is made of jobs; returns the exit code and says how it ended.

    Raises:
        NotFound: There is no such work.
    """
    owners = _Arrays(client.array) if goal.kind is ARRAY else _Owners(client.of(goal.kind).get)
    return _wait(owners, owners.named(references), goal, cli)


class _Looked(Protocol):
    """The things to wait for."""

    def look(self, names: Sequence[str], *, closely: bool) -> Mapping[str, str]:
        """Read the states; things that are gone are left out. ``closely`` also reads what the live line shows."""
        ...

    def line(self, states: Mapping[str, str | None]) -> str:
        """Write the states in one line."""
        ...

    def tell(self, states: Mapping[str, str | None], names: Sequence[str], cli: Cli) -> None:
        """Report how some of them ended."""
        ...


class _Jobs:
    """Jobs, which share one request."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._seen: JobOutcome | None = None
        """The job, if there is only one."""

    def look(self, names: Sequence[str], *, closely: bool) -> Mapping[str, str]:
        if not closely or len(names) > 1:
            self._seen = None
            return self._client.states(names)
        jobs = list(self._client.job_outcomes(ids=names))
        self._seen = jobs[0] if jobs else None
        return {job.id: job.state for job in jobs}

    def line(self, states: Mapping[str, str | None]) -> str:
        if self._seen is None:
            return f"{len(states):,} jobs: {counted(states.values())}" if len(states) > 1 else counted(states.values())
        first_line = job_line(self._seen)
        return first_line if len(states) == 1 else f"{len(states):,} jobs: {counted(states.values())}; {first_line}"

    def tell(self, states: Mapping[str, str | None], names: Sequence[str], cli: Cli) -> None:
        tell_endings(self._client, states, names, cli)


class _Owners:
    """Work that is made of jobs, read by id, because its name may have been taken by another one."""

    def __init__(self, get: Callable[[str], Any]) -> None:
        self._get = get
        self._seen: dict[str, Any] = {}

    def named(self, references: Sequence[str]) -> Sequence[str]:
        """Find the work; returns the names."""
        self._seen = {owner.name: owner for owner in map(self._get, references)}
        return list(self._seen)

    def look(self, names: Sequence[str], *, closely: bool) -> Mapping[str, str]:
        del closely
        states = {}
        for name in names:
            try:
                self._seen[name] = self._get(self._seen[name].id)
                states[name] = self._seen[name].state
            except NotFound:
                continue
        return states

    def line(self, states: Mapping[str, str | None]) -> str:
        return "; ".join(f"{name}: {self.describe(name) if state else 'gone'}" for name, state in states.items())

    def tell(self, states: Mapping[str, str | None], names: Sequence[str], cli: Cli) -> None:
        for name in names:
            cli.say(f"{name}: {self.describe(name) if states[name] else 'is gone'}")

    def describe(self, name: str) -> str:
        """Say how one is."""
        return str(self._seen[name].state)


class _Arrays(_Owners):
    """Arrays, with their progress."""

    def describe(self, name: str) -> str:
        array = self._seen[name]
        counts = progress(array)
        return f"{array.state}: {array.reason or counts}" if array.state in ARRAY.ended else counts


def wait_until_gone(still_there: Callable[[], Sequence[str]], goal: WaitGoal, cli: Cli) -> int:
    """Wait until ``still_there`` returns nothing; returns the exit code."""
    pace, deadline = Polling(cli.sleep), _deadline(goal, cli)
    left = still_there()
    while left:
        left_s = None if deadline is None else deadline - cli.now()
        if left_s is not None and left_s <= 0:
            cli.say(f"timed out: {', '.join(left)} {'is' if len(left) == 1 else 'are'} not gone yet")
            return exit_codes.TIMED_OUT
        pace.rest(at_most_s=left_s)
        left = still_there()
    return exit_codes.OK


def _wait(things: _Looked, ids: Sequence[str], goal: WaitGoal, cli: Cli) -> int:
    with live_line(cli) as (line, above):
        outcome = _Waiting(above, goal, dict.fromkeys(ids, ""))
        try:
            code = _until_there(things, outcome, goal, above, line)
        except KeyboardInterrupt:
            outcome.leave()
            return exit_codes.INTERRUPTED
    if code is not None:
        return code
    return outcome.conclude(things)


def _until_there(things: _Looked, outcome: _Waiting, goal: WaitGoal, cli: Cli, line: LiveLine) -> int | None:
    """Look until all have reached the goal, which returns ``None``, or the time is over."""
    began = cli.now()
    pace, deadline = Polling(cli.sleep), _deadline(goal, cli)
    while waiting := outcome.waiting():
        try:
            news = outcome.note(things.look(waiting, closely=line.able))
        except Unavailable:
            if deadline is None or cli.now() < deadline:
                raise
            news = False
        left = None if deadline is None else deadline - cli.now()
        if not (waiting := outcome.waiting()):
            break
        if left is not None and left <= 0:
            line.clear()
            many = len(outcome.states)
            cli.say(f"timed out: {len(waiting)} of {many} {goal.kind.noun}s are not {goal.state} yet")
            return exit_codes.TIMED_OUT
        line.draw(f"{things.line(outcome.states)}, {waited(cli.now() - began)}")
        pace.rest(news=news, things=len(waiting), at_most_s=left)
    return None


def _deadline(goal: WaitGoal, cli: Cli) -> float | None:
    return None if goal.timeout_s is None else cli.now() + goal.timeout_s


class _Waiting:
    """The state of each thing, and what the user has been told."""

    def __init__(self, cli: Cli, goal: WaitGoal, states: dict[str, str]) -> None:
        self._cli = cli
        self._goal = goal
        self.states: dict[str, str | None] = {**states}
        self._paused_told: set[str] = set()

    def waiting(self) -> list[str]:
        """List the things that have not reached the goal."""
        return [name for name, state in self.states.items() if not self._goal.reached(state)]

    def note(self, states: Mapping[str, str]) -> bool:
        """Remember states; returns whether any changed."""
        before = dict(self.states)
        for name in self.waiting():
            self.states[name] = states.get(name)
        for name, advice in self._paused():
            self._paused_told.add(name)
            self._cli.say(advice.format(name))
        return before != self.states

    def _paused(self) -> Iterator[tuple[str, str]]:
        for name, state in self.states.items():
            advice = self._goal.kind.paused.get(state or "")
            if advice and name not in self._paused_told and self._goal.state != state:
                yield name, advice

    def leave(self) -> None:
        """Say that the work continues, although nobody waits for it any more."""
        left, plural = self.waiting(), f"{self._goal.kind.noun}s"
        self._cli.say(
            f"no longer waiting: {len(left):,} of {len(self.states):,} {plural} continue and were not cancelled"
        )
        self._cli.note_unserved(f"{plural} continue", "holdfast wait")

    def conclude(self, things: _Looked) -> int:
        """Judge the outcome and say it: how those ended that did not as they should, and then the others."""
        good = [name for name, state in self.states.items() if self._goal.good(state)]
        bad = [name for name, state in self.states.items() if not self._goal.good(state)]
        if self._goal.state != TERMINAL:
            good = []
        if self.states:
            things.tell(self.states, [*bad, *good], self._cli)
        return exit_codes.FAILED if bad else exit_codes.OK
