"""A wire between a program and a PostgreSQL server that a test can freeze, or cut at the worst moment."""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

_SOCKET = ".s.PGSQL.5432"
_COMMIT = b"COMMIT\x00"
_CHUNK = 1 << 16


class Wire:
    """Carries everything both ways, until told otherwise."""

    def __init__(self, folder: Path, url: str) -> None:
        """Listen in a folder; ``url`` is the server's own."""
        self.server = Path(unquote(parse_qs(urlsplit(url).query)["host"][0])) / _SOCKET
        self.url = url.partition("?")[0] + f"?host={quote(str(folder), safe='')}"
        self.cut = 0
        """How many answers to a COMMIT were lost."""
        self._cut_every = self._commits = 0
        self._flowing = threading.Event()
        self._flowing.set()
        self._open: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / _SOCKET))
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def freeze(self) -> None:
        """Carry nothing any more, and tell nobody."""
        self._flowing.clear()

    def thaw(self) -> None:
        """Carry again, also what was sent meanwhile."""
        self._flowing.set()

    def cut_commits(self, *, every: int) -> None:
        """Of so many COMMITs, let the server make one and lose its answer with the connection; 0 loses none."""
        self._cut_every, self._commits = every, 0

    def close(self) -> None:
        """End everything."""
        self._listener.close()
        self._flowing.set()
        for one in self._open:
            _end(one)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(str(self.server))
            self._open += [client, server]
            doomed = threading.Event()
            threading.Thread(target=self._carry, args=(client, server, doomed, True), daemon=True).start()
            threading.Thread(target=self._carry, args=(server, client, doomed, False), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, doomed: threading.Event, asks: bool) -> None:  # noqa: FBT001 - a thread's argument
        with suppress(OSError):
            while chunk := source.recv(_CHUNK):
                self._flowing.wait()
                if asks and chunk.endswith(_COMMIT):
                    self._commits += 1
                    if self._cut_every and self._commits % self._cut_every == 0:
                        doomed.set()
                if doomed.is_set() and not asks:
                    self.cut += 1
                    break
                target.sendall(chunk)
        _end(source)
        _end(target)


def _end(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)


@contextmanager
def laid(url: str) -> Iterator[Wire]:
    """Lay a wire to a server for as long as the context lasts; its folder has a short name, as a socket needs."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-wire-"))
    folder.chmod(0o755)
    wire = Wire(folder, url)
    try:
        yield wire
    finally:
        wire.close()
        shutil.rmtree(folder)
