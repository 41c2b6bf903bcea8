"""What ends a world or a process of it, and the trace of a world that counts what each fault struck."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.simulation.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable


class BrokenInvariant(BaseException):
    """Something happened that must never happen.

    Not an ``Exception``: the code under test must not be able to catch it.
    """

    def __init__(self, name: str, sentence: str, detail: str) -> None:
        """Say which promise is broken, and how."""
        super().__init__(f"{name}: {sentence} BUT {detail}")
        self.name = name
        self.sentence = sentence
        self.detail = detail


class Crashed(BaseException):
    """The process that runs this ends here, as by kill -9; not an ``Exception``, so that nothing cleans up."""


class FaultTrace(Trace):
    """The trace of one world."""

    def __init__(self, elapsed: Callable[[], float]) -> None:
        """Remember where to read the time."""
        super().__init__(elapsed)
        self.struck: Callable[[str, str | None], None] = lambda _kind, _where: None
        """Told of each fault, and of the executor it is about."""

    def fault(self, kind: str, detail: str = "", *, where: str | None = None) -> None:
        """Count and write something that goes wrong on purpose, for one executor or for all."""
        self.struck(kind, where)
        super().fault(kind, detail)


class Fuse:
    """Ends a process at a random point of what it does: each point burns it by one, and at the end it blows."""

    def __init__(self) -> None:
        """Begin unlit."""
        self._left: int | None = None

    def light(self, length: int) -> None:
        """Let it blow at the ``length``-th point from now."""
        self._left = length

    def put_out(self) -> None:
        """Let it not blow after all."""
        self._left = None

    def burn(self) -> None:
        """Pass one point.

        Raises:
            Crashed: It was the last one.
        """
        if self._left is None:
            return
        self._left -= 1
        if self._left <= 0:
            self._left = None
            raise Crashed
