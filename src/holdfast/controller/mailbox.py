"""Carries exchanges between executors and a controller in the same process.

The newest request of each executor waits for the next tick, and its caller waits for that tick's commit. A network
transport has the same two sides.
"""

from __future__ import annotations

import threading
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from holdfast.errors import Unavailable
from holdfast.ports.exchange import ExchangeResponse, ExchangeTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.ports.exchange import ExchangeRequest

_ASK_EVERY_S = 0.5


class Mailbox(ExchangeTransport):
    """An in-process transport; safe to use from many threads."""

    def __init__(
        self, *, wake: Callable[[], None], timeout_s: float = 30.0, hopeless: Callable[[], bool] = lambda: False
    ) -> None:
        """Start empty.

        Args:
            wake: Wakes the controller.
            timeout_s: How long a caller waits for its answer.
            hopeless: Polled while waiting; whether to give up.
        """
        self._wake = wake
        self._timeout_s = timeout_s
        self._hopeless = hopeless
        self._lock = threading.Condition()
        self.waiting: dict[str, ExchangeRequest] = {}
        """Unanswered requests by executor; the dictionary's truth can be read without the lock."""
        self._asking: dict[str, int] = {}
        """The sequence number of the request whose answer each executor waits for."""
        self._answers: dict[str, ExchangeResponse] = {}
        self._hints: dict[str, Callable[[], None]] = {}
        self._closed = False

    def exchange(self, request: ExchangeRequest) -> ExchangeResponse:
        """Leave a request for the next tick and wait for its answer.

        Raises:
            Unavailable: No answer came in time, or the mailbox is closed.
        """
        with self._lock:
            # Drops an answer to an earlier request, or to an earlier incarnation with larger sequence numbers.
            self._answers.pop(request.executor, None)
            self.waiting[request.executor] = request
            self._asking[request.executor] = request.sequence
        self._wake()
        with self._lock:
            for _ in range(max(1, round(self._timeout_s / _ASK_EVERY_S))):
                if self._lock.wait_for(partial(self._is_settled, request), _ASK_EVERY_S) or self._hopeless():
                    break
            self._asking.pop(request.executor, None)
            answer = self._answers.get(request.executor)
            if answer is not None and answer.sequence >= request.sequence:
                return answer
        msg = "the controller did not answer"
        raise Unavailable(msg)

    def _is_settled(self, request: ExchangeRequest) -> bool:
        answer = self._answers.get(request.executor)
        return self._closed or (answer is not None and answer.sequence >= request.sequence)

    def on_change(self, executor: str, wake: Callable[[], None]) -> None:
        """Register the callback for changes of an executor's desired set."""
        self._hints[executor] = wake

    def take(self) -> list[ExchangeRequest]:
        """Return the waiting requests to a tick; an unanswered one is returned again."""
        with self._lock:
            return list(self.waiting.values())

    def answer(
        self,
        responses: Mapping[str, ExchangeResponse],
        changed: frozenset[str],
        ahead: Mapping[str, ExchangeResponse] = MappingProxyType({}),
    ) -> None:
        """Deliver answers to callers, and notify executors whose desired set changed otherwise.

        Args:
            responses: Answers to requests that a tick has taken in.
            changed: Executors whose desired set changed.
            ahead: Answers to requests not taken in yet; their reports stay for the next tick.
        """
        with self._lock:
            for executor, response in responses.items():
                waiting = self.waiting.get(executor)
                if waiting is not None and waiting.sequence <= response.sequence:
                    del self.waiting[executor]
            self._answers.update(responses)
            self._answers.update(ahead)
            hints = []
            for executor in changed & self._hints.keys():
                sequence, answer = self._asking.get(executor), self._answers.get(executor)
                if sequence is None or answer is None or answer.sequence < sequence:
                    hints.append(self._hints[executor])
            self._lock.notify_all()
        for hint in hints:
            hint()

    def close(self) -> None:
        """Release all callers; idempotent."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()
