"""A further kind of work is a few files of its own: nothing that is there already has to know of it."""

from __future__ import annotations

from pathlib import Path

from tests.kinds.rollout.words import ROLLOUT

ROOT = Path(__file__).parents[2]
MOST_FILES = 15


def test_a_further_kind_of_work_is_few_files_and_no_other_names_it() -> None:
    own = [*(ROOT / "tests" / "kinds" / ROLLOUT.name).iterdir()]
    assert len([path for path in own if path.suffix == ".py"]) <= MOST_FILES
    named = [path for path in (ROOT / "src").rglob("*.py") if ROLLOUT.name in path.read_text().lower()]
    assert named == []
