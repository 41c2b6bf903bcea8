"""A world in which people are told of what becomes of their jobs, by one who may be killed at any moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.dialects.native.envelope import API_VERSION
from holdfast.dialects.native.notify import NOTIFY, write_notify
from holdfast.domain.notifier import Medium, Notifier, Notify, Occasion
from holdfast.errors import Unavailable
from holdfast.notify.courier import Courier
from holdfast.ports.notifications import SendResult
from holdfast.simulation.processes import SeededDice
from tools.simulate.chance import Chance
from tools.simulate.invariants.notifications import NotificationChecks
from tools.simulate.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.domain.notifications.notification import Notification
    from holdfast.errors import Problem
    from holdfast.ports.store import Changes, Store

TOLD_EVERY, FIRST_TOLD = 5, 4
"""One seed of this many, from this one on."""
_NOTIFIERS = ("ops", "me")
_OF_JOBS = (Occasion.END, Occasion.FAILURE, Occasion.HOLD, Occasion.STALL, Occasion.RECOVERY)
_STEP_S = 3.0
_KILLED, _FAILS = 0.2, 0.4


class _AtOnce:
    """Tries at once, in the thread that asks for it; what became of it is stored with the next step, or never."""

    def submit(self, call: Callable[[], None]) -> None:
        call()


class ToldWorld(World):
    """A world whose jobs have people told."""

    def __init__(self, seed: int, open_store: Callable[[], Store]) -> None:
        """Build a world from its seed."""
        super().__init__(seed, open_store)
        self._luck = Chance(f"{seed}/told")
        self.told = NotificationChecks(self.record)
        self.people.notify = self._wish
        self._set_people.asks = self._wish_for_pods
        self._courier: Courier | None = None
        self._serves: Store | None = None

    def _wish(self) -> tuple[Notify, ...]:
        luck = self._luck
        names = [name for name in _NOTIFIERS if luck.happens(0.5)]
        return tuple(
            Notify(name, tuple(each for each in _OF_JOBS if luck.happens(0.6)) or (Occasion.END,)) for name in names
        )

    def _wish_for_pods(self, document: dict[str, Any]) -> None:
        """Have people told of a job set or of a Job of Kubernetes."""
        wished = self._wish()
        if document.get("apiVersion") == API_VERSION:
            document["spec"]["notify"] = write_notify(wished)
        else:
            told = " ".join(f"{each.to}:{','.join(each.on)}" for each in wished)
            document.setdefault("metadata", {}).setdefault("annotations", {})[NOTIFY] = told

    def _ask_for_work(self, until: float) -> None:
        for name in _NOTIFIERS:
            self._store.put_entry(Notifier(name, Medium.WEBHOOK, url="https://example.org"))
        super()._ask_for_work(until)
        self._deliver()

    def _deliver(self) -> None:
        """Step whoever delivers; at times another one takes over, who knows only what is stored."""
        if self._courier is None or self._serves is not self._store or self._luck.happens(_KILLED):
            dice = SeededDice(f"{self.seed}/courier/{self.agenda.elapsed}")
            self._serves = self._store
            self._courier = Courier(self._store, self, self.agenda, dice, workers=_AtOnce())
        try:
            self._disk.require_space()
            self._courier.step()
        except Unavailable:
            pass
        self.agenda.after(_STEP_S, self._deliver)

    def check(self, notifier: Notifier) -> Sequence[Problem]:
        """Find nothing wrong with a notifier."""
        del notifier
        return ()

    def send(self, notifier: Notifier, notification: Notification, now: float) -> SendResult:
        """Tell somebody, who may not answer even if it was taken."""
        del notifier, now
        fails, taken = not self._peaceful and self._luck.happens(_FAILS), self._luck.happens(0.5)
        if not fails or taken:
            self.told.delivered(notification)
        return SendResult("it answered 500") if fails else SendResult()

    def _committed(self, changes: Changes) -> None:
        super()._committed(changes)
        self.told.check(changes)

    def _settled(self) -> bool:
        return super()._settled() and not self.told.waiting()

    def run(self) -> None:
        """Run the storm and the peace after it.

        Raises:
            BrokenInvariant: Something happened that must never happen.
        """
        super().run()
        self.told.check_end(self._store)
