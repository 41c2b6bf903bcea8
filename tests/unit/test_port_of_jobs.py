"""The port of the programs of jobs: the same for each server of a data directory, whoever else listens."""

from __future__ import annotations

import socket
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from holdfast.app.data.datadir import DataDir
from holdfast.app.entrance import listening
from holdfast.errors import Refused

if TYPE_CHECKING:
    from pathlib import Path


def listened(directory: DataDir) -> int:
    with closing(listening.open_jobs_port(directory)) as made:
        host, port = made.getsockname()
        assert host == "127.0.0.1"
        assert isinstance(port, int)
        return port


def test_the_next_server_has_the_same_port_and_another_directory_another(tmp_path: Path) -> None:
    first, second = DataDir(tmp_path / "a"), DataDir(tmp_path / "b")
    with closing(listening.open_jobs_port(first)) as made:
        assert listened(second) != made.getsockname()[1]
    assert listened(first) == made_port(first)
    assert listened(first) == made_port(first)
    assert (first.path / "jobs-port").stat().st_mode & 0o777 == 0o600


def made_port(directory: DataDir) -> int:
    return int((directory.path / "jobs-port").read_text())


def test_a_port_that_is_taken_meanwhile_is_replaced_and_it_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = DataDir(tmp_path / "data")
    before = listened(directory)
    assert caplog.messages == []
    with closing(socket.create_server(("127.0.0.1", before))):
        after = listened(directory)
    assert after != before
    assert after == made_port(directory)
    said = f"port {before} is taken: programs of jobs that started before do not find this server"
    assert caplog.messages == [said]
    assert listened(directory) == after


@pytest.mark.parametrize("text", ["", "none", "80", "-1", "70000"])
def test_what_is_no_such_port_is_another_one(tmp_path: Path, text: str) -> None:
    directory = DataDir(tmp_path / "data")
    (directory.path / "jobs-port").write_text(text)
    assert listened(directory) in range(20_000, 30_000)


def test_whoever_could_have_programs_sent_to_a_port_of_theirs_is_not_believed(tmp_path: Path) -> None:
    directory = DataDir(tmp_path / "data")
    listened(directory)
    (directory.path / "jobs-port").chmod(0o666)
    with pytest.raises(Refused, match="can be written by other users"):
        listening.open_jobs_port(directory)
