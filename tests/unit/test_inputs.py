"""What is sent along with jobs: which archives are taken, where everything is kept, and for how long."""

from __future__ import annotations

import errno
import io
import os
import re
import stat
import threading
import tracemalloc
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from holdfast.compiled.codec import dump_spec
from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Caller
from holdfast.domain.record import evolve
from holdfast.domain.workloads.preparing import Input
from holdfast.errors import InvalidRequest, Refused, Unavailable
from holdfast.ports.blobs import LARGEST_BLOB
from holdfast.ports.secrets import SecretUser
from holdfast.service.admission import archives
from holdfast.service.admission.archives import archive_problems
from holdfast.service.admission.inputs import SPARED_S, absent, kept, sweep
from holdfast.storage.blobs import BlobFiles
from tests.reading import read_job_mapping

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

NOW = 1_700_000_000.0
ANN, BOB = Principal("ann", uid=1001, roles=(Role.USER,)), Principal("bob", uid=1002, roles=(Role.USER,))
ANNS, BOBS = SecretUser("ann", 1001), SecretUser("bob", 1002)
DATA = os.urandom(1000)


@pytest.fixture
def files(tmp_path: Path) -> BlobFiles:
    return BlobFiles(tmp_path / "data" / "blobs")


def archive(entries: Iterable[tuple[str | zipfile.ZipInfo, bytes]]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as written:
        for name, body in entries:
            written.writestr(name, body)
    return data.getvalue()


def special(name: str, kind: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, (kind | 0o777) << 16
    return info


def named(name: str) -> zipfile.ZipInfo:
    """Make an entry of a name that the library would not write."""
    info = zipfile.ZipInfo("x")
    info.filename = info.orig_filename = name
    return info


def test_an_ordinary_archive_of_a_workspace_is_taken() -> None:
    entries: list[tuple[str | zipfile.ZipInfo, bytes]] = [
        (special("src/", stat.S_IFDIR), b""),
        ("src/a.py", b"x"),
        ("src/b/é.py", b"y"),
        ("README", b""),
    ]
    assert archive_problems(archive(entries), "z") == []


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "a/../../x",
        "/etc/passwd",
        "a//b",
        "./x",
        "a\\..\\x",
        "C:\\x",
        "a\nb",
        "a\x00b",
        "x" * 256,
        "a/" * 3000,
        "",
    ],
)
def test_a_name_that_leads_elsewhere_or_is_none_is_refused(name: str) -> None:
    problems = archive_problems(archive([(named(name), b"x")]), "bundle_blob")
    assert re.search("(no|not a) path below the work directory|deeper than", problems[0].message)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK], ids=oct)
def test_links_and_special_files_are_refused(kind: int) -> None:
    [problem] = archive_problems(archive([(special("x", kind), b"/etc")]), "z")
    assert (problem.path, "is a link or a special file" in problem.message) == ("z['x']", True)


@pytest.mark.parametrize(
    "names", [["a", "a"], ["a", "a/b"], ["a/b", "a"], ["a/b", "a/b/c"], ["a", "a/"], ["a", "a/b/"]], ids=" ".join
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_what_is_there_twice_or_both_a_file_and_a_folder_is_refused(names: list[str]) -> None:
    problems = archive_problems(archive([(name, b"x" if not name.endswith("/") else b"") for name in names]), "z")
    assert [problem.message for problem in problems] == ["occurs twice, or is both a file and a folder"]


def test_bombs_are_refused_by_what_they_would_become_before_anything_is_unpacked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(archives, "LARGEST_UNPACKED", 1 << 20)
    monkeypatch.setattr(archives, "MOST_ENTRIES", 10)
    assert "bytes unpacked; at most" in archive_problems(archive([("x", bytes(1 << 21))]), "z")[0].message
    many = archive_problems(archive([(str(number), b"") for number in range(11)]), "z")
    assert many[0].message == "has 11 entries; at most 10 are allowed"


def test_an_archive_that_grows_far_more_than_any_workspace_does_is_a_bomb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "FREELY_UNPACKED", 1 << 20)
    assert archive_problems(archive([("x", bytes(1 << 20))]), "z") == []
    [problem] = archive_problems(archive([("x", bytes((1 << 20) + 1))]), "z")
    assert "more than 200 times its own" in problem.message
    assert archive_problems(archive([("x", os.urandom(1 << 14) + bytes((3 << 20) - (1 << 14)))]), "z") == []


