"""Delivers the notifications of the outbox that are due, and stores the result of each.

Nothing is stored before a try: if the process is killed in the middle, the notification stays due, and is sent again
under the same id. So a receiver that keeps ids gets it once, and none is lost.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Protocol

from holdfast.domain.notifications.notification import DeliveryState
from holdfast.domain.record import evolve
from holdfast.domain.terms.workload_kinds import ARRAY
from holdfast.errors import HoldfastError
from holdfast.ports.notifications import SendResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.domain.notifications.notification import Notification
    from holdfast.domain.notifier import Notifier
    from holdfast.ports.clock import Clock, Dice
    from holdfast.ports.notifications import Sender
    from holdfast.ports.store import Store

AT_ONCE = 32
AT_ONCE_EACH = 2
"""Tries of one notifier at a time, so that one which never answers leaves room for the others."""
LONGEST_WAIT_S = 5.0
"""The longest wait of a replay that another process requested."""
_LAST_S = 1.0
_LOOK_S = 0.01
_log = logging.getLogger(__name__)


class Workers(Protocol):
    """Runs tries."""

    def submit(self, call: Callable[[], None]) -> None:
        """Make a call, now or soon."""


class Threads:
    """Daemon threads, started as they are needed."""

    def __init__(self, most: int = AT_ONCE) -> None:
        self._most = most
        self._count = 0
        self._idle = threading.Semaphore(0)
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def submit(self, call: Callable[[], None]) -> None:
        """Make a call in an idle thread, or in a new one."""
        self._calls.put(call)
        if not self._idle.acquire(blocking=False) and self._count < self._most:
            self._count += 1
            threading.Thread(target=self._work, name=f"holdfast-notify-{self._count}", daemon=True).start()

    def _work(self) -> None:
        while True:
            self._calls.get()()
            self._idle.release()


def completed(store: Store, notification: Notification) -> Notification:
    """Add what only the store knows: the nodes of a job, and the causes of an array's failed tasks."""
    report = notification.report
    if report.complete:
        return notification
    if report.kind == ARRAY:
        report = evolve(report, causes=store.causes_of(report.id) if report.counts.get("failed") else {})
    elif not report.nodes and report.attempts:
        runs = [run for run in store.runs(report.id) if run.attempt == report.attempts and run.node]
        report = evolve(report, nodes=tuple(dict.fromkeys(run.node for run in runs)))
    return evolve(notification, report=evolve(report, complete=True))


class Courier:
    """Delivers what is due, for all notifiers, in the process that leads."""

    def __init__(
        self,
        store: Store,
        sender: Sender,
        clock: Clock,
        dice: Dice,
        *,
        workers: Workers | None = None,
        count: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Begin with nothing under way.

        Args:
            store: Has the outbox.
            sender: Tries once.
            clock: Tells the time.
            dice: For jitter.
            workers: Run tries; by default threads.
            count: Called after each try with ``delivered``, ``failed``, or ``dead`` if it was the last.
        """
        self._store, self._sender, self._clock, self._dice = store, sender, clock, dice
        self._workers = workers or Threads()
        self._under_way: dict[str, Notification] = {}
        self._done: SimpleQueue[Notification] = SimpleQueue()
        self._unsettled: list[Notification] = []
        self.changed: Callable[[], None] = lambda: None
        """Called from any thread when there is something to do."""
        self._count = count

    def step(self) -> float:
        """Store the results of tries, and begin those that are due; returns how long to wait, unless something happens.

        Raises:
            Unavailable: The database is away; nothing is lost.
        """
        self._settle()
        now = self._clock.now()
        while (room := AT_ONCE - len(self._under_way)) > 0:
            due = self._store.due_notifications(now, limit=room, but=self._under_way, not_to=self._full())
            if not due:
                break
            self._begin_some(due)
        if not self._done.empty():
            return 0.0
        following = self._store.next_notification_at(but=self._under_way, not_to=self._full())
        return LONGEST_WAIT_S if following is None else max(0.0, min(LONGEST_WAIT_S, following - now))

    def _full(self) -> set[str]:
        """Return the notifiers that may have no more tries under way."""
        busy = Counter(notification.to for notification in self._under_way.values())
        return {to for to, count in busy.items() if count >= AT_ONCE_EACH}

    def _begin_some(self, due: Sequence[Notification]) -> None:
        """Begin those whose notifiers have room, as each has for its first."""
        notifiers = self._store.catalogue().notifiers
        for notification in due:
            if notification.to not in self._full():
                whole = self._under_way[notification.id] = completed(self._store, notification)
                self._workers.submit(partial(self._try, whole, notifiers.get(notification.to)))

    def _try(self, notification: Notification, notifier: Notifier | None) -> None:
        """Try once, and leave the result to the next step."""
        if notifier is None:
            result = SendResult(f"notifier {notification.to!r} does not exist, or cannot be read", final=True)
        else:
            result = self._sender.send(notifier, notification, self._clock.now())
        now = self._clock.now()
        if not result.error:
            self._done.put(notification.delivered(now))
        else:
            self._done.put(notification.failed(result.error, now, draw=self._dice.draw(), final=result.final))
        self.changed()

    def _settle(self) -> None:
        """Store the results of tries; what cannot be stored now is kept."""
        while True:
            try:
                self._unsettled.append(self._done.get_nowait())
            except Empty:
                break
        if not self._unsettled:
            return
        stored = self._store.settle_notifications(self._unsettled)
        for notification in self._unsettled:
            self._count(str(notification.state).lower() if notification.settled_at is not None else "failed")
            self._under_way.pop(notification.id, None)
        for notification in stored:
            if notification.state is DeliveryState.DEAD:
                _log.warning(
                    "notification %s to %s is given up: %s", notification.id, notification.to, notification.error
                )
        self._unsettled.clear()

    def drain(self, bound_s: float) -> int:
        """Deliver for at most ``bound_s`` what is due before a process ends; returns how many still wait."""
        until = self._clock.now() + bound_s
        while True:
            wait_s = self.step()
            if not self._under_way and wait_s > 0:
                break
            left_s = until - self._clock.now()
            if left_s <= 0 or not self._awaited(min(left_s, max(wait_s, _LOOK_S))):
                break
        return self._store.count_notifications().get(DeliveryState.WAITING, 0)

    def stop(self) -> None:
        """Store the results of tries, also of those that end soon; the next courier repeats the others."""
        try:
            if self._under_way and self._awaited(_LAST_S):
                self._settle()
        except HoldfastError as error:
            _log.warning("the last deliveries could not be stored: %s", error)

    def _awaited(self, bound_s: float) -> bool:
        """Wait until a try has ended; returns whether one has."""
        try:
            self._unsettled.append(self._done.get(timeout=bound_s))
        except Empty:
            return False
        return True
