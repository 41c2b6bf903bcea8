"""The port of the programs of jobs while there is no server: held by the shim, with real sockets and accounts."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from holdfast.app.data.datadir import DataDir
from holdfast.app.entrance import listening
from holdfast.ports.engine import RunPhase

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.conftest import Machine, NewMachine

TAKES = """
import os, socket, sys
os.setgroups([]), os.setgid(65534), os.setuid(65534)
for option in (None, socket.SO_REUSEADDR, socket.SO_REUSEPORT):
    made = socket.socket(socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET)
    if option is not None:
        made.setsockopt(socket.SOL_SOCKET, option, 1)
    try:
        made.bind((sys.argv[2], int(sys.argv[1])))
        made.listen()
    except OSError as error:
        print(error.errno)
    else:
        print("taken")
    made.close()
"""


def held(new_machine: NewMachine, directory: DataDir, folder: Path) -> Machine:
    """Run a program under a shim that holds the port, without a server."""
    machine = new_machine(folder, held_port=listening.kept_port(directory))
    order = machine.start("sleep", "1000")
    machine.until(order, lambda seen: seen.phase is RunPhase.RUNNING)
    return machine


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can try it as another account")
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::"])  # noqa: S104 - what another account may try
def test_no_other_account_has_the_port_of_jobs_while_the_server_is_away(
    new_machine: NewMachine, tmp_path: Path, host: str
) -> None:
    directory = DataDir(tmp_path / "data")
    listening.open_jobs_port(directory).close()
    port = listening.kept_port(directory)
    held(new_machine, directory, tmp_path / "runs")
    words = [sys.executable, "-I", "-c", TAKES, str(port), host]
    attempts = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "taken" not in attempts.stdout
    assert len(attempts.stdout.split()) == 3
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 5)


def test_the_next_server_has_the_port_that_the_shim_holds_and_a_third_has_not(
    new_machine: NewMachine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = DataDir(tmp_path / "data")
    listening.open_jobs_port(directory).close()
    port = listening.kept_port(directory)
    machine = held(new_machine, directory, tmp_path / "runs")
    with closing(listening.open_jobs_port(directory)) as server:
        assert server.getsockname() == ("127.0.0.1", port)
        with closing(socket.create_connection(("127.0.0.1", port), 5)) as caller:
            connected, address = server.accept()
            connected.close()
            assert address == caller.getsockname()
        machine.engine.close()
        machine.open()  # a server is told of while it listens, too
        assert caplog.messages == []
        with closing(listening.open_jobs_port(directory)) as other:
            assert other.getsockname()[1] != port
    assert [message.partition(":")[0] for message in caplog.messages] == [f"port {port} is taken"]