def test_folders_that_no_entry_has_count_as_what_an_archive_becomes_and_take_no_memory_of_their_paths(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deep = archive([(f"{n}/" + "d/" * 64, b"") for n in range(30)])
    assert "deeper than 64 names" in archive_problems(deep, "z")[0].message
    within = archive([(f"{n}/" + "d" * 100 + "/d" * 62, b"") for n in range(300)])
    assert archive_problems(within, "z") == []
    monkeypatch.setattr(archives, "MOST_ENTRIES", 300)
    assert archive_problems(archive([(f"d/{n}", b"") for n in range(299)]), "z") == []
    [problem] = archive_problems(archive([(f"d/{n}", b"") for n in range(300)]), "z")
    assert problem.message == "has more than 300 files and folders, which are the most allowed"
    tracemalloc.start()
    try:
        assert len(archive_problems(archive([(f"{n}/" + "d/" * 2000, b"") for n in range(300)]), "z")) == 21
        assert tracemalloc.get_traced_memory()[1] < 40 << 20, "the paths of its folders are 1.2 GB"
    finally:
        tracemalloc.stop()


def test_a_list_of_far_too_many_entries_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def listed(_: bytes) -> list[zipfile.ZipInfo]:
        pytest.fail("it was read")

    monkeypatch.setattr(archives, "MOST_ENTRIES", 10)
    data = archive([(str(number), b"") for number in range(51)])
    monkeypatch.setattr(archives, "_listed", listed)
    assert archive_problems(data, "z")[0].message == "has some 51 entries; at most 10 are allowed"


def test_an_archive_within_an_archive_is_a_file_as_any_and_its_entries_are_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(archives, "MOST_ENTRIES", 10)
    within = archive([("../x", b""), *((str(number), b"") for number in range(15))])
    stored = zipfile.ZipInfo("within.zip")
    assert archive_problems(archive([(stored, within)]), "z") == []


def test_large_forms_are_taken_and_encrypted_or_oddly_packed_entries_are_not() -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as written, written.open("x", "w", force_zip64=True) as file:
        file.write(b"x")
    assert archive_problems(data.getvalue(), "z") == []
    encrypted = bytearray(archive([("x", b"secret")]))
    for header, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        encrypted[encrypted.index(header) + flags] |= 1
    for whole in (bytes(encrypted), packed_by(zipfile.ZIP_LZMA), packed_by(zipfile.ZIP_BZIP2)):
        assert "is encrypted or compressed" in archive_problems(whole, "z")[0].message


def packed_by(method: int) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as written:
        written.writestr("x", b"x" * 100)
    return data.getvalue()


def test_an_entry_that_is_called_otherwise_where_it_begins_is_refused() -> None:
    data = bytearray(archive([("ab", b"x")]))
    at = data.index(b"ab")
    data[at : at + 2] = b".."
    assert "differ" in archive_problems(bytes(data), "z")[0].message


def test_what_is_no_archive_or_a_damaged_one_is_refused_and_many_problems_are_summed_up() -> None:
    whole = archive([("a", b"x" * 100)])
    for data in (b"", b"PK", os.urandom(500), whole[:-30], whole[30:]):
        assert archive_problems(data, "z"), data
    problems = archive_problems(archive([(f"../{number}", b"") for number in range(50)]), "z")
    assert (len(problems), problems[-1].message) == (21, "has 30 more such entries")


def test_what_is_sent_is_kept_once_in_a_private_file_by_its_hash(files: BlobFiles) -> None:
    name = kept(DATA, files, ANN, field="f")
    path = files.path(name, ANNS)
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (DATA, 0o600)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert kept(DATA, files, ANN, field="f") == name
    assert [one.name for one in path.parent.iterdir()] == [name]


def test_what_is_too_large_or_has_no_room_or_no_place_is_refused(files: BlobFiles, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest) as caught:
        kept(bytes(LARGEST_BLOB + 1), files, ANN, field="bundle_blob", archive=True)
    assert [problem.path for problem in caught.value.problems] == ["bundle_blob"]
    full = BlobFiles(tmp_path / "full", most=len(DATA))
    kept(DATA, full, ANN, field="f")
    with pytest.raises(Refused, match="there is no room"):
        kept(DATA + b"x", full, ANN, field="f")
    assert kept(DATA, full, ANN, field="f"), "it is there already"
    with pytest.raises(Refused, match="keeps no files"):
        kept(DATA, None, ANN, field="f")


def test_what_several_send_at_the_same_moment_is_written_and_has_room_once(tmp_path: Path) -> None:
    full = BlobFiles(tmp_path / "full", most=len(DATA))
    together = threading.Barrier(8)

    def send(_: int) -> str:
        together.wait()
        return kept(DATA, full, ANN, field="f")

    with ThreadPoolExecutor(8) as pool:
        assert len({*pool.map(send, range(8))}) == 1
    assert len([*full.path("x", ANNS).parent.iterdir()]) == 1


def test_what_could_not_be_written_takes_no_room_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = BlobFiles(tmp_path / "full", most=len(DATA))

    def fails(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), fd)

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(Unavailable, match="No space left"):
        kept(DATA, full, ANN, field="f")
    assert [*(tmp_path / "full").rglob("*.new")] == []
    monkeypatch.undo()
    assert kept(DATA, full, ANN, field="f")


