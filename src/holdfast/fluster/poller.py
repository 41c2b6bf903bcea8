"""Passes the output of a job to a handler in the background."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING

from holdfast.client.forking import after_fork
from holdfast.fluster.logs import LogEntry, LogFilter

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.fluster.rpc_client import RpcClusterClient


class LogPoller:
    """Polls the lines of a job in a thread, and calls a handler for each, until the job has ended."""

    def __init__(
        self,
        client: RpcClusterClient,
        job_id: str,
        handler: Callable[[LogEntry], None],
        poll_interval: float = 1.0,
    ) -> None:
        self._client, self._job_id, self._handler = client, job_id, handler
        self._poll_interval = poll_interval
        self._begin()
        after_fork(self, LogPoller._begin)

    def _begin(self) -> None:
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start polling, unless it has started."""
        if self._thread is None:
            self._stopped.clear()
            self._thread = threading.Thread(target=self._poll, daemon=True)
            self._thread.start()

    def stop(self, timeout: float = 2.0) -> None:
        """Stop polling, and wait at most ``timeout`` seconds for the handler."""
        if self._thread is not None:
            self._stopped.set()
            self._thread.join(timeout)
            self._thread = None

    def _poll(self) -> None:
        reader = self._client.log_reader(self._job_id, LogFilter())
        for status in self._client.watch(self._job_id, math.inf, self._poll_interval, pause=self._stopped.wait):
            for entry in reader.news(status.worker_address):
                if self._stopped.is_set():
                    return
                self._handler(entry)
            if self._stopped.is_set():
                return
