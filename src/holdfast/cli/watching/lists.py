"""Shows a list while it changes: redrawn on a terminal, elsewhere with a line for each change.

``kubectl get --watch`` adds rows on a terminal, too; but a person wants to see the present state there, not a log. Only
the lines report deletions: they repeat a deleted thing's row with the state Deleted.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.cli import exit_codes
from holdfast.cli.nouns import Noun
from holdfast.cli.printing import TABLES, Printable, json_line, plain, print_csv
from holdfast.cli.render.custom_columns import custom_table, is_custom, read_columns
from holdfast.cli.render.output import Output, Sheet
from holdfast.cli.screen.terminal import Screen
from holdfast.cli.things import name_of
from holdfast.cli.watching.follow import ENDED
from holdfast.cli.watching.interrupts import insistent_interrupts
from holdfast.cli.watching.reaching import AWAY, reached

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from holdfast.cli.context import Cli
    from holdfast.cli.render.listing import Listing
    from holdfast.cli.render.words import Table
    from holdfast.cli.things import Selection
    from holdfast.cli.watching.changes import ChangingList

EVERY_S = 1.0
_PASSING = {"AGE", "TOOK", "SEEN", "ETA"}
"""Columns that change by themselves; a row is not printed again for them."""
_ALWAYS_NEW = {"seen_at", "eta_s"}
_DELETED = "Deleted"
_STATE_COLUMNS = ("STATE", "TERMINALSTATE")
_FRAME = 2
"""Lines of a screen that are no rows: the names of the columns, and what is left out."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What is shown, and how."""

    list: ChangingList
    selection: Selection
    table: Callable[[Sequence[Any], Sequence[Any]], Table]
    """Tabulates things, and the arrays shown among them."""


def watch_list(watched: Watched, cli: Cli) -> int:
    """Show a list until Ctrl-C; returns the exit code."""
    if cli.stdout.isatty() and watched.selection.form in TABLES and cli.environ.get("TERM") != "dumb":
        return _drawn(watched, cli)
    with suppress(KeyboardInterrupt), insistent_interrupts():
        _append(watched, cli)
    return exit_codes.INTERRUPTED


def _append(watched: Watched, cli: Cli) -> None:
    """Print changes below what was printed before."""
    appended, last_notice = _Appended(watched, cli), ""
    for notice in reached(watched.list.look, cli):
        if notice and notice != last_notice:
            cli.say(notice)
        last_notice = notice
        if notice != AWAY:
            appended.show()
        cli.sleep(EVERY_S)


def _drawn(watched: Watched, cli: Cli) -> int:
    """Draw the list on the whole terminal, and print it once more at the end."""
    lines: list[str] = []
    try:
        with Screen(cli.stdout) as screen, insistent_interrupts():
            for notice in reached(watched.list.look, cli):
                lines[:] = _lines(watched, screen.size.lines - bool(notice))
                watched.list.forget_deleted()
                screen.draw([*lines, *([notice] if notice else [])])
                screen.key(EVERY_S)
    except KeyboardInterrupt:
        cli.stdout.writelines(f"{line}\n" for line in lines)
    return exit_codes.INTERRUPTED


def _lines(watched: Watched, room: int) -> list[str]:
    """Write as many lines as fit: unfinished things, and the newest of the rest, in the order of the list."""
    things, others = list(watched.list.things.values()), list(watched.list.others.values())
    shown = {id(thing) for thing in fitting([*things, *others], max(1, room - _FRAME))}
    seen, beside = ([thing for thing in some if id(thing) in shown] for some in (things, others))
    columns, rows = watched.table(seen, beside)
    sheet = Sheet()
    Output(sheet).listing(columns).head(rows)
    left = len(things) + len(others) - len(shown)
    return [*sheet.lines, *([f"and {left:,} more"] if left else [])]


def fitting(things: Sequence[Any], room: int) -> Sequence[Any]:
    """Choose ``room`` things: unfinished before ended ones, later before earlier ones."""
    if len(things) <= room:
        return things
    places = sorted(range(len(things)), key=lambda place: (getattr(things[place], "state", "") in ENDED, -place))
    return [things[place] for place in sorted(places[:room])]


