"""What a command works with besides its options: streams, time, settings and the connection, each made on first use.

Everything heavy is imported inside these functions, so that ``holdfast --help`` stays under 200 ms.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, TextIO

from holdfast.cli.render.words import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from holdfast.cli.render.output import Output
    from holdfast.client import Client

_SYSTEMS = {"Backendai": "Backend.AI"}
"""Systems whose names are not those of their doors with a capital."""


@dataclass(slots=True)
class Cli:
    """The environment of one command; tests pass their own."""

    stdin: TextIO = field(default_factory=lambda: sys.stdin)
    stdout: IO[str] = field(default_factory=lambda: sys.stdout)
    stderr: IO[str] = field(default_factory=lambda: sys.stderr)
    environ: Mapping[str, str] = field(
        default_factory=lambda: os.environ,  # noqa: TID251 - the caller's environment is an input of `run --env`
    )
    now: Callable[[], float] = time.monotonic
    """Monotonic seconds, for time limits."""
    clock: Callable[[], float] = time.time  # noqa: TID251 - ages are shown by this machine's clock
    """Seconds since the epoch, UTC."""
    sleep: Callable[[float], None] = time.sleep
    cwd: Callable[[], str] = os.getcwd
    token_file: str | None = None
    """The file with the token for the server; ``None`` leaves it to the settings."""
    _remarked: set[str] = field(default_factory=set)

    def use_token_file(self, token_file: str | None) -> None:
        """Take the token for the server from this file; ``None`` leaves it to the settings."""
        self.token_file = token_file

    def connect(
        self, *, drive: bool = False, places: bool = True, attached: bool = False
    ) -> AbstractContextManager[Client]:
        """Connect to the running server, or open the data directory in this process.

        Args:
            drive: Without a server, also run controller and executor here while the context is open.
            places: Whether these may start waiting jobs.
            attached: Reconnect when the server restarts meanwhile.
        """
        from holdfast.app.connect import connect

        remark = self._remark if self.stderr.isatty() else None
        waits = self.say if attached else None
        return connect(drive=drive, places=places, waits=waits, remark=remark, token_file=self.token_file)

    @staticmethod
    def is_unserved() -> bool:
        """Whether no server is configured or running here."""
        from holdfast.app import reach, whereabouts

        return whereabouts.find(reach.read_reach()) is None

    @staticmethod
    def is_looked_after() -> bool:
        """Whether a server, or a waiting command, runs the jobs that are shown."""
        from holdfast.app.connect import is_looked_after

        return is_looked_after()

    def note_unserved(self, what: str = "jobs start", wait: str = "holdfast wait JOB") -> None:
        """Tell the user if no server is running to do what was just requested."""
        if self.is_unserved():
            self.say(f"no server is running; {what} when you run `holdfast up`, or while `{wait}` waits for them")

    def serve(self, *, host: str | None, port: int | None, daemon: bool = False, **settings_given: object) -> None:
        """Run the server in this process until it is stopped, or start it in the background and return once it answers.

        Args:
            host: The address to listen on; ``None`` leaves it to the settings.
            port: The port to listen on, likewise.
            daemon: Whether to run it in the background.
            **settings_given: Settings that override the environment's.
        """
        from functools import partial

        from holdfast.app.server import serve
        from holdfast.app.settings import read_settings

        settings = read_settings(**settings_given)
        start = partial(serve, host, port, settings)
        socket = f" and unix://{settings.socket.absolute()}" if settings.socket else ""

        def tell(url: str, doors: Mapping[str, str], end: str) -> None:
            named = ((*name.capitalize().partition("-"), address) for name, address in doors.items())
            places = "".join(
                f", for {_SYSTEMS.get(system, system)}'s clients {'by gRPC ' * bool(how)}at {at}"
                for system, _, how, at in named
            )
            self.say(f"holdfast is up at {url}{socket}{places}, API docs at {url}/docs; {end}")

        if daemon:
            from holdfast.app.daemon import detach, log_of
            from holdfast.app.data.datadir import DataDir

            log = log_of(DataDir(settings.data).path)
            server = detach(log, lambda started: start(started=started))
            for warning in server.warnings:
                self.say(f"warning: {warning}")
            tell(server.url, server.doors, f"log: {log}; holdfast down stops it")
        else:
            start(started=partial(tell, end="Ctrl-C stops it"))

    def output(self) -> Output:
        """Return the writer of tables and documents."""
        from holdfast.cli.render.output import Output

        return Output(self.stdout)

    def _remark(self, line: str) -> None:
        """Say a line once, however often there is a reason to."""
        if line not in self._remarked:
            self._remarked.add(line)
            self.say(line)

    def say(self, line: str) -> None:
        """Write a line that is not part of the command's result, with control characters escaped."""
        self.stderr.write(f"{printable(line)}\n")
        self.stderr.flush()
