"""A PostgreSQL server of the tests' own: on a unix socket, in a temporary folder, with nothing durable."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import psycopg
from psycopg import sql

from holdfast.storage.sql import migrations
from holdfast.storage.sql.declared import metadata

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLACES = "/usr/lib/postgresql/*/bin/initdb"
_FAST = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "autovacuum": "off",
    "client_min_messages": "warning",
}
_DURABLE = {"listen_addresses": "", "max_connections": "50"}
_END_OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_RESTART_COUNTING = "SELECT setval(format('%I.%I', schemaname, sequencename)::regclass, 1, false) FROM pg_sequences"
ABSENT = "NO POSTGRESQL: initdb is neither on PATH nor in /usr/lib/postgresql/*/bin (Debian: apt install postgresql)"
"""Why tests on PostgreSQL are skipped where there is none."""


def find_binaries() -> Path | None:
    """Return the folder of the newest server on this machine."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    installed = sorted(Path("/").glob(_PLACES.lstrip("/")), key=lambda path: int(path.parts[-3]))
    return installed[-1].parent if installed else None


def _server_user() -> str | None:
    """The server refuses to run as root; any other user of the machine will do."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in known)


class PostgresServer:
    """A running server that hands out databases."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = count(1)
        self._kept: str | None = None

    def url(self, database: str) -> str:
        return f"postgresql://holdfast@/{database}?host={quote(str(self.folder), safe='')}"

    def empty(self) -> str:
        """Make a database with nothing in it; returns its URL."""
        name = f"t{next(self._numbers)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.url(name)

    def migrated(self) -> str:
        """Return a database at the newest schema without rows: always the same, as making one takes half a second."""
        if self._kept is None:
            self._kept = self.empty()
            migrations.upgrade(self._kept)
        else:
            _wipe(self._kept)
        return self._kept


def _wipe(url: str) -> None:
    """Bring a database back to how its migrations left it."""
    with psycopg.connect(url) as connection:
        connection.execute(_END_OTHERS)
        for table in reversed(metadata.sorted_tables):
            connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table.name)))
        connection.execute("INSERT INTO settings (id, catalogue_version) VALUES (1, 0)")
        connection.execute("INSERT INTO leadership (id, epoch, owner, expires_at) VALUES (1, 0, '', 0)")
        connection.execute(_RESTART_COUNTING)


@contextmanager
def running(binaries: Path, *, durable: bool = False) -> Iterator[PostgresServer]:
    """Run a server for as long as the context lasts; ``durable`` keeps the settings a real one has."""
    user = _server_user()
    folder = Path(tempfile.mkdtemp(prefix="holdfast-pg-"))
    try:
        if user is not None:
            shutil.chown(folder, user)
        data = folder / "data"
        _call(binaries / "initdb", "-D", data, "-U", "holdfast", "-A", "trust", "-E", "UTF8", "--no-sync", user=user)
        options = {**(_DURABLE if durable else _FAST), "unix_socket_directories": str(folder)}
        given = " ".join(f"-c {name}='{value}'" for name, value in options.items())
        log = folder / "log"
        _call(binaries / "pg_ctl", "-D", data, "-l", log, "-w", "-t", "60", "-o", given, "start", user=user)
        try:
            yield PostgresServer(folder)
        finally:
            _call(binaries / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop", user=user)
    finally:
        shutil.rmtree(folder)


def crash(server: PostgresServer, binaries: Path) -> None:
    """End a server at once, as if it were killed, and start it again: it recovers what was committed."""
    data, log = server.folder / "data", server.folder / "log"
    _call(binaries / "pg_ctl", "-D", data, "-l", log, "-m", "immediate", "-w", "restart", user=_server_user())


def _call(program: Path, *arguments: object, user: str | None) -> None:
    """Run one of the server's programs; what it says is shown when it fails."""
    command = [str(program), *map(str, arguments)]
    who = {} if user is None else {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}
    ended = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        cwd="/",
        **who,  # type: ignore[call-overload] # three keywords, or none
    )
    assert ended.returncode == 0, f"{program.name} failed: {ended.stderr}"
