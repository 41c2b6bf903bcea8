"""Tables with one line a row, which may get more rows later, as with ``--watch``.

On a terminal a line is cut to its width, the last column first. Elsewhere nothing is cut: programs read it.
"""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING

from holdfast.cli.render.words import cells, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

GAP = "  "
_READABLE = 24
_LEAST = 8
"""Characters that a column keeps while another one has more."""


class Listing:
    """A table of one line a row; a column keeps the width it once had."""

    def __init__(
        self, stream: IO[str], columns: Sequence[str], *, styles: dict[str, str], width: int | None = None
    ) -> None:
        """Write nothing yet.

        Args:
            stream: Where to.
            columns: Names of the columns.
            styles: What cells look like, by their text.
            width: Characters of a line, on a terminal; ``None`` is no terminal, ``0`` one where nothing is cut.
        """
        self._stream, self._columns, self._styles, self._room = stream, columns, styles, width
        self._widths = [0] * len(columns)

    def head(self, rows: Sequence[Sequence[str]] = ()) -> None:
        """Write the names of the columns, which become as wide as these rows need, and the rows."""
        shown = self._prepared(rows)
        self._line(self._columns, bold=True)
        for row in shown:
            self._line(row)

    def rows(self, rows: Sequence[Sequence[str]]) -> None:
        """Write more rows."""
        for row in self._prepared(rows):
            self._line(row)

    def _prepared(self, rows: Sequence[Sequence[str]]) -> list[list[str]]:
        shown = [[printable(cell).replace("\n", " ").replace("\t", " ") for cell in row] for row in rows]
        for row in (self._columns, *shown):
            self._widths = [max(width, self._size(cell)) for width, cell in zip(self._widths, row, strict=True)]
        return shown

    def _size(self, cell: str) -> int:
        return len(cell) if self._room is None else cells(cell)

    def _line(self, cells: Sequence[str], *, bold: bool = False) -> None:
        if self._room is None:
            padded = (cell.ljust(width) for cell, width in zip(cells, self._widths, strict=True))
            self._stream.write(f"{GAP.join(padded).rstrip()}\n")
            return
        from rich.console import Console

        console = Console(file=self._stream, highlight=False, width=max(self._room, sum(self._widths) * 2 + 80))
        console.print(self._styled(cells, bold=bold), soft_wrap=True)

    def _styled(self, cells: Sequence[str], *, bold: bool) -> Text:
        from rich.text import Text

        widths = fitted(self._columns, self._widths, self._room or 0)
        line = Text(style="bold" if bold else "")
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True)):
            text = Text(cell, style=self._styles.get(cell, ""))
            text.truncate(width, overflow="ellipsis")
            last = not any(cells[place + 1 :])
            line.append_text(text)
            if last:
                break
            line.append(" " * (width - text.cell_len) + GAP)
        return line


def fitted(columns: Sequence[str], widths: Sequence[int], room: int) -> list[int]:
    """Narrow columns until a line of them fits.

    The last one, of free text, is narrowed first; if that is not enough, the widest of the others. No column becomes
    narrower than its name while another can.

    Args:
        columns: Their names.
        widths: What each needs.
        room: Characters of a line; 0 is no limit.
    """
    fitting = list(widths)
    over = sum(fitting) + len(GAP) * (len(fitting) - 1) - room
    if not room:
        return fitting
    last = len(fitting) - 1
    for least in (_READABLE, _LEAST, 1):
        bounds = [least if least == 1 else max(least, len(name)) for name in columns]
        cut = max(0, min(over, fitting[last] - bounds[last]))
        fitting[last] -= cut
        over -= cut
        while over > 0 and (wide := [place for place in range(last) if fitting[place] > bounds[place]]):
            fitting[max(wide, key=fitting.__getitem__)] -= 1
            over -= 1
    return fitting


def terminal_width(stream: IO[str]) -> int | None:
    """Return the width of a terminal in characters; ``None`` if the stream is not one."""
    if not stream.isatty():
        return None
    from rich.console import Console

    return Console(file=stream).width or os.get_terminal_size().columns