class _Appended:
    """Prints changes in the requested format."""

    def __init__(self, watched: Watched, cli: Cli) -> None:
        self._watched, self._cli = watched, cli
        self._printed: dict[str, object] = {}
        self._listing: Listing | None = None
        self._headed = False

    def show(self) -> None:
        """Print what has changed since the last call."""
        form, out, watched = self._watched.selection.form, self._cli.output(), self._watched.list
        if form == "json":
            for thing in (*self._changed(), *map(_Deleted, watched.deleted.values())):
                out.text(json_line(thing))
        elif form == "name":
            for thing in self._changed():
                out.text(name_of(self._watched.selection.noun, thing))
        elif form == "csv":
            model = self._watched.selection.model
            gone = map(_Deleted, watched.deleted.values()) if "state" in model.model_fields else ()
            print_csv(out, [*self._changed(), *gone], model, header=not self._headed)
        else:
            self._rows(form, out)
        self._headed = True
        for key in (*watched.deleted, *watched.deleted_others):
            self._printed.pop(key, None)
        watched.forget_deleted()
        self._cli.stdout.flush()

    def _changed(self) -> list[Any]:
        """Return the things that differ from what was printed."""
        changed = []
        for key, thing in self._watched.list.things.items():
            if self._printed.get(key) != (now := _lasting(thing)):
                self._printed[key] = now
                changed.append(thing)
        return changed

    def _rows(self, form: str, out: Output) -> None:
        columns, rows = self._tabulated(form)
        lasting = [place for place, name in enumerate(columns) if name not in _PASSING]
        changed = []
        for key, row in rows.items():
            if self._printed.get(key) != (now := [row[place] for place in lasting]):
                self._printed[key] = now
                changed.append(row)
        if self._listing is None:
            self._listing = out.listing(columns, whole=form != "table")
            self._listing.head(changed)
        else:
            self._listing.rows(changed)

    def _tabulated(self, form: str) -> tuple[Sequence[str], dict[str, Sequence[str]]]:
        """Return the columns, and the rows of existing and deleted things by key."""
        watched = self._watched.list
        if is_custom(form):
            listed = [*watched.things.values(), *map(_Deleted, watched.deleted.values())]
            columns, rows = custom_table(read_columns(form), [*map(plain, listed)])
            return columns, dict(zip([*watched.things, *watched.deleted], rows, strict=True))
        things, others = watched.things | watched.deleted, watched.others | watched.deleted_others
        columns, rows = self._watched.table([*things.values()], [*others.values()])
        if self._watched.selection.noun == Noun.SETTINGS:
            return columns, {row[0]: row for row in rows}
        by_key = dict(zip([*things, *others], rows, strict=True))
        if self._watched.selection.noun == Noun.AUDIT:
            return columns, by_key
        return _with_states(columns, by_key, {*watched.deleted, *watched.deleted_others})


class _Deleted:
    """A deleted thing: its last known fields, with the state Deleted."""

    def __init__(self, thing: Printable) -> None:
        self._thing = thing

    def model_dump(self, *, mode: str = "json", by_alias: bool | None = None) -> dict[str, Any]:
        return {**self._thing.model_dump(mode=mode, by_alias=by_alias), "state": _DELETED}


def _with_states(
    columns: Sequence[str], rows: Mapping[str, Sequence[str]], deleted: Collection[str]
) -> tuple[Sequence[str], dict[str, Sequence[str]]]:
    """Mark rows of deleted things in the column of states, which is added if there is none."""
    place = next((columns.index(name) for name in _STATE_COLUMNS if name in columns), len(columns))
    if place == len(columns):
        columns, rows = (*columns, _STATE_COLUMNS[0]), {key: (*row, "") for key, row in rows.items()}
    return columns, {
        key: (*row[:place], _DELETED, *row[place + 1 :]) if key in deleted else row for key, row in rows.items()
    }


def _lasting(thing: Printable) -> dict[str, Any]:
    return {name: value for name, value in plain(thing).items() if name not in _ALWAYS_NEW}
