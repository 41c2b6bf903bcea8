"""Waits for jobs, many at a time: one request asks for all of them."""

from __future__ import annotations

import time
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, FIRST_EXCEPTION
from functools import partial
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, Protocol, TypeVar, get_args

from holdfast.client.silence import Outage
from holdfast.errors import Unavailable
from holdfast.sdk.states import ENDED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from holdfast.client import Client as Api
    from holdfast.sdk.states import State


class JobHandle(Protocol):
    """A job to wait for."""

    @property
    def id(self) -> str:
        """The job's id."""
        ...

    @property
    def api(self) -> Api:
        """The client of its server."""
        ...

    @property
    def state(self) -> State:
        """Its present state."""
        ...


J = TypeVar("J", bound=JobHandle)
T = TypeVar("T")
ReturnWhen = Literal["ALL_COMPLETED", "FIRST_COMPLETED", "FIRST_EXCEPTION"]
"""As of ``concurrent.futures``."""
GONE = "Gone"
"""The state of a job that was deleted."""


class Waited(NamedTuple, Generic[J]):
    """Jobs that have ended, and those that have not."""

    done: set[J]
    not_done: set[J]


class Rests:
    """Pauses between looks: short after news, longer while nothing happens, and longer for many jobs."""

    FIRST_S, LONGEST_S, FACTOR, FOR_EACH_S = 0.02, 0.5, 1.5, 0.0002

    def __init__(self) -> None:
        self._next_s = self.FIRST_S

    def after(self, *, news: bool, things: int) -> float:
        """Return how long to rest."""
        self._next_s = self.FIRST_S if news else min(self._next_s * self.FACTOR, self.LONGEST_S)
        return min(self.LONGEST_S, max(self._next_s, things * self.FOR_EACH_S))


def patiently(api: Api, ask: Callable[[], T], *, until: float | None = None) -> T:
    """Ask a server that may be away for a while, as when it is restarted.

    Args:
        api: The client; its connection says how long to be patient.
        ask: Sends a request that changes nothing.
        until: When to give up, by ``time.monotonic``; ``None`` leaves it to the connection.

    Raises:
        TimeoutError: It is away, and the time is over.
        Unavailable: It is away for too long.
    """
    silence = Outage(api.connection.patience_s)
    while True:
        try:
            answer = ask()
        except Unavailable as error:
            pause_s = silence.failed(error)
            if until is not None and time.monotonic() + pause_s > until:
                msg = "the server does not answer, and the time is over"
                raise TimeoutError(msg) from error
            time.sleep(pause_s)
        else:
            silence.answered()
            return answer


def as_completed(jobs: Iterable[J], timeout: float | None = None) -> Iterator[J]:
    """Yield each job when it has ended.

    Raises:
        TimeoutError: Some have not ended within ``timeout`` seconds.
    """
    left = {job.id: job for job in jobs}
    total, rests = len(left), Rests()
    give_up = None if timeout is None else time.monotonic() + timeout
    while True:
        states = patiently(next(iter(left.values())).api, partial(_states, left), until=give_up) if left else {}
        ended = [job_id for job_id, state in states.items() if state in {*ENDED, GONE}]
        for job_id in ended:
            yield left.pop(job_id)
        if not left:
            return
        rest_s = rests.after(news=bool(ended), things=len(left))
        if give_up is not None and (rest_s := min(rest_s, give_up - time.monotonic())) <= 0:
            msg = f"{len(left)} of {total} jobs have not ended within {timeout:g} s"
            raise TimeoutError(msg)
        time.sleep(rest_s)


def wait(jobs: Iterable[J], timeout: float | None = None, return_when: ReturnWhen = ALL_COMPLETED) -> Waited[J]:
    """Wait for all jobs, for the first that ends, or for the first that fails.

    Returns:
        Those that have ended, and those that have not: after a time limit there may be any number of both.

    Raises:
        ValueError: ``return_when`` is none of the words of ``concurrent.futures``.
    """
    if return_when not in get_args(ReturnWhen):
        msg = f"return_when is {return_when!r}; allowed: {', '.join(get_args(ReturnWhen))}"
        raise ValueError(msg)
    listed = set(jobs)
    done: set[J] = set()
    try:
        for job in as_completed(listed, timeout):
            done.add(job)
            if return_when == FIRST_COMPLETED or (return_when == FIRST_EXCEPTION and job.state != "Succeeded"):
                break
    except TimeoutError:
        pass
    return Waited(done, listed - done)


def _states(jobs: Mapping[str, JobHandle]) -> dict[str, str]:
    """Read the states of jobs that may be on several Holdfasts; one that was forgotten is gone."""
    by_api: dict[Api, list[str]] = {}
    for job in jobs.values():
        by_api.setdefault(job.api, []).append(job.id)
    states = dict.fromkeys(jobs, GONE)
    for api, ids in by_api.items():
        states.update(api.states(ids))
    return states
