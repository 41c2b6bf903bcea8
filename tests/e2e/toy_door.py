"""The smallest way in there can be: lines over a socket, on operations alone. It shows what a new door has to write.

``RUN COMMAND``, ``WATCH JOB`` and ``CANCEL JOB`` are answered with lines, the last of them ``OK ...`` or ``ERR ...``.
"""

from __future__ import annotations

import json
import socketserver
from itertools import count
from select import select
from typing import TYPE_CHECKING

from holdfast.domain.audit import Act
from holdfast.errors import HoldfastError, InvalidRequest
from holdfast.service.manifests.text import Format, Text
from holdfast.service.operations.events import EventLog
from holdfast.service.operations.jobs import JobOperations
from holdfast.service.operations.submissions import Submissions, WrittenJob

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.domain.access import Principal
    from holdfast.domain.audit import Caller
    from holdfast.service.operations.backend import Backend

PAUSE_S = 0.05


class ToyDoor(socketserver.ThreadingTCPServer):
    """Listens on this machine."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, backend: Backend, principal: Principal) -> None:
        """Open a port; ``serve_forever`` begins."""
        super().__init__(("127.0.0.1", 0), _Visit)
        self.backend, self.principal, self.numbers = backend, principal, count(1)


class _Visit(socketserver.StreamRequestHandler):
    """One connection: a request a line."""

    server: ToyDoor

    def handle(self) -> None:
        for line in self.rfile:
            verb, _, rest = line.decode().strip().partition(" ")
            try:
                for said in self._answer(verb, rest):
                    self._say(said)
            except HoldfastError as error:
                self._say(f"ERR {error.code} {error.message}")

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\n".encode())
        self.wfile.flush()

    def _answer(self, verb: str, rest: str) -> Iterator[str]:
        door = self.server
        caller = door.backend.caller(door.principal, origin="toy", request_id=f"toy-{next(door.numbers)}")
        match verb:
            case "RUN":
                yield self._run(caller, rest)
            case "WATCH":
                yield from self._watch(caller, rest)
            case "CANCEL":
                yield f"OK {JobOperations(door.backend).ask(caller, Act.CANCEL, rest, 'asked at the toy door').id}"
            case _:
                message = f"{verb!r} is not RUN, WATCH or CANCEL"
                raise InvalidRequest(message)

    def _run(self, caller: Caller, command: str) -> str:
        submissions = Submissions(self.server.backend)
        text = Text(json.dumps({"name": "toy", "shell": command, "resources": {"cpu": 0.01}}), Format.JSON)
        written = submissions.read(caller, text)
        assert isinstance(written, WrittenJob)
        return f"OK {submissions.submit(caller, written).id}"

    def _watch(self, caller: Caller, ref: str) -> Iterator[str]:
        backend = self.server.backend
        log, after = EventLog(backend.store, backend.access), 0
        where = log.filter(caller, job=ref)
        while True:
            job = JobOperations(backend).get(caller, ref).job
            part = log.part(caller, where, after=after)
            after = part.next_after
            yield from (type(one.event).__name__ for one in part.events)
            if job.terminal and not part.full:
                yield f"OK {job.state}"
                return
            select([self.connection], [], [], PAUSE_S)
