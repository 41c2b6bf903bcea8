"""``holdfast db``: maintain the database."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.flags import Flags
from holdfast.cli.printing import TEXT_FORMATS
from holdfast.domain.units import format_memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.cli.context import Cli
    from holdfast.storage.sql.upkeep import DatabaseHealth

ACTIONS = ("upgrade", "downgrade", "check", "prune", "backup", "restore", "pause", "resume")
_WITH_FILE = frozenset({"backup", "restore"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DbOptions:
    action: Annotated[
        str,
        typer.Argument(metavar="ACTION", help="upgrade, downgrade, check, prune, backup, restore, pause or resume."),
    ]
    file: Annotated[str | None, typer.Argument(metavar="FILE", help="For `backup` and `restore`: the copy.")] = None
    older_than: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="`prune`: delete jobs that ended longer ago than this, e.g. 30d."),
    ] = None
    keep: Annotated[
        str | None,
        typer.Option(metavar="N", help="`prune`: keep the newest N finished jobs, however old they are."),
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="`prune`: only count.")] = False
    resume: Annotated[bool, typer.Option("--resume", help="`restore`: let waiting jobs start at once.")] = False
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FORMAT", help=f"`check`: {', '.join(TEXT_FORMATS)}."),
    ] = "text"


def db(options: DbOptions, cli: Cli) -> int:
    """Maintain the database of the data directory, or the one that HOLDFAST_DATABASE names.

    `upgrade` brings it to the schema this version needs. `downgrade` brings it back to the one before, for the Holdfast
    that was there before, and deletes what only this version knows. `check` says whether it is sound, and exits with 1
    when it is not. `prune` deletes finished jobs with their logs. `backup` copies a SQLite database to FILE, even while
    a server runs; `restore` puts such a copy back, while no server runs. Nothing starts then until `resume`, because
    the original may run the same jobs elsewhere. `pause` does the same to a database that other tools restored.
    """
    flags = Flags()
    action = flags.choice("ACTION", options.action, ACTIONS)
    _check_file(flags, options, action)
    _check_prune(flags, options, action)
    if options.resume and action != "restore":
        flags.wrong("--resume", f"does not apply to {action}")
    form = flags.choice("--output", options.output, TEXT_FORMATS)
    age_s, keep = flags.duration("--older-than", options.older_than), flags.integer("--keep", options.keep)
    flags.finish()
    from holdfast.app import upkeep

    file = Path(options.file or "")
    actions: dict[str, Callable[[], int]] = {
        "upgrade": lambda: _tell_schema(cli, "upgraded", *upkeep.upgrade()),
        "downgrade": lambda: _tell_schema(cli, "brought back", *upkeep.downgrade()),
        "check": lambda: _tell_health(cli, upkeep.check(), form),
        "prune": lambda: _tell_pruned(
            cli,
            sum(upkeep.prune(older_than_s=age_s or 0.0, keep=keep or 0, dry_run=options.dry_run)),
            dry_run=options.dry_run,
        ),
        "backup": lambda: _tell(cli, f"{file} written, {format_memory(upkeep.backup(file))}"),
        "restore": lambda: _tell_restored(
            cli, file, upkeep.restore(file, resume=options.resume), resumed=options.resume
        ),
        "pause": lambda: _pause(cli),
        "resume": lambda: _tell_resumed(cli, was_paused=upkeep.resume()),
    }
    return actions[action]()


def _check_file(flags: Flags, options: DbOptions, action: str) -> None:
    if action in _WITH_FILE and not options.file:
        flags.wrong("FILE", f"{action} needs the name of a file", hint=f"holdfast db {action} FILE")
    if action not in _WITH_FILE and options.file:
        flags.wrong("FILE", f"{action} takes no file")


def _check_prune(flags: Flags, options: DbOptions, action: str) -> None:
    if action == "prune":
        if options.older_than is None:
            flags.wrong("--older-than", "prune needs an age", hint="holdfast db prune --older-than 30d")
        return
    flags_given = {"--older-than": options.older_than, "--keep": options.keep, "--dry-run": options.dry_run}
    for flag, value in flags_given.items():
        if value:
            flags.wrong(flag, f"does not apply to {action}")


def _tell(cli: Cli, line: str) -> int:
    cli.output().text(line)
    return exit_codes.OK


def _tell_schema(cli: Cli, done: str, place: str, before: str | None, after: str) -> int:
    done = f"{done} from schema {before} to {after}" if before else f"created with schema {after}"
    return _tell(cli, f"{place} already has schema {after}" if before == after else f"{place} {done}")


def _tell_health(cli: Cli, health: DatabaseHealth, form: str) -> int:
    code = exit_codes.FAILED if health.problems else exit_codes.OK
    facts = {"database": health.place, "schema": health.revision, "size": health.size}
    if form != "text":
        problems = [*health.problems]
        document = {**facts, "sound": not problems, "problems": problems, "rows": {**health.rows}}
        if health.paused:
            document["paused"] = health.paused
        cli.output().document(document, form)
        return code
    rows = {name: f"{count:,}" for name, count in health.rows.items()}
    if health.paused:
        rows["paused"] = health.paused
    shown = {**facts, "schema": health.revision or "none", "size": format_memory(health.size), **rows}
    cli.output().facts([(name, str(value)) for name, value in shown.items()])
    for problem in health.problems:
        cli.output().text(f"problem: {problem}")
    cli.output().text("not sound" if health.problems else "sound")
    return code


def _tell_pruned(cli: Cli, count: int, *, dry_run: bool) -> int:
    jobs = "1 job" if count == 1 else f"{count:,} jobs"
    return _tell(cli, f"{jobs} would be deleted" if dry_run else f"{jobs} deleted")


def _tell_restored(cli: Cli, file: Path, kept: Path | None, *, resumed: bool) -> int:
    _tell(cli, f"restored from {file}" + (f"; the previous database is kept as {kept}" if kept else ""))
    return exit_codes.OK if resumed else _tell_paused(cli)


def _pause(cli: Cli) -> int:
    from holdfast.app import upkeep

    upkeep.pause()
    return _tell_paused(cli)


def _tell_paused(cli: Cli) -> int:
    return _tell(cli, "nothing starts until you run: holdfast db resume")


def _tell_resumed(cli: Cli, *, was_paused: bool) -> int:
    return _tell(cli, "resumed: waiting jobs start again" if was_paused else "the database was not paused")


DB = Command(
    "db",
    DbOptions,
    db,
    "Operate",
    examples=(
        "holdfast db check",
        "holdfast db prune --older-than 30d --keep 1000",
        "holdfast db backup holdfast-friday.db",
    ),
)
