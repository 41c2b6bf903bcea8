"""``holdfast.Executor``: the standard library's ``concurrent.futures.Executor``, each call a job."""

from __future__ import annotations

import time
import weakref
from collections import deque
from concurrent.futures import Executor as StandardExecutor
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from holdfast.sdk.calls.worker import each
from holdfast.sdk.client import Client
from holdfast.sdk.futures import JobFuture
from holdfast.sdk.manifest import manifest_of, name_of
from holdfast.sdk.pump import Pump

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Unpack

    from holdfast.sdk.manifest import Manifest, Options

P = ParamSpec("P")
T = TypeVar("T")


class Executor(StandardExecutor):
    """Runs calls as jobs: they wait for places, are retried by policy, and outlive a server that is killed.

    It can stand wherever a ``ProcessPoolExecutor`` does. Futures are ``JobFuture``, which know their jobs.
    """

    def __init__(self, client: Client | None = None, **options: Unpack[Options]) -> None:
        """Check that such jobs would be accepted.

        Args:
            client: The client to submit with; default ``Client.from_env()``, closed with the executor.
            **options: Options of every job; see ``Client.submit``.

        Raises:
            InvalidRequest: Jobs with such options would be refused.
        """
        self._template = manifest_of([], options)
        self._named = "name" in options
        self._client = Client.from_env() if client is None else client
        try:
            self._client.api.check_bulk([self._manifest(["true"], "check", {})])
            self._pump = Pump(self._client, owned=client is None)
        except BaseException:
            if client is None:
                self._client.close()
            raise
        self._forgotten = weakref.finalize(self, self._pump.stop)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> JobFuture[T]:
        """Submit a call; its future is running once its job is, and cancelling it cancels its job.

        Raises:
            RuntimeError: The executor was shut down.
            TypeError: The function or an argument cannot be pickled.
        """
        if self._pump.stopping:
            msg = "cannot schedule new futures after shutdown"
            raise RuntimeError(msg)
        call = self._client.calls.add(fn, args, kwargs)
        future: JobFuture[T] = JobFuture(self._pump, call, self._manifest(call.command, name_of(fn), call.annotations))
        self._pump.add(future)
        return future

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
    ) -> Iterator[T]:
        """Return the results in order, of ``chunksize`` calls in each job.

        Raises:
            ValueError: ``chunksize`` is less than 1.
        """
        if chunksize < 1:
            msg = "chunksize must be at least 1"
            raise ValueError(msg)
        until = None if timeout is None else time.monotonic() + timeout
        items = zip(*iterables, strict=False)
        if chunksize == 1:
            return self._results([self.submit(fn, *item) for item in items], until)
        parts = [self.submit(partial(each, fn), part) for part in _parts(items, chunksize)]
        lists = self._results(parts, until)
        return chain.from_iterable(lists)

    def _results(self, futures: list[JobFuture[T]], until: float | None) -> Iterator[T]:
        """Return results in order; after one that fails or is late, the other calls are cancelled, all at once."""
        left = deque(futures)
        try:
            while left:
                result = left[0].result(None if until is None else until - time.monotonic())
                left.popleft()
                yield result
        finally:
            self._pump.cancel(left)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as its parent
        """Accept no more calls; submitted jobs continue.

        Args:
            wait: Whether to wait until they have ended.
            cancel_futures: Whether to cancel those that have not begun.
        """
        self._pump.stop(cancel=cancel_futures)
        if wait:
            self._pump.join()

    def abort(self) -> None:
        """Accept no more calls, and cancel all jobs, also those that run; does not wait for their end."""
        self._pump.stop(cancel=True, kill=True)

    @property
    def max_bytes(self) -> int:
        """How many bytes a call or its result may take."""
        return self._client.calls.max_bytes

    def expect(self, *, more: bool) -> None:
        """Keep running at the end of the program as long as ``more`` is about to be submitted."""
        self._pump.expect(1 if more else -1)

    def _manifest(self, command: Sequence[str], name: str, annotations: Mapping[str, str]) -> Manifest:
        metadata = self._template["metadata"]
        named = metadata if self._named else {**metadata, "name": name}
        named = {**named, "annotations": {**metadata.get("annotations", {}), **annotations}}
        return {**self._template, "metadata": named, "spec": {**self._template["spec"], "command": list(command)}}


def _parts(items: Iterator[tuple[Any, ...]], size: int) -> Iterator[list[tuple[Any, ...]]]:
    while part := list(islice(items, size)):
        yield part
