"""What a command gets besides its options: streams, time, settings and the connection, each made when first used.

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


@dataclass(slots=True)
class Cli:
    """The surroundings of one command; tests hand in their own."""

    stdin: TextIO = field(default_factory=lambda: sys.stdin)
    stdout: IO[str] = field(default_factory=lambda: sys.stdout)
    stderr: IO[str] = field(default_factory=lambda: sys.stderr)
    environ: Mapping[str, str] = field(
        default_factory=lambda: os.environ,  # noqa: TID251 - the caller's environment is an input of `run --env`
    )
    now: Callable[[], float] = time.monotonic
    """Seconds that never go back, for time limits."""
    clock: Callable[[], float] = time.time  # noqa: TID251 - what is told of ages is told by this machine's clock
    """Seconds since the epoch, UTC."""
    sleep: Callable[[float], None] = time.sleep
    cwd: Callable[[], str] = os.getcwd
    token_file: str | None = None
    """The file with the token that a server is shown; ``None``: what the settings say."""
    _remarked: set[str] = field(default_factory=set)

    def show(self, token_file: str | None) -> None:
        """Have the server shown the token in a file, if one is named."""
        self.token_file = token_file

    def connect(
        self, *, drive: bool = False, places: bool = True, attached: bool = False
    ) -> AbstractContextManager[Client]:
        """Reach the server that is running, or open the data directory in this process.

        Args:
            drive: Without a server, also run controller and executor here while the context is open.
            places: Whether these start jobs that wait.
            attached: Go on when the server is restarted meanwhile.
        """
        from holdfast.app.connect import connect

        remark = self._remark if self.stderr.isatty() else None
        waits = self.say if attached else None
        return connect(drive=drive, places=places, waits=waits, remark=remark, token_file=self.token_file)

    @staticmethod
    def is_unserved() -> bool:
        """Whether no server is named or runs here, which would do what is asked for."""
        from holdfast.app import reach, whereabouts

        return whereabouts.find(reach.read_reach()) is None

    @staticmethod
    def is_looked_after() -> bool:
        """Whether somebody runs the jobs that are shown."""
        from holdfast.app.connect import is_looked_after

        return is_looked_after()

    def note_unserved(self, what: str = "jobs start", wait: str = "holdfast wait JOB") -> None:
        """Tell the person when nobody is there to do what was just asked for."""
        if self.is_unserved():
            self.say(f"no server is running: {what} with `holdfast up`, or while `{wait}` waits for them")

    def serve(self, *, host: str | None, port: int | None, daemon: bool = False, **settings_given: object) -> None:
        """Run the server in this process until it is stopped, or in one of its own until it answers.

        Args:
            host: The address to listen on, if that is not left to the settings.
            port: The port to listen on, likewise.
            daemon: Whether to leave it running in the background.
            **settings_given: Settings that count more than the environment's.
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
                f", for {system}'s clients {'by gRPC ' * bool(how)}at {at}" for system, _, how, at in named
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
        """Tell the person something, however often there is a reason to."""
        if line not in self._remarked:
            self._remarked.add(line)
            self.say(line)

    def say(self, line: str) -> None:
        """Tell the person something that is not the command's result; control characters in it are written out."""
        self.stderr.write(f"{printable(line)}\n")
        self.stderr.flush()
