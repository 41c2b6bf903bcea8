"""Opens the doors for other systems' clients: each speaks their protocol, and calls the same operations."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from holdfast.api.http.serving.gates import HostGate, WrongTokens
from holdfast.app.entrance import network
from holdfast.app.entrance.accounts import other_people
from holdfast.app.entrance.visitors import Visitors
from holdfast.domain.access import Principal, Via
from holdfast.domain.record import Struct, evolve
from holdfast.errors import InvalidSetting, Problem, Unavailable
from holdfast.service.listeners import Listeners

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import ExitStack

    from starlette.types import ASGIApp

    from holdfast.api.connect.serving import Setup
    from holdfast.api.http.serving.app import Probes
    from holdfast.api.http.serving.gates import Entrance
    from holdfast.app.entrance.network import Certificates
    from holdfast.app.settings import Settings
    from holdfast.service.operations.backend import Backend

ARMADA, BACKENDAI, FLUSTER = "armada", "backendai", "fluster"
DOORS = (ARMADA, BACKENDAI, FLUSTER)
FLUSTER_BY_GRPC = "fluster-grpc"
"""The name of the second address of Fluster's door."""
ROOT = "root"
LOCAL = "localhost"
HIGHEST_PORT = 65_535
_WORKERS = 8
"""Threads that answer the calls of a door."""
_LISTEN = "HOLDFAST_ARMADA_LISTEN"
_LISTEN_FLUSTER = "HOLDFAST_FLUSTER_LISTEN"
_log = logging.getLogger(__name__)


class Opening(Struct, frozen=True):
    """What doors are opened with."""

    stack: ExitStack
    """Closes them."""
    settings: Settings
    entrance: Entrance
    backend: Backend
    probes: Probes
    shown: Certificates | None
    """The certificate for doors that other machines reach."""
    url: str
    """The address of the REST API and of the doors on its port."""
    jobs_url: str
    """The same for programs of jobs."""
    most: int
    """How many connections a door with a port of its own can have."""

    def mount(self, prefix: str, app: ASGIApp) -> None:
        """Let a door answer the paths with a prefix on the port of the REST API."""
        self.probes.doors[prefix] = self._guarded(app)
        self.stack.callback(self.probes.doors.pop, prefix)

    def mount_page(self, path: str, app: ASGIApp) -> None:
        """Let a door answer a single path there, but not to browsers."""
        self.probes.pages[path] = self._guarded(app)
        self.stack.callback(self.probes.pages.pop, path)

    def _guarded(self, app: ASGIApp) -> ASGIApp:
        # If no token is needed, a page in a browser of this machine must not pass as its user.
        return HostGate(app, hosts=self.entrance.hosts or frozenset({LOCAL}))


def open_doors(opening: Opening) -> Mapping[str, str]:
    """Open the doors that the settings name, and return their addresses.

    Raises:
        InvalidSetting: There is no such door, or it is not safe to open it there.
        Refused: Others would have no token but the owner's.
        Unavailable: A port is taken, or a library is not installed.
    """
    names = opening.settings.doors
    unknown = [Problem("HOLDFAST_DOORS", f"there is no door {name!r}", DOORS) for name in names if name not in DOORS]
    if unknown:
        raise InvalidSetting(problems=unknown)
    openers = {ARMADA: _open_armada, BACKENDAI: _open_backendai, FLUSTER: _open_fluster}
    visitors = Visitors(
        opening.entrance,
        opening.backend,
        WrongTokens(opening.backend.clock.now),
        _anonymous(opening.settings, opening.entrance),
    )
    if not names:
        return {}
    loop = opening.stack.enter_context(_loop_of_grpc())
    return {place: address for name in names for place, address in openers[name](opening, visitors, loop).items()}


