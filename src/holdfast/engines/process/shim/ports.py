"""Assigns port numbers to runs; no two living runs share one."""

from __future__ import annotations

import os
import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .records import Message, ShimRun

_FIRST, _LAST = 20000, 32000
"""Below the range that the kernel uses for outgoing connections, which could take a number before its run binds it."""


class HeldPort:
    """Keeps a loopback port from other accounts while its server is away.

    The port is bound without listening: a program that connects meanwhile is refused. The next server binds it, too,
    which the kernel allows only to the same account (``SO_REUSEPORT``).
    """

    def __init__(self) -> None:
        self.number = 0
        self._socket: socket.socket | None = None

    def hold(self, number: int) -> None:
        """Hold this port instead of another; 0 for none. A port that somebody else has is not held."""
        if number == self.number:
            return
        if self._socket is not None:
            self._socket.close()
        self.number, self._socket = 0, None
        if number:
            self._bind(number)

    def _bind(self, number: int) -> None:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            # Without SO_REUSEADDR, which would admit another listener while nobody listens.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listener.bind(("127.0.0.1", number))
        except OSError:
            listener.close()
            return
        self.number, self._socket = number, listener


class Ports:
    """The ports in use, by run and by gang."""

    def __init__(self) -> None:
        """Start at a port that differs between shims."""
        self._next = _FIRST + os.getpid() * 37 % (_LAST - _FIRST)
        self._used: dict[int, str] = {}
        self._of: dict[str, list[int]] = {}
        self._masters: dict[str, tuple[int, set[str]]] = {}
        self._gang_of: dict[str, str] = {}

    def environment(self, run: ShimRun) -> dict[str, str]:
        """Take the ports that a run needs and its gang's master port, as environment variables.

        Raises:
            OSError: There is no free port.
        """
        order: Message = run.order or {}
        names = order.get("ports") or ()
        variables = {f"HOLDFAST_PORT_{name}": str(self._take(run.uid)) for name in names}
        if order.get("gang"):
            variables["HOLDFAST_MASTER_PORT"] = str(self._master(order["gang"], run.uid))
        return variables

    def take_over(self, uid: str, numbers: Iterable[int], gang: str, master: int) -> None:
        """Note the ports of a run that an earlier shim started."""
        for number in numbers:
            self._hold(number, uid)
        if gang and master:
            self._used[master] = gang
            self._masters.setdefault(gang, (master, set()))
            self._master(gang, uid)

    def release(self, uid: str) -> None:
        """Release a run's ports; a gang's master port is released with its last run."""
        gang = self._gang_of.pop(uid, "")
        for number in self._of.pop(uid, ()):
            self._used.pop(number, None)
        if gang in self._masters:
            number, holders = self._masters[gang]
            holders.discard(uid)
            if not holders:
                del self._masters[gang]
                self._used.pop(number, None)

    def _master(self, gang: str, uid: str) -> int:
        if gang not in self._masters:
            number = self._free()
            self._used[number] = gang
            self._masters[gang] = (number, set())
        number, holders = self._masters[gang]
        holders.add(uid)
        self._gang_of[uid] = gang
        return number

    def _take(self, uid: str) -> int:
        return self._hold(self._free(), uid)

    def _hold(self, number: int, uid: str) -> int:
        self._used[number] = uid
        self._of.setdefault(uid, []).append(number)
        return number

    def _free(self) -> int:
        for _ in range(_LAST - _FIRST):
            number = self._next
            self._next = number + 1 if number + 1 < _LAST else _FIRST
            if number not in self._used and _bindable(number):
                return number
        msg = "no free ports available"
        raise OSError(msg)


def _bindable(number: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("", number))
        except OSError:
            return False
    return True
