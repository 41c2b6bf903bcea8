"""Where there is no time for all mutations: what changed comes first, and what has no turn says so."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from tools.mutate.mutation import Mutation
from tools.mutate.mutations import MUTATIONS
from tools.mutate.order import ordered
from tools.mutate.running import Verdict, run

if TYPE_CHECKING:
    from pathlib import Path

SOME = [
    Mutation(f"{number} of {file}", file, "a", "b", ("unit",)) for file in ("old.py", "new.py") for number in range(9)
]


def commit(root: Path, file: str) -> None:
    """Commit one file, and change nothing else."""
    path = root / "src" / "holdfast" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(path.read_text() + "a" if path.exists() else "a")
    as_whom = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgSign=false")
    for words in (["init", "-q"], ["add", "."], [*as_whom, "commit", "-q", "-m", file]):
        subprocess.run(["git", *words], cwd=root, check=True)


def test_mutations_of_files_that_changed_lately_come_first_and_each_commit_has_its_own_order(tmp_path: Path) -> None:
    for file in ("old.py", *["new.py"] * 40):
        commit(tmp_path, file)
    first = ordered(SOME, tmp_path)
    assert [each.file for each in first] == ["new.py"] * 9 + ["old.py"] * 9
    assert ordered(SOME, tmp_path) == first
    commit(tmp_path, "new.py")
    assert ordered(SOME, tmp_path) != first
    assert sorted(each.name for each in first) == sorted(each.name for each in SOME)


def test_mutations_are_ordered_where_there_is_no_history(tmp_path: Path) -> None:
    assert {each.name for each in ordered(SOME, tmp_path)} == {each.name for each in SOME}


def test_a_mutation_whose_turn_does_not_come_in_time_is_neither_noticed_nor_missed() -> None:
    assert [each.verdict for each in run(MUTATIONS[:2], 1, within_s=-1)] == [Verdict.UNTRIED, Verdict.UNTRIED]
