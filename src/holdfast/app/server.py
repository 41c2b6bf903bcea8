"""The server process: API, controller and local executor together on one data directory.

It owns the directory, publishes its address and token there, and stops on SIGTERM or Ctrl-C without touching the runs.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import threading
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import uvicorn

from holdfast.api.http.serving.app import Probes, create_app
from holdfast.api.http.serving.gates import Entrance
from holdfast.app import connections, log, running, upkeep, wiring
from holdfast.app.data.datadir import DataDir, ServerAddress
from holdfast.app.data.token import given_token, kept_token
from holdfast.app.embedded import Serving, start_embedded
from holdfast.app.entrance import accounts, issuer, network
from holdfast.app.entrance.doors import Opening, open_doors
from holdfast.app.entrance.listening import listening
from holdfast.app.entrance.pythons import Pythons
from holdfast.app.loops.forgetting import forget_regularly
from holdfast.app.loops.notifying import sender
from holdfast.app.settings import DEFAULT_PORT, read_settings
from holdfast.app.telemetry import Telemetry
from holdfast.app.time import SortableIds, SystemClock
from holdfast.domain.access import Via
from holdfast.domain.record import evolve
from holdfast.engines.process.client import require_compatible
from holdfast.engines.process.files import ProcessLogs
from holdfast.engines.process.places import CONTAINMENT_LABEL
from holdfast.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from fastapi import FastAPI

    from holdfast.app.data.ownership import Ownership
    from holdfast.app.embedded import Embedded
    from holdfast.app.entrance.listening import Listening
    from holdfast.app.entrance.network import Certificates
    from holdfast.app.settings import Settings
    from holdfast.domain.audit import Caller
    from holdfast.domain.file_settings import FileSettings
    from holdfast.ports.engine import NodeInfo

_log = logging.getLogger(__name__)
_SHUTDOWN_S = 5
"""How long requests may take to end once the server is stopping."""

Started: TypeAlias = "Callable[[str, Mapping[str, str]], None]"
_START_AGAIN = (
    "nothing sent here would be kept; stop this server (holdfast down), repair its data directory, and start it again"
)


def serve(
    host: str | None = None,
    port: int | None = None,
    settings: Settings | None = None,
    *,
    started: Started | None = None,
) -> None:
    """Run a server until it is stopped.

    Args:
        host: Address to listen on; by default that of the settings, else a loopback address.
        port: Port to listen on; 0 picks a free one.
        settings: Its settings; by default the environment's.
        started: Called with the URL and the addresses of the doors, by name, once requests are served.

    Raises:
        Refused, InvalidSetting: Listening there is not safe, or the token or the socket cannot be trusted.
        DataDirLocked: Another process owns the data directory, or the file of its database.
        Conflict: The data directory is a copy of one that is in use, or its database is gone.
        Unavailable: Port or socket is taken, the directory cannot be written, or another machine leads the database.
        EngineError: Programs are held by another version, or the engine does not start.
        Internal: The database is damaged, or older than what was written last.
    """
    settings = settings or read_settings()
    log.configure(settings.log_level)
    _report_fatal_signals()
    host, port = _address(host, port, settings)
    network.require_safe(host, settings)
    directory = DataDir(settings.data)
    with _ended_by_sigterm(), ExitStack() as stack:
        ownership = running.own(settings, directory, "up")
        stack.callback(ownership.release)
        require_compatible(directory.runs)
        token = given_token(settings) or kept_token(directory)
        upkeep.refuse_damage(settings, directory)
        store = wiring.store(settings, directory)
        stack.callback(store.close)
        network.require_token(host, settings, has_api_tokens=bool(store.catalogue().tokens))
        readiness = Readiness(Telemetry(SystemClock().now, settings.doors), ownership)
        entrance, logs = _entrance(host, settings, token), ProcessLogs(directory.runs)
        probes = _probes(readiness, settings, directory, lambda: server.should_exit)
        app = create_app(
            store=store, clock=SystemClock(), ids=SortableIds(), logs=logs, entrance=entrance, probes=probes
        )
        config = _configured(app, host, port, settings)
        log.quieten()
        shown = network.certificates(settings)
        places = listening(stack, config, settings, directory)
        server = connections.Server(config, _guarded(host, settings), shown, places.for_jobs)
        embedded = start_embedded(stack, settings, directory, ownership, Serving(readiness.telemetry, places.jobs_url))
        readiness.started(embedded)
        _reread_by_sighup(embedded)
        warn_of_weak_containment(embedded.nodes())
        forget_regularly(stack, settings, directory, store)
        doors = open_doors(_opening(stack, settings, app, probes, shown, places))
        places.publish()
        _announce(stack, directory, ServerAddress(places.own_url, token, os.getpid(), doors))
        if started is not None:
            started(places.url, doors)
        server.run(sockets=places.sockets)


def _report_fatal_signals() -> None:
    """Print a traceback if the kernel kills the process, as over a mapped file that cannot be written."""
    faulthandler.enable(all_threads=False)
    # With backtraces, a Rust library that gets no memory deadlocks, and the process with it.
    os.unsetenv("RUST_BACKTRACE")


def _address(host: str | None, port: int | None, settings: Settings) -> tuple[str, int]:
    if host is None and port is None and settings.listen is not None:
        return settings.listen
    return "127.0.0.1" if host is None else host, DEFAULT_PORT if port is None else port


def _opening(
    stack: ExitStack, settings: Settings, app: FastAPI, probes: Probes, shown: Certificates | None, places: Listening
) -> Opening:
    most, urls = connections.of_door(settings.connections), (places.url, places.jobs_url)
    return Opening(stack, settings, app.state.entrance, app.state.backend, probes, shown, *urls, most)


def _announce(stack: ExitStack, directory: DataDir, address: ServerAddress) -> None:
    directory.announce(address)
    stack.callback(directory.withdraw)


def _entrance(host: str, settings: Settings, token: str) -> Entrance:
    """Describe who is let in, and begin to read an issuer's keys."""
    network.warn_of_one_account(host, settings)
    peer = accounts.own_peers() if settings.run_as == "self" else accounts.every_peer
    owner = evolve(accounts.account(), via=Via.TOKEN)
    return Entrance(
        owner,
        token,
        peer,
        partial(accounts.named, table=settings.accounts),
        settings.run_as == "submitter",
        network.names(host, settings),
        accounts.is_group,
        issuer.issued(settings, SystemClock()),
    )


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
        blobs=wiring.blobs(settings, directory),
        calls=Pythons(settings),
        reload=readiness.reload,
    )


