"""Migrations follow each other one by one: two of one number would keep every database from being opened."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.storage.sql.migrations import BASE, HEAD

VERSIONS = Path(__file__).resolve().parents[2] / "src" / "holdfast" / "storage" / "sql" / "migrations" / "versions"


def test_each_migration_has_a_number_of_its_own_and_follows_the_one_before() -> None:
    numbers, before = [], list[str]()
    for path in sorted(VERSIONS.glob("r*.py")):
        found = dict(re.findall(r'(?m)^(revision|down_revision) = (?:"(\d+)"|None)', path.read_text()))
        assert path.name.startswith(f"r{found['revision']}_"), path.name
        numbers.append(found["revision"])
        before.append(found["down_revision"])
    assert numbers == [f"{number:04d}" for number in range(int(BASE), int(BASE) + len(numbers))]
    assert before == ["", *numbers[:-1]]
    assert numbers[-1] == HEAD
