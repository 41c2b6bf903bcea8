"""What others can have written in a data directory is refused wherever it is read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from holdfast.app import doctor
from holdfast.app.data.datadir import DataDir, ServerAddress
from holdfast.app.data.ownership import Ownership, refuse_copy, require_database
from holdfast.app.data.token import given_token, kept_token
from holdfast.app.settings import Settings
from holdfast.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ADDRESS = ServerAddress("http://127.0.0.1:1", "token", 1)
READERS: dict[str, Callable[[Path], object]] = {
    "the address": lambda data: DataDir(data).server(),
    "an owner": lambda data: Ownership(DataDir(data), data / "holdfast.db", "up").release(),
    "a writer": lambda data: refuse_copy(DataDir(data)),
    "the database": lambda data: require_database(data / "holdfast.db"),
    "a server": lambda data: kept_token(DataDir(data)),
    "a client": lambda data: given_token(Settings(token_file=data / "token")),
}
READ = [
    ("server.json", "the address"),
    ("lock", "an owner"),
    ("identity", "an owner"),
    ("identity", "a writer"),
    ("holdfast.db.lock", "an owner"),
    ("holdfast.db.lock", "the database"),
    ("token", "a server"),
    ("token", "a client"),
]
"""Each file, and who reads it."""


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    """A data directory whose server runs, and has let go of the locks so that readers get to them."""
    folder = DataDir(tmp_path / "data")
    Ownership(folder, folder.database, "up").release()
    folder.announce(ADDRESS)
    kept_token(folder)
    yield folder.path
    folder.withdraw()


def test_what_is_ours_alone_is_read(data: Path) -> None:
    assert DataDir(data).server() == ADDRESS
    for read in READERS.values():
        read(data)
    data.chmod(0o711)  # to be looked for by others does no harm
    assert DataDir(data).server() == ADDRESS


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o1777])
def test_a_data_directory_that_others_can_write_is_refused(data: Path, mode: int) -> None:
    known = DataDir(data)
    data.chmod(mode)
    with pytest.raises(Refused, match=f"can be written by other users .mode {mode:04o}.") as refused:
        DataDir(data)
    assert f"chmod go-w {data}" in str(refused.value.hint)
    for read in (known.server, lambda: Ownership(known, None, "up"), lambda: doctor.directory(Settings(data=data))):
        with pytest.raises(Refused, match="can be written by other users"):
            read()


@pytest.mark.parametrize("mode", [0o620, 0o602])
@pytest.mark.parametrize(("name", "reader"), READ)
def test_a_file_that_others_can_write_is_refused(data: Path, name: str, reader: str, mode: int) -> None:
    (data / name).chmod(mode)
    with pytest.raises(Refused, match=f"{name} can be written by other users"):
        READERS[reader](data)


@pytest.mark.parametrize(("name", "reader"), READ)
def test_a_file_that_leads_elsewhere_or_is_a_pipe_is_refused(data: Path, name: str, reader: str) -> None:
    (data / name).rename(data / "elsewhere")
    (data / name).symlink_to(data / "elsewhere")
    with pytest.raises(Refused, match=f"{name} is a symbolic link"):
        READERS[reader](data)
    (data / name).unlink()
    os.mkfifo(data / name, 0o600)
    with pytest.raises(Refused, match=f"{name} is not a plain file"):
        READERS[reader](data)


@pytest.mark.parametrize("mode", [0o640, 0o604])
@pytest.mark.parametrize("reader", ["a server", "a client"])
def test_a_token_that_others_can_read_is_refused(data: Path, reader: str, mode: int) -> None:
    (data / "token").chmod(mode)
    with pytest.raises(Refused, match=f"can be read by other users .mode {mode:04o}.") as refused:
        READERS[reader](data)
    assert refused.value.hint == f"replace its content if somebody may have read it, and: chmod go= {data / 'token'}"


def test_a_link_to_a_directory_of_ours_is_a_data_directory(data: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(data)
    assert DataDir(tmp_path / "link").server() == ADDRESS


def test_what_is_made_is_private_whatever_others_are_let_do(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        folder = DataDir(tmp_path / "data")
        folder.announce(ADDRESS)
        Ownership(folder, folder.database, "up").release()
        folder.reserve.keep()
        kept_token(folder)
    finally:
        os.umask(before)
    found = {path.name: path.stat().st_mode & 0o777 for path in [folder.path, *folder.path.iterdir()]}
    folder.withdraw()
    assert found.pop("data") == 0o700
    assert found == dict.fromkeys(("server.json", "lock", "identity", "holdfast.db.lock", "reserve", "token"), 0o600)
