"""``holdfast.AsyncClient``: the client for programs on an event loop.

Requests are made in threads; waiting is not, so that any number of jobs can be waited for.
"""

from __future__ import annotations

import time
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast, overload

import anyio
from anyio.to_thread import run_sync

from holdfast.client.silence import Outage
from holdfast.errors import Unavailable
from holdfast.sdk.array import Array
from holdfast.sdk.client import Client
from holdfast.sdk.job import Job
from holdfast.sdk.states import ENDED
from holdfast.sdk.waiting import GONE, Rests

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
    from typing import Unpack

    from holdfast.client import Client as Api
    from holdfast.sdk.manifest import Options
    from holdfast.sdk.states import State

T = TypeVar("T")
P = ParamSpec("P")
T_co = TypeVar("T_co", covariant=True)


def in_thread(of: str, method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Awaitable[T]]:
    """Call a method of the synchronous object, an attribute of this one, in a thread."""

    async def ask(self: Any, /, *args: P.args, **arguments: P.kwargs) -> T:
        return await run_sync(partial(method, getattr(self, of), *args, **arguments))

    return update_wrapper(ask, method)


class AsyncJob(Generic[T_co]):
    """A job of an ``AsyncClient``; see ``holdfast.Job``, which is its ``job``."""

    view = in_thread("job", Job.view)
    why = in_thread("job", Job.why)
    logs = in_thread("job", Job.logs)
    cancel = in_thread("job", Job.cancel)
    preempt = in_thread("job", Job.preempt)
    reprioritize = in_thread("job", Job.reprioritize)

    def __init__(self, job: Job[T_co]) -> None:
        self.job = job
        self.id = job.id
        self.name = job.name

    def __repr__(self) -> str:
        return f"<AsyncJob {self.name} {self.id}>"

    async def state(self) -> State:
        """Read its present state."""
        return cast("State", (await self.view()).state)

    async def wait(self, timeout: float | None = None) -> State:  # noqa: ASYNC109 - as the client it mirrors has it
        """Wait until it has ended, and return its state.

        Raises:
            TimeoutError: It has not ended within ``timeout`` seconds.
        """
        async for _ in as_completed([self], timeout):
            break
        return await self.state()

    async def result(self, timeout: float | None = None) -> T_co:  # noqa: ASYNC109 - as above
        """Wait for its result; raises what ``holdfast.Job.result`` does."""
        await self.wait(timeout)
        return cast("T_co", await run_sync(self.job.outcome))


class AsyncArray:
    """An array of an ``AsyncClient``; see ``holdfast.Array``, which is its ``array``."""

    view = in_thread("array", Array.view)
    why = in_thread("array", Array.why)
    logs = in_thread("array", Array.logs)
    cancel = in_thread("array", Array.cancel)
    hold = in_thread("array", Array.hold)
    release = in_thread("array", Array.release)
    preempt = in_thread("array", Array.preempt)

    def __init__(self, array: Array) -> None:
        self.array = array
        self.id = array.id
        self.name = array.name

    def __repr__(self) -> str:
        return f"<AsyncArray {self.name} {self.id}>"

    async def state(self) -> str:
        """Read its present state."""
        return (await self.view()).state

    async def task(self, index: int) -> AsyncJob[None]:
        """Return the job of the task with this index."""
        return AsyncJob(await run_sync(self.array.task, index))

    async def wait(self, timeout: float | None = None) -> str:  # noqa: ASYNC109 - as the client it mirrors has it
        """Wait until it has ended, and return its state.

        Raises:
            TimeoutError: It has not ended within ``timeout`` seconds.
        """
        rests, give_up = Rests(), None if timeout is None else time.monotonic() + timeout
        while (state := await self.state()) not in ENDED:
            rest_s = rests.after(news=False, things=1)
            if give_up is not None and (rest_s := min(rest_s, give_up - time.monotonic())) <= 0:
                msg = f"array {self.name} has not ended within {timeout:g} s"
                raise TimeoutError(msg)
            await anyio.sleep(rest_s)
        return state

    async def rerun(self, **changes: Any) -> AsyncArray:
        """Run some of its tasks again; see ``Array.rerun``."""
        return AsyncArray(await run_sync(partial(self.array.rerun, **changes)))


