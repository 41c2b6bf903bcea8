"""The connections between executors and the controller: they lose, repeat, delay and reorder messages.

A late request may outlive the controller it was sent to, like one that waits in a proxy.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

from holdfast.errors import Unavailable
from holdfast.ports.exchange import ExchangeTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.ports.exchange import ExchangeRequest, ExchangeResponse
    from holdfast.simulation.agenda import Agenda
    from tools.simulate.chance import Chance
    from tools.simulate.trace import FaultTrace, Fuse

FATES = ("lost", "late", "twice", "answer lost", "answer slow")
OVERTAKEN = "answer overtaken"
"""An earlier answer comes in place of the one to this request."""
_OVERTAKEN_BY = 4
_LATEST_REQUEST_S = 25.0
_LONGEST_ANSWER_S = 2.5
"""An executor's call takes at most this long; its lease leaves room for it (``tools/simulate/README.md``)."""


class Answers(Protocol):
    """Where exchanges end."""

    def answer(self, requests: Sequence[ExchangeRequest]) -> dict[str, ExchangeResponse]:
        """Run a tick with these requests; nothing when the controller is down or could not commit."""
        ...


class Connection(ExchangeTransport):
    """The ``ExchangeTransport`` port of one executor."""

    def __init__(self, controller: Answers, *, agenda: Agenda, chance: Chance, trace: FaultTrace, fuse: Fuse) -> None:
        """Begin healthy.

        Args:
            controller: Where exchanges end.
            agenda: The world's time.
            chance: Decides each exchange's fate.
            trace: The world's trace.
            fuse: Of the executor's process.
        """
        self._controller = controller
        self._agenda = agenda
        self._chance = chance
        self._trace = trace
        self._fuse = fuse
        self.cut = False
        """Nothing passes in either direction."""
        self.deaf = False
        """Requests pass, answers do not."""
        self.trouble = 0.0
        """The share of exchanges with a fault of their own."""
        self.fates: tuple[str, ...] = FATES
        self._asking = 0.0
        self._answered: deque[ExchangeResponse] = deque(maxlen=_OVERTAKEN_BY)
        """The last answers to this life of the executor; none reaches another process than the one that asked."""

    def exchange(self, request: ExchangeRequest) -> ExchangeResponse:
        """Carry one exchange, with the faults of the connection.

        Raises:
            Unavailable: No answer came back.
        """
        self._fuse.burn()
        if self.cut:
            raise Unavailable
        if request.incarnation != self._asking:
            self._asking = request.incarnation
            self._answered.clear()
        fate = self._fate()
        if fate:
            self._trace.fault(f"message {fate}", f"{request.executor}#{request.sequence}", where=request.executor)
        if fate == "late":
            self._deliver_later(request)
        if fate in {"late", "lost"}:
            raise Unavailable
        if fate == "twice":
            self._deliver_later(request)
        answers = self._controller.answer([request])
        if fate == "answer slow":
            self._agenda.run_until(self._agenda.now() + self._chance.moment(0.1, _LONGEST_ANSWER_S))
        self._fuse.burn()
        answer = None if fate == "answer lost" else answers.get(request.executor)
        if fate == OVERTAKEN:
            answer = self._answered[0] if self._answered else None
        self._answered.extend(answers.values())
        if answer is None or self._is_mute():
            raise Unavailable
        return answer

    def _is_mute(self) -> bool:
        """Whether answers get lost now; that can have changed during the exchange."""
        return self.deaf or self.cut

    def _fate(self) -> str:
        if not self._chance.happens(self.trouble):
            return ""
        return self._chance.choice(self.fates)

    def _deliver_later(self, request: ExchangeRequest) -> None:
        def deliver() -> None:
            self._controller.answer([request])

        self._agenda.after(self._chance.moment(0.1, self._chance.choice((1.0, _LATEST_REQUEST_S))), deliver)

    def on_change(self, executor: str, wake: Callable[[], None]) -> None:
        """Ignore the hint: the world gives them, and loses some."""
