"""A backend of joblib whose batches are jobs: ``parallel_config(backend="holdfast", retries=2)``.

``register()`` makes it known; joblib then makes one for each ``Parallel``.
"""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any

from joblib.parallel import AutoBatchingMixin, ParallelBackendBase, register_parallel_backend

from holdfast.client.forking import after_fork
from holdfast.sdk.client import Client
from holdfast.sdk.executor import Executor

if TYPE_CHECKING:
    from collections.abc import Callable


def register() -> None:
    """Make ``holdfast`` a backend of joblib."""
    register_parallel_backend("holdfast", HoldfastBackend)


class HoldfastBackend(AutoBatchingMixin, ParallelBackendBase):
    """Runs batches of calls as jobs; small calls are put together, as joblib does for its own processes."""

    supports_retrieve_callback = True
    supports_inner_max_num_threads = True
    # A job takes longer to start than a task of a pool, so more is put into one.
    MIN_IDEAL_BATCH_DURATION = 1.0
    MAX_IDEAL_BATCH_DURATION = 10.0

    def __init__(
        self,
        *,
        nesting_level: int | None = None,
        inner_max_num_threads: int | None = None,
        client: Client | None = None,
        **options: Any,
    ) -> None:
        """Remember how to run jobs.

        Args:
            nesting_level: As joblib counts it.
            inner_max_num_threads: Threads of the libraries that calls use.
            client: Where to submit; default ``Client.from_env()``.
            **options: Options of every job; see ``Client.submit``.
        """
        super().__init__(nesting_level=nesting_level, inner_max_num_threads=inner_max_num_threads)
        self._given_client = client
        self._client = client
        self._options = options
        self._executor: Executor | None = None
        self._most = 1
        """Jobs at a time: joblib itself sends twice as many, so that none of its own processes waits for the next."""
        self._begin()
        after_fork(self, HoldfastBackend._begin)

    def _begin(self) -> None:
        """Begin with no batches; those there were belong to the process that this one was forked from."""
        self._turn = threading.Lock()
        self._out = 0
        self._waiting: deque[tuple[Callable[[], Any], Callable[[Future[Any]], None]]] = deque()

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """Return how many jobs to have at a time; -1 means one for each place.

        Raises:
            ValueError: It is 0.
        """
        if n_jobs == 0:
            msg = "n_jobs == 0 in Parallel has no meaning"
            raise ValueError(msg)
        if n_jobs is None or n_jobs > 0:
            return n_jobs or 1
        nodes = self._connected().api.nodes()
        places = sum(float(node.capacity.cpu) for node in nodes) / self._options.get("cpus", 1)
        return max(1, int(places) + 1 + n_jobs)

    def configure(self, n_jobs: int = 1, parallel: Any = None, **_: Any) -> int:
        """Make ready for a ``Parallel``."""
        self.parallel = parallel
        workers = self._most = self.effective_n_jobs(n_jobs)
        if self._executor is None:
            env = {**self._prepare_worker_env(workers), **self._options.get("env", {})}
            self._executor = Executor(self._connected(), **{"name": "joblib", **self._options, "env": env})
        return workers

    def submit(self, func: Callable[[], Any], callback: Callable[[Future[Any]], None] | None = None) -> Future[Any]:
        """Submit a batch, or keep it until one of ``n_jobs`` is over."""
        if self._executor is None:
            self.configure(parallel=self.parallel)
        called = callback or (lambda _: None)
        with self._turn:
            if self._out >= self._most:
                self._waiting.append((func, called))
                return Future()  # joblib only keeps it: it takes the result from the callback
            self._out += 1
        return self._start(func, called)

    def _start(self, func: Callable[[], Any], callback: Callable[[Future[Any]], None]) -> Future[Any]:
        """Submit a batch whose turn it is."""
        try:
            future: Future[Any] = self._ready().submit(func)
        except BaseException:
            with self._turn:
                self._out -= 1
            raise
        future.add_done_callback(partial(self._ended, callback))
        return future

    def _ended(self, callback: Callable[[Future[Any]], None], future: Future[Any]) -> None:
        """Let the next batch begin, and tell joblib of this one."""
        with self._turn:
            following = self._waiting.popleft() if self._waiting else None
            self._out -= following is None
        if following is not None:
            try:
                self._start(*following)
            except Exception as error:
                failed: Future[Any] = Future()
                failed.set_exception(error)
                following[1](failed)
        callback(future)

    def retrieve_result_callback(self, out: Future[Any]) -> Any:
        """Return what a batch returned, or raise what it raised."""
        return out.result()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Cancel all unfinished jobs and wait for their end, because the client may be closed next."""
        with self._turn:
            self._waiting.clear()
        if self._executor is not None:
            self._executor.abort()
            self._executor.shutdown()
            self._executor = None
        if ensure_ready:
            self.configure(n_jobs=self.parallel.n_jobs, parallel=self.parallel)

    def terminate(self) -> None:
        """Release the executor and the client."""
        self.reset_batch_stats()
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None
        if self._client is not None and self._given_client is None:
            self._client.close()
            self._client = None

    def _connected(self) -> Client:
        if self._client is None:
            self._client = Client.from_env()
        return self._client

    def _ready(self) -> Executor:
        if self._executor is None:
            msg = "the backend is not configured"
            raise RuntimeError(msg)
        return self._executor