@contextmanager
def _loop_of_grpc() -> Iterator[asyncio.AbstractEventLoop]:
    """Run an event loop in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="grpc", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def _open_fluster(opening: Opening, visitors: Visitors, loop: asyncio.AbstractEventLoop) -> Mapping[str, str]:
    place = place_of_fluster(opening.settings)
    try:
        from holdfast.api.fluster.serving import LARGEST_MESSAGE, PREFIX, FlusterDoor, FlusterSettings, GrpcSettings
    except ImportError as error:
        raise _lacking(FLUSTER) from error
    settings = FlusterSettings(urlsplit(opening.url).netloc, opening.settings.fluster_replay)
    door = FlusterDoor(_setup(FLUSTER, opening, visitors), settings)
    opening.stack.callback(door.close)
    most, request_s = opening.most, opening.settings.request_timeout
    by_grpc = door.open(visitors.caller, GrpcSettings(loop, place, _LISTEN_FLUSTER, most, request_s, LARGEST_MESSAGE))
    opening.mount(PREFIX, door.connect)
    _open_iris(opening, visitors)
    return {FLUSTER: opening.url, FLUSTER_BY_GRPC: by_grpc}


def _open_iris(opening: Opening, visitors: Visitors) -> None:
    """Open the door for clients of Fluster's successor beside it."""
    from holdfast.api.iris.serving import IrisDoor, IrisSettings, TaskServer

    settings = opening.settings
    python = str(settings.fluster_python or sys.executable)
    tasks = TaskServer(opening.jobs_url, python, settings.fluster_prepare_timeout)
    place = IrisSettings(tasks, settings.fluster_replay)
    door = IrisDoor(_setup("iris", opening, visitors), place)
    opening.stack.callback(door.close)
    for prefix, app in door.mounts.items():
        opening.mount(prefix, app)


def _setup(name: str, opening: Opening, visitors: Visitors) -> Setup:
    from holdfast.api.connect.serving import Setup

    probes, threads = opening.probes, ThreadPoolExecutor(_WORKERS, thread_name_prefix=name)
    return Setup(opening.backend, visitors.by_http, threads, probes.budget, probes.refusal, probes.written)


def _lacking(name: str) -> Unavailable:
    msg = f"the door {name!r} needs a library that is not installed"
    return Unavailable(msg, hint=f"pip install 'holdfast-scheduler[{name}]'")


def _open_backendai(opening: Opening, visitors: Visitors, _: asyncio.AbstractEventLoop) -> Mapping[str, str]:
    from holdfast.api.backendai.serving import BackendAiDoor, DoorSetup
    from holdfast.app.entrance.keypairs import SignedVisitors, administrator, secrets_of_keypairs, write_environment

    settings, owner = opening.settings, administrator(opening.settings, visitors)
    keypairs = secrets_of_keypairs(settings)
    access_key = keypairs.access_key(owner)
    write_environment(settings, opening.url, access_key, keypairs.secret(access_key, owner))
    signed = SignedVisitors(visitors, keypairs, owner)
    probes, threads = opening.probes, ThreadPoolExecutor(_WORKERS, thread_name_prefix=BACKENDAI)
    door = BackendAiDoor(
        DoorSetup(
            opening.backend,
            signed.by_http,
            threads,
            probes.budget,
            probes.refusal,
            probes.written,
            keypairs.access_key,
            keypairs.secret,
        )
    )
    opening.stack.callback(door.close)
    for prefix, app in door.mounts.items():
        opening.mount(prefix, app)
    for path, app in door.pages.items():
        opening.mount_page(path, app)
    return {BACKENDAI: opening.url}


