"""The cases of Backend.AI's two documents, by their ids, and which of them Holdfast decides otherwise."""

from __future__ import annotations

import json
from pathlib import Path

_FILE = Path(__file__).resolve().parent / "data/cases/backendai.json"
CASES: dict[str, dict[str, str]] = {case["id"]: case for case in json.loads(_FILE.read_text())}

DEVIATIONS = {
    "SC-014": "Handlers need no locks: one process leads, and nothing of another is committed.",
    "SC-016": "A session that returns to PENDING gets fresh runs, so that a late report of an old one changes nothing.",
    "SC-018": "Nothing is marked for a next tick: each look does all that can be done by then.",
}
"""Cases that are decided otherwise, each with the reason."""
