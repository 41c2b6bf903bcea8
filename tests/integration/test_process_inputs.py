"""What runs find in their work directories of what was sent along with their jobs."""

from __future__ import annotations

import base64
import io
import stat
import zipfile
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.failure import FailureCondition
from holdfast.domain.workloads.preparing import Input, Preparation
from holdfast.engines.process.files import log_path

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.conftest import Machine, NewMachine


def packed(**entries: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in entries.items():
            info = zipfile.ZipInfo(name.replace("__", "/"))
            info.external_attr = (stat.S_IFREG | (0o755 if text.startswith("#!") else 0o644)) << 16
            archive.writestr(info, text)
    return data.getvalue()


def inline(path: str, data: bytes) -> Input:
    return Input(path, data=base64.b64encode(data).decode(), unpack=not path)


def test_a_run_finds_its_files_and_its_archive_before_its_preparation_and_its_program(
    new_machine: NewMachine, tmp_path: Path
) -> None:
    script = "#!/bin/sh\ncat src/data/x call more/deep made\n"
    (tmp_path / "kept").write_bytes(packed(src__run=script, src__data__x="a\n"))
    machine = new_machine(tmp_path / "runs", blob=lambda name, _: tmp_path / name)
    given = (Input(blob="kept", unpack=True), inline("call", b"b\n"), inline("", packed(more__deep="c\n")))
    order = machine.start("./src/run", inputs=given, preparation=Preparation(("sh", "-c", "cat src/data/x > made")))
    outcome = machine.finish(order)
    assert outcome.containers[0].exit_code == 0, outcome
    assert machine.log(order) == "a\nb\nc\na\n"


def test_files_in_folders_are_there_whoever_made_the_folders_before(machine: Machine) -> None:
    given = (inline("d/e/f.txt", b"f\n"), inline("", packed(d__g="g\n")), inline("d/e/h", b"h\n"))
    for attempt in (1, 1, 2):  # the second is a later try in the same place
        order = machine.start("cat", "d/e/f.txt", "d/g", "d/e/h", inputs=given, job_id="j", attempt=attempt)
        outcome = machine.finish(order)
        assert outcome.containers[0].exit_code == 0, outcome
        assert machine.log(order).endswith("f\ng\nh\n")


def test_each_attempt_finds_them_as_they_were_sent(machine: Machine) -> None:
    given = (inline("call", b"x"),)
    for attempt in (1, 2):
        order = machine.start("sh", "-c", "cat call; echo y > call", inputs=given, job_id="j", attempt=attempt)
        machine.finish(order)
        assert machine.log(order) == "x"
    again = machine.start("cat", "call", inputs=given, job_id="j", attempt=2)
    machine.finish(again)
    assert machine.log(again).endswith("x"), "dispatched again, they are put there again"


def lying(**entries: str) -> bytes:
    """Pack entries whose list says that they have one byte."""
    data = bytearray(packed(**entries))
    for header, size in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = data.index(header) + size
        data[at : at + 4] = (1).to_bytes(4, "little")
    return bytes(data)


def damaged(**entries: str) -> bytes:
    data = bytearray(packed(**entries))
    data[40] ^= 0xFF
    return bytes(data)


def test_an_archive_within_one_stays_packed(machine: Machine) -> None:
    within = packed(deep="x")
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("within.zip", within)
    order = machine.start("sh", "-c", "ls; wc -c < within.zip", inputs=(inline("", data.getvalue()),))
    machine.finish(order)
    assert machine.log(order).split() == ["within.zip", str(len(within))]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (Input("call", blob="gone"), "an input of its job is not there any more"),
        (inline("", b"no zip"), "its archive cannot be put into its work directory"),
        (inline("", packed(**{"..__x": "y"})), "is outside"),
        (inline("", lying(x="y" * 100_000)), "Bad CRC-32"),
        (inline("", damaged(long_enough="y" * 1000)), "its archive cannot be put into its work directory"),
        (inline("/proc/call", b"x"), "/proc/call cannot be put"),
    ],
    ids=["gone", "no archive", "outside", "larger than it says", "damaged", "a folder of others"],
)
def test_what_cannot_be_put_there_is_a_launch_that_failed(
    new_machine: NewMachine, tmp_path: Path, given: Input, says: str
) -> None:
    machine = new_machine(tmp_path / "runs", blob=lambda name, _: tmp_path / name)
    order = machine.start("echo", "started", inputs=(given,))
    outcome = machine.finish(order)
    assert (outcome.started, outcome.conditions) == (False, frozenset({FailureCondition.LAUNCH_FAILED}))
    assert (outcome.containers[0].reason, says in outcome.message) == ("PreparationFailed", True), outcome
    assert machine.log(order) == ""
    assert not log_path(machine.directory, order.job_id, 1, 0).parent.parent.joinpath("x").exists()
