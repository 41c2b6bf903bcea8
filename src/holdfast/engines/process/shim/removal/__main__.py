"""Deletes the files of jobs, in a process of its own: only a process without threads can act as another account.

Run by path, isolated and without ``site``: ``python -I -S .../removal/__main__.py JOBS LIMIT_S < IDS``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> None:
    """Read the ids of jobs as JSON, and write why something is left of any."""
    jobs, limit_s = sys.argv[1], float(sys.argv[2])
    sys.path.append(str(Path(__file__).resolve().parents[2]))
    from shim.removal.folder import discard  # type: ignore[import-not-found]  # noqa: PLC0415 - only now can it be found

    json.dump(discard(jobs, json.load(sys.stdin), limit_s), sys.stdout)


if __name__ == "__main__":
    main()
