"""Writes the generated parts of every page, or with ``--check`` says which are stale."""

from __future__ import annotations

import sys

from tools.docs.pages import stale, write


def main(arguments: list[str]) -> int:
    """Run the task."""
    if arguments == ["--check"]:
        pages = stale()
        for page in pages:
            print(f"{page} is stale: run ./dev docs", file=sys.stderr)
        return 1 if pages else 0
    if arguments:
        print("usage: python -m tools.docs [--check]", file=sys.stderr)
        return 2
    for page in write():
        print(f"wrote {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
