"""Runs a server in the background, detached from its terminal and with its log in a file, and stops one."""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from holdfast.app.data.datadir import DataDir
from holdfast.app.settings import read_settings
from holdfast.errors import HoldfastError, Internal, Problem, Refused, Unavailable, all_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.app.data.datadir import ServerAddress
    from holdfast.app.server import Started

_LONGEST_LOG = 10 << 20
"""Bytes of a log from which on the next server moves it aside, over the one moved before."""
_UNIT = "holdfast"
_MILLISECONDS = 1000


def log_of(directory: Path) -> Path:
    """Return where a server in the background writes its log."""
    return directory / "server.log"


class Detached(NamedTuple):
    """A server in the background that answers."""

    url: str
    doors: Mapping[str, str]
    """The addresses of its doors, by their names."""
    warnings: Sequence[str]
    """What it logged while it started."""


def detach(log: Path, serve: Callable[[Started], None]) -> Detached:
    """Run a server as a process of its own, and return its addresses once it answers.

    Args:
        log: Where its output goes; appended to.
        serve: Serves until it is stopped; gets a function to call once the server answers.

    Raises:
        HoldfastError: Why it did not start.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _become_a_daemon(log, writer, serve)
    os.close(writer)
    with os.fdopen(reader) as answers:
        answer = answers.read()
    os.waitpid(child, 0)
    return _read(answer, log)


def _become_a_daemon(log: Path, writer: int, serve: Callable[[Started], None]) -> NoReturn:
    """Leave the terminal and the session, and never return to the caller's code."""
    code = 1
    try:
        os.setsid()
        if os.fork():
            # A process that does not lead its session never gets a terminal again.
            os._exit(0)
        _redirect(log)
        warnings = _Warnings()
        logging.getLogger().addHandler(warnings)

        def started(url: str, doors: Mapping[str, str]) -> None:
            logging.getLogger().removeHandler(warnings)
            _tell(writer, {"url": url, "doors": dict(doors), "warnings": warnings.lines})

        serve(started)
        code = 0
    except HoldfastError as error:
        problems = [
            [problem.path, problem.message, problem.allowed, problem.hint, problem.line] for problem in error.problems
        ]
        refusal = {"code": error.code, "message": error.message, "hint": error.hint, "problems": problems}
        _tell(writer, refusal)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the person who waits must be told
        _tell(writer, {"message": f"{type(error).__name__}: {error}"})
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(code)


class _Warnings(logging.Handler):
    """Keeps what is logged as a warning or worse."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def _redirect(log: Path) -> None:
    with suppress(OSError):
        if log.stat().st_size > _LONGEST_LOG:
            log.replace(log.with_name(f"{log.name}.1"))
    nothing = os.open(os.devnull, os.O_RDONLY)
    written = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    sys.stdout.flush()
    sys.stderr.flush()
    for source, target in ((nothing, 0), (written, 1), (written, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(written)


def _tell(writer: int, what: dict[str, Any]) -> None:
    with suppress(OSError):  # an earlier message closed it
        os.write(writer, json.dumps(what).encode())
        os.close(writer)


def _read(answer: str, log: Path) -> Detached:
    """Read the addresses that a new server reported.

    Raises:
        HoldfastError: The error that it reported instead.
    """
    reply: dict[str, Any] = json.loads(answer) if answer else {"message": "the server ended before it answered"}
    if "url" in reply:
        return Detached(reply["url"], reply["doors"], reply["warnings"])
    kind = next((error_kind for error_kind in all_errors() if error_kind.code == reply.get("code")), None)
    if kind is None:
        raise Internal(reply["message"], hint=f"see {log}")
    problems = [
        Problem(path, message, tuple(allowed), hint, line) for path, message, allowed, hint, line in reply["problems"]
    ]
    raise kind(reply["message"], problems=problems, hint=reply["hint"])


def stop(timeout_s: float) -> tuple[ServerAddress, int] | None:
    """Stop the server of the data directory and wait until it is gone.

    Returns:
        Its address, and how many jobs go on without it; ``None`` if none was running.

    Raises:
        Refused: It is another machine's, another user's, or a service manager's, which would start it again.
        Unavailable: It did not end in time.
    """
    settings = read_settings()
    for name, value in (("HOLDFAST_URL", settings.url), ("HOLDFAST_SOCKET", settings.socket)):
        if value:
            message = f"{name} names {value}: only the server of a data directory can be stopped"
            raise Refused(message, hint=f"unset {name}, and set HOLDFAST_DATA to its directory")
    server = DataDir(settings.data).server()
    if server is None:
        return None
    _require_unmanaged(server.pid)
    running = _running_jobs(server)
    with suppress(ProcessLookupError), closing(_Ending(server.pid)) as ending:
        _signal(server.pid)
        if not ending.wait(timeout_s):
            message = f"the server, process {server.pid}, did not end within {timeout_s:g} s"
            raise Unavailable(message, hint=f"wait longer with --timeout, or end it: kill -9 {server.pid}")
    return server, running


def _require_unmanaged(pid: int) -> None:
    with suppress(OSError):
        groups = Path(f"/proc/{pid}/cgroup").read_text().split()
        unit = next(
            (unit_name for group in groups if (unit_name := group.rpartition("/")[2]) == f"{_UNIT}.service"), None
        )
        if unit is not None:
            user = " --user" if any("/user@" in group for group in groups) else ""
            message = f"systemd keeps this server running as {unit}, and would start it again"
            raise Refused(message, hint=f"systemctl{user} stop {_UNIT}")


def _running_jobs(server: ServerAddress) -> int:
    from holdfast.client import Client

    with suppress(HoldfastError), Client(server.url, server.token) as client:
        return sum(1 for _ in client.jobs(states=["Running"]))
    return 0


def _signal(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGTERM)
    except PermissionError as error:
        message = f"the server, process {pid}, is another user's"
        raise Refused(message, hint="stop it as that user") from error


class _Ending:
    """Waits for the end of a process that is not a child of this one."""

    def __init__(self, pid: int) -> None:
        """Watch the process that has this number now; raises ProcessLookupError."""
        self._fd = os.pidfd_open(pid)

    def wait(self, timeout_s: float) -> bool:
        """Return whether it ended in time."""
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return bool(poll.poll(timeout_s * _MILLISECONDS))

    def close(self) -> None:
        """Stop watching."""
        os.close(self._fd)