async def patiently(api: Api, ids: Sequence[str], *, until: float | None) -> Mapping[str, str]:
    """Read states, with patience for a server that is away; only the request is made in a thread."""
    silence = Outage(api.connection.patience_s)
    while True:
        try:
            states = await run_sync(api.states, ids)
        except Unavailable as error:
            pause_s = silence.failed(error)
            if until is not None and time.monotonic() + pause_s > until:
                msg = "the server does not answer, and the time is over"
                raise TimeoutError(msg) from error
            await anyio.sleep(pause_s)
        else:
            silence.answered()
            return states


async def as_completed(
    jobs: Iterable[AsyncJob[T]],
    timeout: float | None = None,  # noqa: ASYNC109 - as above
) -> AsyncIterator[AsyncJob[T]]:
    """Yield each job of one client when it has ended.

    Raises:
        TimeoutError: Some have not ended within ``timeout`` seconds.
    """
    left = {job.id: job for job in jobs}
    total, rests = len(left), Rests()
    give_up = None if timeout is None else time.monotonic() + timeout
    while left:
        states = await patiently(next(iter(left.values())).job.api, list(left), until=give_up)
        ended = [job_id for job_id in left if states.get(job_id, GONE) in {*ENDED, GONE}]
        for job_id in ended:
            yield left.pop(job_id)
        rest_s = rests.after(news=bool(ended), things=len(left)) if left else 0.0
        if left and give_up is not None and (rest_s := min(rest_s, give_up - time.monotonic())) <= 0:
            msg = f"{len(left)} of {total} jobs have not ended within {timeout:g} s"
            raise TimeoutError(msg)
        await anyio.sleep(rest_s)


class AsyncClient:
    """A client for an event loop; ``client`` is the synchronous one that it uses."""

    def __init__(self, client: Client) -> None:
        self.client = client

    @classmethod
    async def from_env(cls, *, drive: bool = True) -> Self:
        """Find a Holdfast as ``Client.from_env`` does."""
        return cls(await run_sync(partial(Client.from_env, drive=drive)))

    async def __aenter__(self) -> Self:
        """Use it in an ``async with`` statement."""
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; to close it twice is fine."""
        with anyio.CancelScope(shield=True):
            await run_sync(self.client.close)

    @overload
    async def submit(
        self,
        work: Callable[..., T],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[Options],
    ) -> AsyncJob[T]: ...
    @overload
    async def submit(
        self, work: Sequence[str] | str | Mapping[str, Any], **options: Unpack[Options]
    ) -> AsyncJob[None]: ...
    async def submit(
        self,
        work: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[Options],
    ) -> AsyncJob[Any]:
        """Submit a program, a line for the shell, a manifest or a function; see ``Client.submit``."""
        if callable(work):
            return AsyncJob(await run_sync(partial(self.client.submit, work, args, kwargs, **options)))
        return AsyncJob(await run_sync(partial(self.client.submit, work, **options)))

    async def map(
        self, function: Callable[..., T], *iterables: Iterable[Any], **options: Unpack[Options]
    ) -> list[AsyncJob[T]]:
        """Submit a call for each item; see ``Client.map``."""
        return [AsyncJob(job) for job in await run_sync(partial(self.client.map, function, *iterables, **options))]

    async def submit_array(self, work: Sequence[str] | str, **options: Any) -> AsyncArray:
        """Submit many tasks of one program as an array; see ``Client.submit_array``."""
        return AsyncArray(await run_sync(partial(self.client.submit_array, work, **options)))

    async def array(self, reference: str) -> AsyncArray:
        """Find an array by its name or its id."""
        return AsyncArray(await run_sync(self.client.array, reference))

    async def job(self, reference: str) -> AsyncJob[Any]:
        """Find a job by its id, its name or the beginning of its id."""
        return AsyncJob(await run_sync(self.client.job, reference))
