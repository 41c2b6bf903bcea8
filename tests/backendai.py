"""The cases of Backend.AI's two documents, by their ids, and which of them Holdfast decides otherwise."""

from __future__ import annotations

import json
from pathlib import Path

_FILE = Path(__file__).resolve().parent / "data/cases/backendai.json"
CASES: dict[str, dict[str, str]] = {case["id"]: case for case in json.loads(_FILE.read_text())}

_NOW = "Shares are of what runs now: what somebody used last week keeps nobody from a free node."
_REQUESTED = "Nothing is preempted but on request, and the request says what."
DEVIATIONS = {
    "PR-003": _REQUESTED,
    "PR-006": "A preempted session always goes on: nobody ended it.",
    "PR-007": _REQUESTED,
    "PR-008": _REQUESTED,
    "SC-014": "Handlers need no locks: one process leads, and nothing of another is committed.",
    "SC-016": "A session that returns to PENDING gets fresh runs, so that a late report of an old one changes nothing.",
    "SC-017": "A change of status is an event of the job; sessions have events of their own only for their retries.",
    "SC-018": "Nothing is marked for a next tick: each look does all that can be done by then.",
    "SL-003": "What fits starts, or nodes would idle; a larger session that has waited long has them kept free.",
    "SL-007": "Waiting is no failure and is never given up, so no priority is lowered because of it.",
    "SL-012": "Nodes fetch what they are to stop: one that is silent keeps no other from it.",
    "SQ-002": "There is one order: by the shares of the projects, then by priority, then first come, first served.",
    "SQ-008": "What is wrong with a request is told together; a session that waits says what it waits for first.",
    "SQ-014": _NOW,
    "SQ-015": _NOW,
}
"""Cases that are decided otherwise, each with the reason."""
