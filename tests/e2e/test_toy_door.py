"""A door of a hundred lines, over a protocol of its own, runs, watches and cancels programs by operations alone."""

from __future__ import annotations

import ast
import socket
import threading
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.app.entrance.accounts import account
from holdfast.app.settings import read_settings
from holdfast.app.wiring import backend, data_dir
from holdfast.domain.access import Principal
from holdfast.storage.sql import open_store
from tests.e2e import toy_door
from tests.e2e.server import Server, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

LARGEST = 100
ALLOWED = ("holdfast.errors", "holdfast.domain", "holdfast.service.manifests", "holdfast.service.operations")


def test_a_door_is_small_and_knows_nothing_below_operations() -> None:
    source = Path(toy_door.__file__).read_text()
    imported = [node.module or "" for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    assert [name for name in imported if name.startswith("holdfast") and not name.startswith(ALLOWED)] == []
    assert len(source.splitlines()) < LARGEST


class Visitor:
    """Speaks the door's protocol."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.lines = self.socket.makefile("r")

    def ask(self, text: str) -> tuple[list[str], str]:
        self.socket.sendall(f"{text}\n".encode())
        told = []
        for line in self.lines:
            told.append(line.strip())
            if line.startswith(("OK ", "ERR ")):
                return told[:-1], told[-1]
        raise AssertionError(told)

    def close(self) -> None:
        self.lines.close()
        self.socket.close()


@contextmanager
def opened(server: Server, principal: Principal, monkeypatch: pytest.MonkeyPatch) -> Iterator[Visitor]:
    monkeypatch.setenv("HOLDFAST_DATA", str(server.data))
    settings = read_settings()
    directory = data_dir(settings)
    with closing(open_store(server.data / "holdfast.db")) as store:
        door = toy_door.ToyDoor(backend(settings, directory, store), principal)
        thread = threading.Thread(target=door.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            with closing(Visitor(door.server_address[1])) as visitor:
                yield visitor
        finally:
            door.shutdown()
            thread.join()
            door.server_close()


def test_a_door_runs_watches_and_cancels_programs(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.start().close()
    with opened(server, account(), monkeypatch) as visitor:
        _, submitted = visitor.ask(f"RUN echo done > {server.folder / 'ledger'}")
        events, ended = visitor.ask(f"WATCH {submitted.split()[1]}")
        assert ended == "OK Succeeded"
        assert (events[0], events[-1]) == ("JobSubmitted", "JobSucceeded")
        assert (server.folder / "ledger").read_text() == "done\n"
        job = visitor.ask("RUN sleep 600")[1].split()[1]
        wait_until(server.programs, "a program that runs")
        assert visitor.ask(f"CANCEL {job}") == ([], f"OK {job}")
        assert visitor.ask(f"WATCH {job}")[1] == "OK Cancelled"
        wait_until(lambda: not server.programs(), "the end of the program")
        assert visitor.ask(f"CANCEL {submitted.split()[1]}")[1].startswith("ERR conflict job 'toy' (")
        assert visitor.ask("WATCH nobody")[1].startswith("ERR not_found no job has the id or name 'nobody'")
        assert visitor.ask("DANCE")[1] == "ERR invalid_request 'DANCE' is not RUN, WATCH or CANCEL"


def test_a_door_asks_nothing_about_rights_and_yet_lets_in_nobody_without_them(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = server.start()
    with opened(server, Principal("stranger"), monkeypatch) as visitor:
        assert visitor.ask("RUN true")[1].startswith("ERR ")
        assert list(client.jobs()) == []
    client.close()