def test_to_know_the_hash_of_what_somebody_sent_opens_it_to_nobody_else(files: BlobFiles) -> None:
    name = kept(DATA, files, ANN, field="f")
    spec = evolve(read_job_mapping({"command": ["true"]}), inputs=(Input("call", name),))
    assert absent(spec, None, files, Caller(ANN, NOW, "", "")) == []
    [problem] = absent(spec, None, files, Caller(BOB, NOW, "", ""))
    assert (problem.path, problem.message) == (
        "spec.inputs[0].blob",
        f"you have sent nothing with the SHA-256 {name}",
    )
    assert files.path(name, BOBS) != files.path(name, ANNS)


class Specs:
    def __init__(self, *texts: str) -> None:
        self.texts = texts

    def specs_with(self, part: str) -> Iterator[str]:
        return iter([text for text in self.texts if part in text])


def test_what_no_job_names_goes_an_hour_after_it_was_last_sent(files: BlobFiles) -> None:
    named_one = kept(DATA, files, ANN, field="f")
    other = kept(DATA + b"x", files, ANN, field="f")
    spec = dump_spec(evolve(read_job_mapping({"command": ["true"]}), inputs=(Input("call", named_one),)))
    for given in (named_one, other):
        os.utime(files.path(given, ANNS), (NOW, NOW))
    torn = files.path(other, ANNS).with_name("0" * 64 + ".abc.new")
    torn.write_bytes(b"torn")
    os.utime(torn, (NOW, NOW))
    assert sweep(files, Specs(spec), NOW + SPARED_S) == 0
    assert sweep(files, Specs(spec), NOW + SPARED_S + 1) == 2
    assert files.refresh([named_one, other], ANNS) == {named_one}
    assert not torn.exists()
    assert sweep(files, Specs(), NOW + SPARED_S + 1) == 0, "to be asked for it made it fresh"
