"""The server process: API, controller and local executor together on one data directory.

It owns the directory, leaves its address and its token there, listens on a loopback address, and on SIGTERM or
Ctrl-C stops without touching the runs.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import threading
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn

import uvicorn

from holdfast.api.http.serving.app import Probes, create_app
from holdfast.api.http.serving.gates import Entrance
from holdfast.app import connections, log, running, upkeep, wiring
from holdfast.app.data.datadir import DataDir, ServerAddress
from holdfast.app.data.token import given_token, kept_token
from holdfast.app.embedded import start_embedded
from holdfast.app.entrance import accounts, unix_socket
from holdfast.app.loops.telling import sender
from holdfast.app.readiness import Readiness
from holdfast.app.settings import DEFAULT_PORT, read_settings
from holdfast.app.telemetry import Telemetry
from holdfast.app.time import SortableIds, SystemClock
from holdfast.domain.access import Via
from holdfast.domain.record import evolve
from holdfast.engines.process.client import require_compatible
from holdfast.engines.process.engine import CONTAINMENT_LABEL
from holdfast.engines.process.files import ProcessLogs
from holdfast.errors import Refused, Unavailable

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Sequence

    from fastapi import FastAPI

    from holdfast.app.settings import Settings
    from holdfast.ports.engine import NodeInfo

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_log = logging.getLogger(__name__)
_SHUTDOWN_S = 5
"""How long requests may take to end once the server is stopping."""


def serve(
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    settings: Settings | None = None,
    *,
    started: Callable[[str], None] | None = None,
) -> None:
    """Run a server until it is stopped.

    Args:
        host: Address to listen on; only loopback addresses, as there is no TLS yet.
        port: Port to listen on; 0 picks a free one.
        settings: Where its data are, and all else; by default the environment's.
        started: Called with the URL once requests are served.

    Raises:
        Refused, InvalidSetting: The address is not a loopback address, or the token or the socket cannot be trusted.
        DataDirLocked: Another process owns the data directory, or the file of its database.
        Conflict: The data directory is a copy of one that is in use, or its database is gone.
        Unavailable: Port or socket is taken, the directory cannot be written, or another machine leads the database.
        EngineError: Programs are held by another version, or the engine does not start.
        Internal: The database is damaged, or lacks what was written last.
    """
    settings = settings or read_settings()
    log.configure(settings.log_level)
    faulthandler.enable(all_threads=False)  # where the kernel ends it, as over a mapped file that cannot be written
    _require_loopback(host)
    directory = DataDir(settings.data)
    with _ended_by_sigterm(), ExitStack() as stack:
        ownership = running.own(settings, directory, "up")
        stack.callback(ownership.release)
        require_compatible(directory.runs)
        token = given_token(settings) or kept_token(directory)
        upkeep.refuse_damage(settings, directory)
        store = wiring.store(settings, directory)
        stack.callback(store.close)
        readiness = Readiness(Telemetry(SystemClock().now), ownership)
        app = create_app(
            store=store,
            clock=SystemClock(),
            ids=SortableIds(),
            logs=ProcessLogs(directory.runs),
            entrance=_entrance(settings, token),
            probes=_probes(readiness, settings, directory, lambda: server.should_exit),
        )
        config = _configured(app, host, port, connections.bounds(settings.connections, settings.request_timeout))
        log.quieten()
        server = connections.Server(config)
        sockets, url, publish = _sockets(stack, config, settings)
        embedded = start_embedded(stack, settings, directory, ownership, readiness.telemetry)
        readiness.started(embedded)
        warn_of_weak_containment(embedded.nodes())
        upkeep.forget_regularly(stack, settings, directory, store)
        directory.announce(ServerAddress(url, token, os.getpid()))
        stack.callback(directory.withdraw)
        publish()
        if started is not None:
            started(url)
        server.run(sockets=sockets)


def _entrance(settings: Settings, token: str) -> Entrance:
    peer = accounts.own_peers() if settings.run_as == "self" else accounts.every_peer
    return Entrance(evolve(accounts.account(), via=Via.TOKEN), token, peer)


def _probes(readiness: Readiness, settings: Settings, directory: DataDir, stopping: Callable[[], bool]) -> Probes:
    return Probes(
        readiness.telemetry.registry,
        readiness.ready,
        readiness.refusal,
        stopping,
        settings.streams,
        directory.reserve.give_up,
        readiness.written,
        sender=lambda: sender(settings, directory),
        secrets=wiring.secrets(settings, directory),
    )


def _configured(app: FastAPI, host: str, port: int, allowed: connections.Bounds) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        http=connections.protocol(allowed),
        backlog=allowed.at_once,
        timeout_graceful_shutdown=_SHUTDOWN_S,
    )


def warn_of_weak_containment(nodes: Sequence[NodeInfo]) -> None:
    """Say so where no control group can hold a run."""
    if any(node.labels.get(CONTAINMENT_LABEL) == "supervisor" for node in nodes):
        _log.warning(
            "no control groups can be created here: memory is watched, not limited, processes are not counted, and a"
            " program that kills its supervisor and the shim can leave processes behind"
        )


def _require_loopback(host: str) -> None:
    if host not in _LOOPBACK:
        msg = f"refusing to listen on {host}: without TLS only a loopback address is safe"
        raise Refused(
            msg, hint=f"one of {', '.join(sorted(_LOOPBACK))}; to serve other machines, put a TLS proxy in front of it"
        )


def _sockets(
    stack: ExitStack, config: uvicorn.Config, settings: Settings
) -> tuple[list[socket.socket], str, Callable[[], None]]:
    """Listen where callers come in; returns also the address, and what has a Unix socket be found once all is ready."""
    bound, host = _bind(config), config.host
    url = f"http://{f'[{host}]' if ':' in host else host}:{bound.getsockname()[1]}"
    if settings.socket is None:
        return [bound], url, lambda: None
    everybody = settings.run_as == "submitter"
    local = stack.enter_context(unix_socket.listening(settings.socket, everybody=everybody))
    return [bound, local.listener], url, local.publish


def _bind(config: uvicorn.Config) -> socket.socket:
    try:
        bound = config.bind_socket()
    except SystemExit as error:
        msg = f"port {config.port} on {config.host} is taken"
        raise Unavailable(msg, hint="choose another with --port, or 0 for any free one") from error
    bound.listen(config.backlog)  # from when the address can be found, whoever comes waits instead of being refused
    return bound


class _ToldToEnd(BaseException):
    """Passes every ``except Exception`` on its way out.

    By default SIGTERM ends a process on the spot, and leaves lease, address and write-ahead log as after a crash.
    """


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Leave the context in good order on SIGTERM; outside the main thread signals are somebody else's."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _end)
    try:
        with suppress(_ToldToEnd):
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _end(*_: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: a second one must not cut the first one short
    raise _ToldToEnd
