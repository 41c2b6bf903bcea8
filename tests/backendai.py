"""The cases of Backend.AI's two documents, by their ids; tests read their vectors from here."""

from __future__ import annotations

import json
from pathlib import Path

_FILE = Path(__file__).resolve().parent / "data/cases/backendai.json"
CASES: dict[str, dict[str, str]] = {case["id"]: case for case in json.loads(_FILE.read_text())}
