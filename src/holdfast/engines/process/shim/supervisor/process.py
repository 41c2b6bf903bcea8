"""The supervisor process: starts one run's program, waits for it and tells the shim; reused for later runs.

Whatever may be slow with a run's files or directories happens here, so that only that run waits. Without a shim a
supervisor continues: it keeps deadlines and grace periods, writes the end into its record, and waits for the next shim.
"""

from __future__ import annotations

import os
import select
from contextlib import suppress

from .. import moment
from ..channel import Channel
from ..record import SUFFIX, Record
from ..records import SUPERVISORS
from .execution import Execution
from .surroundings import entered, listen, wake_on_child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..cgroups import Group
    from ..records import Message, SupervisedRun
    from .surroundings import Surroundings

_FOREVER_S = 3600.0
_SHORT_S = 0.05
"""Seconds to wait for missing descriptors."""
_READABLE = select.POLLIN | select.POLLHUP | select.POLLERR


class Supervisor:
    """One run at a time: its program, its record, its control group."""

    def __init__(self, number: int, fd: int, surroundings: Surroundings, group: Group | None) -> None:
        """Take the record, enter the group and listen for a later shim."""
        self._number = number
        self._surroundings = surroundings
        self._group = entered(group)
        self._record = Record(f"{SUPERVISORS}/{number}{SUFFIX}")
        self._channel: Channel | None = None
        self._listener = listen(f"{SUPERVISORS}/{number}.sock")
        self._wakeup = wake_on_child()
        self._poll = select.poll()
        self._callbacks: dict[int, Callable[[], object]] = {}
        self._execution = Execution(self._record, self._group, surroundings)
        self._execution.await_end = self._on
        self._execution.settled = self._off
        self._left = False
        self._alone_since = float("inf")
        self._on(self._listener.fileno(), self._accept)
        self._on(self._wakeup, self._child_signalled)
        self._join(fd)
        self._greet()

    def serve(self) -> None:
        """Work until dismissed, or until there is no shim and nothing to keep for one."""
        while not self._left and not self._is_forgotten():
            for fd, _ in self._poll.poll(self._timeout_ms()):
                callback = self._callbacks.get(fd)
                if callback is not None:
                    callback()
            now = moment.monotonic()
            self._execution.reap()
            self._execution.due(now)
            self._execution.look(now)
            self._tell()

    def _is_forgotten(self) -> bool:
        if self._channel is not None or self._execution.active or self._execution.notes.lag:
            return False
        return moment.monotonic() - self._alone_since >= self._surroundings.idle_s

    def _timeout_ms(self) -> float:
        now = moment.monotonic()
        due = min(now + _FOREVER_S, self._execution.next_due())
        if self._channel is None and not self._execution.active and not self._execution.notes.lag:
            due = min(due, self._alone_since + self._surroundings.idle_s)
        return max(0.0, due - now) * 1000

    # The shim.

    def _on(self, fd: int, callback: Callable[[], object], events: int = _READABLE) -> None:
        self._poll.register(fd, events)
        self._callbacks[fd] = callback

    def _off(self, fd: int) -> None:
        self._poll.unregister(fd)
        del self._callbacks[fd]

    def _join(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._channel = Channel(fd)
        self._on(fd, self._readable)

    def _accept(self) -> None:
        """Accept a shim; it holds the directory's lock, so its predecessor is dead."""
        try:
            sock, _ = self._listener.accept()
        # The shim stays in the backlog, which delays nobody else.
        except OSError:
            moment.pause(_SHORT_S)
            return
        self._readable()
        self._part()
        self._join(sock.detach())
        self._greet()

    def _greet(self) -> None:
        program = self._execution.program
        run = None if program is None else {**program.report(), "order": _known(program)}
        if self._channel is not None:
            self._channel.send({"hello": self._number, "pid": os.getpid(), "run": run})

    def _part(self) -> None:
        if self._channel is not None:
            self._off(self._channel.fd)
            self._channel.close()
            self._channel = None
            self._alone_since = moment.monotonic()

    def _readable(self) -> None:
        channel = self._channel
        if channel is None:
            return
        channel.push()
        for message in channel.receive():
            # A shim that is gone must not have anything started that its successor does not know of. What it wanted
            # stopped, and has perhaps acknowledged, is to be stopped.
            if channel.open or "stop" in message:
                self._handle(message)
        if not channel.open:
            self._part()
        elif channel.sending:
            self._poll.modify(channel.fd, _READABLE | select.POLLOUT)
        else:
            self._poll.modify(channel.fd, _READABLE)

    def _handle(self, message: Message) -> None:
        execution, uid = self._execution, self._execution.program.uid if self._execution.program is not None else ""
        if "log_limit" in message:
            execution.watch.log_limit = message["log_limit"]
        if "lease_s" in message:
            execution.server_heard(message["lease_s"])
        if "stop" in message and message["stop"][0] == uid:
            execution.reap()  # A run that ended by itself before this was read was not stopped.
            execution.stop(*message["stop"][1:])
        elif "exceeded" in message and message["exceeded"][0] == uid:
            execution.exceeded(*message["exceeded"][1:])
        elif execution.active:
            return
        elif "launch" in message:
            execution.launch(message["launch"])
        elif "foster" in message:
            execution.foster(message["foster"])
        elif "leave" in message and not self._left:
            self._leave()

    def _tell(self) -> None:
        execution, channel = self._execution, self._channel
        if channel is None or execution.program is None or not execution.changed:
            return
        execution.changed = False
        program = execution.program
        watched = bool(program.order.get("memory")) and not program.groups
        report = {"run": program.report(), "worn": execution.worn, "unsaved": execution.notes.lag}
        channel.send({**report, "watched": watched, "draining": program.exit is not None, "clear": execution.aside})
        execution.aside = ""
        if channel.sending:
            self._poll.modify(channel.fd, _READABLE | select.POLLOUT)

    def _leave(self) -> None:
        self._left = True
        self._record.remove()
        with suppress(OSError):
            os.unlink(f"{SUPERVISORS}/{self._number}.sock")  # noqa: PTH108 - beside the calls around it
        if self._group is not None:
            self._group.leave()

    def _child_signalled(self) -> None:
        try:
            os.read(self._wakeup, 4096)  # The reaping itself follows in every round.
        except BlockingIOError:
            return


def _known(program: SupervisedRun) -> Message:
    return {name: value for name, value in program.order.items() if name not in {"env", "argv"}}
