"""Control characters and direction marks, which can disguise text."""

from __future__ import annotations

CONTROLS = frozenset((*range(0x20), *range(0x7F, 0xA0))) - {ord("\n"), ord("\t")}
"""Unicode's control characters, except newline and tab."""
DIRECTIONS = frozenset({0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)})
"""Direction marks, which reorder text, and separators of lines and paragraphs."""
WRITTEN_OUT = {code: f"\\u{code:04x}" for code in sorted(CONTROLS | DIRECTIONS)}
"""Their escapes in quoted JSON and YAML."""
