"""Finds and reads case files: a JSON array, or one JSON object a line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tools.cases.results import Case


def case_files(paths: Iterable[Path]) -> list[Path]:
    """List the case files: a file itself, or every ``*.json`` of a folder, by name."""
    files: list[Path] = []
    for path in paths:
        if not path.exists():
            msg = f"{path}: no such file or folder"
            raise FileNotFoundError(msg)
        files.extend(sorted(path.glob("*.json")) if path.is_dir() else [path])
    return files


def read_cases(path: Path) -> list[Case]:
    """Read the cases of one file.

    Raises:
        ValueError: It is no list of JSON objects.
    """
    text = path.read_text(encoding="utf-8")
    if text.lstrip().startswith("["):
        cases = json.loads(text)
    else:
        cases = [json.loads(line) for line in text.splitlines() if line.strip()]
    if not all(isinstance(case, dict) for case in cases):
        msg = f"{path}: every case must be a JSON object"
        raise ValueError(msg)
    return list(cases)
