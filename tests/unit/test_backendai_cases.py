"""Every case of Backend.AI's documents is a test that has its id, or is decided otherwise for a reason."""

from __future__ import annotations

import re
from pathlib import Path

from tests.backendai import CASES, DEVIATIONS

TESTS = Path(__file__).resolve().parents[1]
OF_DEPLOYMENTS = {"DT", "DE", "RT", "RE"}
"""Groups about deployments and routes, which there are none of."""


def test_every_case_has_a_test_with_its_id_or_a_reason() -> None:
    paths = [path for path in TESTS.rglob("test_*.py") if path != Path(__file__)]
    named = {name for path in paths for name in re.findall(r"\b[A-Z]{2}-\d{3}\b", path.read_text())}
    due = {name for name in CASES if name[:2] not in OF_DEPLOYMENTS}
    assert due - named - DEVIATIONS.keys() == set()
    assert named & DEVIATIONS.keys() == set()
    assert DEVIATIONS.keys() <= due
