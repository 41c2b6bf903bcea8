"""Writes tables, sentences and documents to one stream.

Only a terminal gets colours and a width: elsewhere a table is plain text, aligned and never cut.
Rich and YAML are imported where they are needed, because most commands need neither.
"""

from __future__ import annotations

import io
import json
from typing import IO, TYPE_CHECKING

from holdfast.cli.render.listing import Listing, terminal_width
from holdfast.cli.render.words import printable
from holdfast.dialects.steering import WRITTEN_OUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

_STYLES = {
    "Succeeded": "green",
    "Completed": "green",
    "Running": "cyan",
    "Restarting": "yellow",
    "Suspended": "bold yellow",
    "Waiting": "dim",
    "Deleting": "dim",
    "BackOff": "yellow",
    "Held": "bold yellow",
    "Failed": "red",
    "Cancelled": "dim",
    "Retry": "yellow",
    "Fail": "red",
    "yes": "green",
}
_GAP = "  "
_LEAST_TEXT = 24
"""Characters a folded column of free text keeps."""


class Output:
    """A writer on one stream."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()

    def text(self, line: str) -> None:
        """Write a line, with control characters escaped."""
        self._stream.write(f"{printable(line)}\n")

    def heading(self, line: str) -> None:
        """Write a line that stands out on a terminal."""
        self._styled(line, "bold")

    def paragraph(self, line: str) -> None:
        """Write a sentence, wrapped to a terminal's width."""
        self._styled(line, "")

    def _styled(self, line: str, style: str) -> None:
        if self._is_terminal:
            from rich.text import Text

            self._console().print(Text(printable(line), style=style))
        else:
            self.text(line)

    def _console(self, width: int | None = None) -> Console:
        from rich.console import Console

        return Console(file=self._stream, highlight=False, width=width)

    def document(self, value: object, form: str) -> None:
        """Write plain data as JSON or YAML."""
        if form == "yaml":
            from holdfast.dialects.yaml_writing import write_yaml

            self._stream.write(write_yaml(value))
        else:
            self.text(json.dumps(value, indent=2, ensure_ascii=False).translate(WRITTEN_OUT))

    def facts(self, facts: Sequence[tuple[str, str]]) -> None:
        """Write names and values, aligned."""
        width = max(len(name) for name, _ in facts) + len(_GAP)
        for name, value in facts:
            self.text(f"{name + ':':<{width}}{value}")

    def listing(self, columns: Sequence[str], *, whole: bool = False) -> Listing:
        """Begin a table of one line a row; ``whole`` cuts nothing on a terminal either."""
        width = terminal_width(self._stream)
        return Listing(self._stream, columns, styles=_STYLES, width=0 if whole and width is not None else width)

    def raw(self, text: str) -> None:
        """Write text that has its own line ends, with control characters escaped."""
        lines = text.split("\r\n")
        self._stream.write("\r\n".join(map(printable, lines)))

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write a table; an empty one still shows its columns."""
        rows = [[printable(cell) for cell in row] for row in rows]
        if self._is_terminal:
            # A separate console, because `print` never goes beyond its console's width.
            width = max(self._console().width, _least_width(columns, rows))
            self._console(width).print(_rich_table(columns, rows))
        else:
            for line in plain_table(columns, rows):
                self.text(line)


class Sheet(io.StringIO):
    """Text in memory that is written as on a terminal, with its colours and its width."""

    def isatty(self) -> bool:
        """Return true."""
        return True

    @property
    def lines(self) -> list[str]:
        """What was written, line by line."""
        return self.getvalue().splitlines()


def _rich_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Make a table in which only the last column, the one of free text, is folded."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, len(_GAP), 0, 0), header_style="bold")
    for column in columns[:-1]:
        table.add_column(column, no_wrap=True)
    table.add_column(columns[-1], overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    return table


def _least_width(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Find the width below which words would be cut; a narrower terminal wraps whole lines instead."""
    widths = [max(len(line[place]) for line in (columns, *rows)) for place in range(len(columns))]
    return sum(width + len(_GAP) for width in widths[:-1]) + min(widths[-1], _LEAST_TEXT)


def plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Align cells in columns of their full width, without trailing blanks."""
    lines = [[cell.replace("\n", " ") for cell in row] for row in (columns, *rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    return [_GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