def _guarded(host: str, settings: Settings) -> type[connections.GuardedProtocol]:
    allowed = connections.bounds(settings.connections, settings.request_timeout, doors=len(settings.doors))
    whole = settings.proxy if network.is_beyond(host) else (*settings.proxy, *connections.LOOPBACK)
    is_plain = network.is_beyond(host) and settings.tls_cert is None
    return connections.protocol(allowed, settings.proxy if is_plain else None, whole)


def _configured(app: FastAPI, host: str, port: int, settings: Settings) -> uvicorn.Config:
    allowed = connections.bounds(settings.connections, settings.request_timeout, doors=len(settings.doors))
    # Only a named proxy's word on its client counts; on a loopback address any local program may be a proxy.
    proxies = [
        str(proxy_network.network_address) if proxy_network.num_addresses == 1 else str(proxy_network)
        for proxy_network in settings.proxy
    ]
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        http="h11",
        loop="asyncio",  # it accepts connections as ``Listener`` says; another loop would not
        forwarded_allow_ips=proxies or ([] if network.is_beyond(host) else None),
        backlog=allowed.at_once,
        timeout_graceful_shutdown=_SHUTDOWN_S,
    )


def warn_of_weak_containment(nodes: Sequence[NodeInfo]) -> None:
    """Warn if no control group can contain runs."""
    if any(node.labels.get(CONTAINMENT_LABEL) == "supervisor" for node in nodes):
        _log.warning(
            "no control groups can be created here: memory is watched, not limited, processes are not counted, and a"
            " program that kills its supervisor and the shim can leave processes behind"
        )


def _reread_by_sighup(embedded: Embedded) -> None:
    """Read the configuration file again on SIGHUP; without one, the signal keeps its effect."""
    if embedded.configuring is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGHUP, lambda *_: embedded.reconfigure())


class _Terminated(BaseException):
    """SIGTERM was received; passes every ``except Exception`` on its way out.

    By default the signal ends a process on the spot, which leaves lease, address and write-ahead log as after a crash.
    """


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Leave the context in good order on SIGTERM; outside the main thread signals are not ours to handle."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _end)
    try:
        with suppress(_Terminated):
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _end(*_: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not interrupt the clean-up after the first
    raise _Terminated


class Readiness:
    """Whether a server can work, by its parts, which start one after another; the nearest cause comes first."""

    def __init__(self, telemetry: Telemetry, ownership: Ownership) -> None:
        self.telemetry = telemetry
        self._ownership = ownership
        self._embedded: Embedded | None = None

    def started(self, embedded: Embedded) -> None:
        """Include the loops from now on."""
        self._embedded = embedded

    def ready(self) -> str | None:
        """Return what keeps the server from working, or ``None``."""
        loops = self._embedded.trouble() if self._embedded is not None else None
        return self._ownership.trouble() or loops or self.telemetry.ready()

    def written(self) -> None:
        """Wake the loops, as there may be a new request."""
        if self._embedded is not None:
            self._embedded.wake()

    def reload(self, caller: Caller) -> tuple[FileSettings, bool] | None:
        """Read the configuration file now; ``None`` if there is none. See ``Configuring.reload``."""
        return None if self._embedded is None else self._embedded.reload(caller)

    def refusal(self) -> Unavailable | None:
        """Return why the server accepts no writes, or ``None``: they would be lost, or are another's to store."""
        trouble = self._ownership.trouble()
        if trouble is not None:
            return Unavailable(trouble, hint=_START_AGAIN)
        return self._embedded.refusal() if self._embedded is not None else None
