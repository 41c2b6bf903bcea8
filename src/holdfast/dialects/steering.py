"""Characters that are no text: they steer whoever shows it."""

from __future__ import annotations

CONTROLS = frozenset((*range(0x20), *range(0x7F, 0xA0))) - {ord("\n"), ord("\t")}
"""Unicode's control characters, but for those that lay text out."""
DIRECTIONS = frozenset({0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)})
"""What turns the direction of writing, so that text reads as what it is not, and what ends a line or a paragraph."""
WRITTEN_OUT = {code: f"\\u{code:04x}" for code in sorted(CONTROLS | DIRECTIONS)}
"""How they are written in quotes, in JSON and in YAML."""
