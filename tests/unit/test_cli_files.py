"""The files of ``-f``: what may be in them, and where an error is."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from holdfast.cli.context import Cli
from holdfast.cli.manifests import located, read_manifests
from holdfast.cli.nouns import Noun
from holdfast.cli.writing import NamedManifest
from holdfast.errors import InvalidManifest, Problem

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.cli.manifests import Manifest
    from holdfast.cli.nouns import NounName

TWO_JOBS = """\
kind: Job
metadata: {name: a}
spec:
  command: [a]
---
name: b
command: [b]
gang: 0
"""


def read(text: str, *allowed: NounName) -> list[Manifest]:
    return read_manifests(["-"], Cli(stdin=io.StringIO(text)), allowed=allowed or (Noun.JOB,))


def problems(*files: str, text: str = "") -> list[str]:
    with pytest.raises(InvalidManifest) as caught:
        read_manifests(files, Cli(stdin=io.StringIO(text)), allowed=(Noun.JOB,))
    return [str(problem) for problem in caught.value.problems]


def test_many_documents_of_many_files_keep_their_order(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(TWO_JOBS)
    (tmp_path / "two.json").write_text('{"name": "c", "command": ["c"]}')
    found = read_manifests([str(tmp_path / "one.yaml"), str(tmp_path / "two.json")], Cli(), allowed=(Noun.JOB,))
    assert [manifest.name for manifest in found] == ["a", "b", "c"]


def test_json_lines_are_read() -> None:
    assert [manifest.name for manifest in read('{"name":"a","command":["a"]}\n{"name":"b","command":["b"]}\n')] == [
        "a",
        "b",
    ]


def test_a_servers_error_about_many_is_traced_to_its_line() -> None:
    error = InvalidManifest("no", problems=[Problem("items[1].gang", "must be 1 or more", line=77)])
    (problem,) = located(error, read(TWO_JOBS)).problems
    assert (problem.path, problem.line) == ("standard input: gang", 8)


def test_a_servers_error_about_one_is_traced_to_its_line() -> None:
    error = InvalidManifest("no", problems=[Problem("spec.command", "is too long")])
    (problem,) = located(error, read(TWO_JOBS)[:1]).problems
    assert (problem.path, problem.line) == ("standard input: spec.command", 4)


def test_kinds_that_do_not_belong_here_are_named_with_those_that_do() -> None:
    (said,) = problems("-", text="kind: Queue\nmetadata: {name: q}")
    assert "'Queue' cannot be used here; allowed: Job" in said
    assert "line 1" in said


def test_every_bad_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("")
    (tmp_path / "twice.yaml").write_text("name: a\nname: b\n")
    (tmp_path / "latin.yaml").write_bytes(b"name: \xe9")
    said = problems(*(str(tmp_path / name) for name in ("empty.yaml", "twice.yaml", "latin.yaml", "absent.yaml")))
    words = ("contains no documents", "line 2", "not UTF-8", "No such file")
    assert [any(word in one for one in said) for word in words] == [True] * 4


def test_what_is_written_under_a_name_needs_one() -> None:
    (manifest,) = read("kind: Queue\nspec: {weight: 2}", Noun.QUEUE)
    with pytest.raises(InvalidManifest) as caught:
        NamedManifest.of(manifest)
    assert [problem.path for problem in caught.value.problems] == ["standard input: metadata.name"]


MIXED = """\
apiVersion: v1
kind: Service
metadata: {name: s}
---
kind: Job
metadata: {name: a}
spec: {command: [a]}
"""


def test_a_lenient_reading_skips_what_is_none_of_holdfasts_kinds_and_says_so() -> None:
    said = io.StringIO()
    cli = Cli(stdin=io.StringIO(MIXED), stderr=said)
    assert [one.name for one in read_manifests(["-"], cli, allowed=(Noun.JOB,), lenient=True)] == ["a"]
    assert said.getvalue() == "warning: standard input: kind (line 2): Service is skipped: Holdfast has no such kind\n"
    assert len(problems("-", text=MIXED)) == 1


def test_a_file_with_nothing_else_is_refused_leniently_too() -> None:
    with pytest.raises(InvalidManifest):
        read_manifests(["-"], Cli(stdin=io.StringIO(MIXED.partition("---")[0])), allowed=(Noun.JOB,), lenient=True)