def _open_armada(opening: Opening, visitors: Visitors, loop: asyncio.AbstractEventLoop) -> Mapping[str, str]:
    settings, shown = opening.settings, opening.shown
    host, port = place_of(settings)
    secure = shown if is_beyond(host) else None
    if secure is not None:
        network.require_token(host, settings, has_api_tokens=bool(visitors.backend.store.catalogue().tokens))
    try:
        from holdfast.api.armada.serving import LARGEST_MESSAGE, PREFIX, ArmadaDoor, GrpcSettings
    except ImportError as error:
        raise _lacking(ARMADA) from error
    newest, stopping = opening.backend.store.last_event_seq, opening.probes.stopping
    listeners = Listeners(newest, settings.door_watches, stopping, settings.door_watches_each)
    door = ArmadaDoor(evolve(_setup(ARMADA, opening, visitors), listeners=listeners))
    opening.stack.callback(door.close)
    certificate = None if secure is None else lambda: secure.pair
    by_grpc = GrpcSettings(
        loop, (host, port), _LISTEN, opening.most, settings.request_timeout, LARGEST_MESSAGE, certificate
    )
    address = door.open(visitors.caller, by_grpc)
    opening.mount(PREFIX, door.gateway)
    return {ARMADA: address}


def _anonymous(settings: Settings, entrance: Entrance) -> Principal | None:
    """Return the caller without a token, if the settings name one.

    Raises:
        InvalidSetting: That would be root.
    """
    name = settings.door_anonymous
    if name is None:
        return None
    if name == ROOT:
        problem = Problem("HOLDFAST_DOOR_ANONYMOUS", "cannot be root", hint="name a user, and give it a role in access")
        raise InvalidSetting(problems=[problem])
    if people := other_people():
        _log.warning(
            "HOLDFAST_DOOR_ANONYMOUS: every account of this machine counts as %s at the doors, such as %s",
            name,
            people[0],
        )
    if name == entrance.owner.name:
        return evolve(entrance.owner, via=Via.DOOR)
    return Principal(name, via=Via.DOOR)


def place_of(settings: Settings) -> tuple[str, int]:
    """Read ``HOST:PORT`` for Armada's door; other machines need TLS.

    Raises:
        InvalidSetting: It is not an address and a port, or other machines would reach it without TLS or a token.
    """
    written = settings.armada_listen
    host, number = _read_place(written, _LISTEN)
    beyond, problems = is_beyond(host), list[Problem]()
    if beyond and settings.tls_cert is None:
        hint = "give HOLDFAST_TLS_CERT and HOLDFAST_TLS_KEY, or listen on a loopback address"
        problems.append(Problem(_LISTEN, f"{written!r} can be reached by other machines, which takes TLS", hint=hint))
    if beyond and settings.door_anonymous is not None:
        message = f"cannot be used with {written!r}: everybody who reaches it would count as the same user"
        problems.append(Problem("HOLDFAST_DOOR_ANONYMOUS", message, hint="have clients send tokens"))
    if problems:
        raise InvalidSetting(problems=problems)
    return host, number


def place_of_fluster(settings: Settings) -> tuple[str, int]:
    """Read ``HOST:PORT`` for Fluster's door, which only this machine may reach.

    Raises:
        InvalidSetting: It is not an address and a port, or other machines would reach it.
    """
    written, name = settings.fluster_listen, _LISTEN_FLUSTER
    host, number = _read_place(written, name)
    if is_beyond(host):
        hint = "listen on a loopback address; other machines use Connect at the address of the server"
        problem = Problem(name, f"{written!r} can be reached by other machines", hint=hint)
        raise InvalidSetting(problems=[problem])
    return host, number


def _read_place(written: str, name: str) -> tuple[str, int]:
    host, _, port = written.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        is_beyond(host)
        number = int(port)
    except ValueError:
        number = -1
    if not 0 <= number <= HIGHEST_PORT:
        problem = Problem(name, f"{written!r} is not an address and a port", hint="such as 127.0.0.1:50051")
        raise InvalidSetting(problems=[problem])
    return host, number


def is_beyond(host: str) -> bool:
    """Whether other machines can reach a door that listens on a host.

    Raises:
        ValueError: It is not an address.
    """
    return host != LOCAL and not ipaddress.ip_address(host).is_loopback
