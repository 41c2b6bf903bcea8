"""Finds the generated parts in the pages and replaces their text; leaves the text itself to ``blocks``."""

from __future__ import annotations

import re
from pathlib import Path

from tools.docs.blocks import BLOCKS

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"(<!-- generated:([\w-]+) -->\n).*?(<!-- /generated -->)", re.DOTALL)


def pages() -> list[Path]:
    """List every page that may hold generated parts."""
    return sorted((ROOT / "docs").rglob("*.md"))


def rendered(page: Path) -> str:
    """Return a page's text as it should be.

    Raises:
        KeyError: The page names a part that nothing writes.
    """
    return _BLOCK.sub(lambda match: f"{match[1]}\n{BLOCKS[match[2]]()}\n\n{match[3]}", page.read_text())


def used() -> set[str]:
    """Name the parts that some page shows."""
    return {match[2] for page in pages() for match in _BLOCK.finditer(page.read_text())}


def stale() -> list[str]:
    """List the pages that differ from what the code says."""
    return [str(page.relative_to(ROOT)) for page in pages() if rendered(page) != page.read_text()]


def write() -> list[str]:
    """Rewrite the stale pages and list them."""
    found = stale()
    for name in found:
        (ROOT / name).write_text(rendered(ROOT / name))
    return found
