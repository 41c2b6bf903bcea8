"""The engine of local processes: an executor's view of one shim.

An order is kept until its program runs, a stop until the program has ended, and everything else until the shim
acknowledges it; all of it is sent again over a new connection. So a shim that died or was replaced misses nothing, and
nothing that was forgotten is ordered again. An acknowledged order may not have reached a run's supervisor before the
shim died.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from holdfast.domain.containers import LOCAL
from holdfast.domain.failure import EndedBy
from holdfast.domain.record import evolve
from holdfast.engines.process import files
from holdfast.engines.process.client import ShimConnection, connect, signal_shim
from holdfast.engines.process.files import observation
from holdfast.engines.process.places import default_nodes, labelled
from holdfast.engines.process.shim.processes import name_if_foreign
from holdfast.errors import EngineError
from holdfast.ports.engine import Observation, RunPhase

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from holdfast.domain.containers import EngineInfo
    from holdfast.domain.devices import Device
    from holdfast.domain.placement.pressure import Pressure
    from holdfast.ports.engine import NodeInfo, RunOrder, StopReason
    from holdfast.ports.secrets import SecretUser

DEFAULT_LOG_LIMIT = 256 << 20
"""Bytes of disk that the log of one run may take; the newest half is always kept."""
DEFAULT_SHIM_IDLE_S = 3.0
_RECONNECT_S = 0.5
_PING_EVERY_S = 0.5
"""Seconds of silence after which a shim is asked whether it is alive."""
_SILENT_S = 0.5
"""Seconds it may take to answer that before the engine reports trouble."""
_RESUME_AFTER_S, _REPLACE_AFTER_S = 2.0, 10.0
"""Seconds after which a silent shim is resumed, in case it was suspended, and then replaced; its programs continue."""
_ORDERS_PER_MESSAGE = 32
"""Launches per message, so that the shim starts the first while the next are being prepared."""
_OF_LIBRARIES = ("LD_LIBRARY_PATH",)
"""Variables that the shim's own processes get, too: they may lead to a GPU's driver."""
_log = logging.getLogger(__name__)


class ProcessEngine:
    """Runs local processes in a directory, through a shim that outlives this object and its process."""

    _connection: ShimConnection
    _trouble: str | None = None
    _asked_at: float | None = None
    """When the shim was asked whether it is alive, unless it has answered since."""
    _pressure: Pressure | None = None
    _evicted: Sequence[str] = ()

    def __init__(  # noqa: PLR0913 - settings, by name
        self,
        directory: Path,
        *,
        nodes: Sequence[NodeInfo] | None = None,
        log_limit: int = DEFAULT_LOG_LIMIT,
        pids_limit: int = 0,
        launch_limit_s: float = 60.0,
        lease_s: float | None = None,
        held_port: int = 0,
        memory_limits: str = "auto",
        shim_idle_s: float = DEFAULT_SHIM_IDLE_S,
        environ: Mapping[str, str] | None = None,
        secret: Callable[[str, SecretUser], str | None] = lambda *_: None,
        accounts: Mapping[str, str] | None = None,
        blob: Callable[[str, SecretUser], Path] | None = None,
        identity: Callable[[str], Mapping[str, str]] = lambda _: {},
    ) -> None:
        """Open the directory and connect to its shim, starting one if there is none.

        Args:
            directory: Holds the runs' files, the shim's socket and its journal; made private.
            nodes: The places to report; by default this machine.
            log_limit: Bytes of disk that one run's log may take; 0 for no limit.
            pids_limit: Processes and threads that one run may have, where cgroups can count them; 0 for no limit.
            launch_limit_s: Seconds that starting a program may take; its directory may be on a hanging file system.
            lease_s: Seconds without a server after which programs end: another machine may run their jobs by then.
            held_port: A loopback port to keep from other accounts while there is no server; 0 for none.
            memory_limits: ``auto`` uses cgroups where they are writable, ``rss`` always watches.
            shim_idle_s: Seconds that a shim without runs and clients stays.
            environ: The environment that programs inherit from; by default this process's.
            secret: Returns the value of a secret by its name, if its job may have it.
            identity: Returns the variables of a run that has a token of its own, by its uid.
            blob: Returns the path of a blob by its name; ``None`` if no blobs are kept.
            accounts: If programs run as their submitters, the accounts of those with another name; otherwise ``None``.

        Raises:
            EngineError: The directory or the shim is not available.
        """
        self._directory = directory.absolute()
        inherited = os.environ if environ is None else environ  # noqa: TID251 - handed to programs, never read
        self._environment = files.base_environment(inherited, personal=accounts is None)
        self._own_environment = self._environment | {n: inherited[n] for n in _OF_LIBRARIES if n in inherited}
        self._settings = {"environment": self._environment, "log_limit": log_limit, "pids_limit": pids_limit}
        self._settings |= {"launch_limit_s": launch_limit_s, "lease_s": lease_s, "held_port": held_port}
        self._limits, self._idle_s, self._accounts = memory_limits, shim_idle_s, accounts
        self._secret, self._blob, self._identity, self._lock = secret, blob, identity, threading.Lock()
        self._observed: dict[str, Observation] = {}
        self._snapshot: Mapping[str, Observation] | None = None
        self._unacknowledged, self._orders = dict[int, dict[str, Any]](), dict[str, dict[str, Any]]()
        self._stops: dict[str, tuple[str, float, str]] = {}
        """Launch messages of runs not known to run yet, and the last stop of each unfinished run, by uid."""
        self._sequence, self._wakes, self._also_closed = 0, list[Callable[[], None]](), list[Callable[[], None]]()
        self._closed, self._heard_at = threading.Event(), time.monotonic()
        self._open_directory()
        hello = self._connect()
        self._nodes = labelled(default_nodes() if nodes is None else nodes, hello)
        self._devices = {node.name: node.devices for node in self._nodes}
        self._reader = threading.Thread(target=self._read, name="holdfast-process-engine", daemon=True)
        self._reader.start()

    # the port

    def info(self) -> EngineInfo:
        """Say that it runs one program per run, on this machine."""
        return LOCAL

    def nodes(self) -> Sequence[NodeInfo]:
        """List the places with their whole capacity."""
        return self._nodes

    def see_devices(self, devices: Mapping[str, Device]) -> None:
        """Take in the state of GPUs, by id; from any thread."""
        self._nodes = tuple(
            evolve(node, devices=tuple(devices.get(device.id, device) for device in node.devices))
            for node in self._nodes
        )
        self._wake()

    def pressure(self) -> Pressure | None:
        """Return this machine's pressure, if it is watched."""
        return self._pressure

    def see_pressure(self, pressure: Pressure | None) -> None:
        """Take in this machine's pressure; from any thread."""
        self._pressure = pressure
        self._wake()

    def take_evicted(self) -> Sequence[str]:
        """Return the runs that were evicted and forgotten since the last call; from any thread."""
        evicted, self._evicted = self._evicted, ()
        return evicted

    def clear(self, directories: Sequence[str]) -> None:
        """Have the work directories of ended runs deleted, by the runs' directories; from any thread."""
        with self._lock:
            self._send({"clear": list(directories)})

    def foreign(self, pid: int) -> str:
        """Name the program of a process that none of its runs started; from any thread."""
        return name_if_foreign(pid, str(self._directory), self._connection.peer())

    def prepare(self, orders: Sequence[RunOrder]) -> None:
        """Do nothing: there is nothing to prepare."""

    def start(self, orders: Sequence[RunOrder]) -> None:
        """Begin to start runs; known uids are ignored."""
        for first in range(0, len(orders), _ORDERS_PER_MESSAGE):
            with self._lock:
                self._order(orders[first : first + _ORDERS_PER_MESSAGE])

    def _order(self, orders: Sequence[RunOrder]) -> None:
        messages = []
        for order in orders:
            if order.uid not in self._observed:
                message = self._orders[order.uid] = files.launch_message(
                    self._directory, order, self._devices.get(order.node, ()), self._secret, self._accounts, self._blob
                )
                message["env"] |= self._identity(order.uid) if order.identity else {}
                self._observed[order.uid] = Observation(order.uid, RunPhase.STARTING)
                messages.append(message)
        if messages:
            self._snapshot = None
            self._send({"orders": messages})

    def stop(self, stops: Sequence[tuple[str, float, StopReason]]) -> None:
        """Stop runs: SIGTERM, then SIGKILL after the grace; unknown and finished ones are ignored."""
        with self._lock:
            ordered = []
            for uid, grace_s, reason in stops:
                seen = self._observed.get(uid)
                if seen is not None and seen.phase is not RunPhase.FINISHED:
                    ordered.append((uid, grace_s, reason.value))
                    self._stops[uid] = ordered[-1]
            if ordered:
                self._send({"stops": ordered})

    def observe(self) -> Mapping[str, Observation]:
        """Return every run that was not forgotten yet."""
        with self._lock:
            if self._snapshot is None:
                self._snapshot = MappingProxyType(dict(self._observed))
            return self._snapshot

    def forget(self, uids: Sequence[str]) -> None:
        """Drop finished runs; unknown or unfinished ones are ignored."""
        with self._lock:
            self._evicted = (*self._evicted, *(uid for uid in uids if _is_evicted(self._observed.get(uid))))
            gone = []
            for uid in uids:
                seen = self._observed.get(uid)
                if seen is not None and seen.phase is RunPhase.FINISHED:
                    del self._observed[uid]
                    self._orders.pop(uid, None)
                    gone.append(uid)
            if gone:
                self._snapshot = None
                self._send({"forget": gone})

    def on_change(self, wake: Callable[[], None]) -> None:
        """Register a hint to call from the reader's thread."""
        with self._lock:
            self._wakes.append(wake)

    def trouble(self) -> str | None:
        """Say whether the shim is unreachable or does not answer."""
        return self._trouble

    def close(self) -> None:
        """Detach without touching the runs."""
        self._closed.set()
        for close in self._also_closed:
            close()
        self._connection.shut()
        if threading.current_thread() is not self._reader:
            self._reader.join()

    def close_with(self, close: Callable[[], None]) -> None:
        """Have something closed together with this engine."""
        self._also_closed.append(close)

    # the shim

    def _send(self, body: dict[str, Any]) -> None:
        """Send with the lock held, so that messages stay in order; the reader repairs a broken connection."""
        self._sequence += 1
        message = {"seq": self._sequence, **body}
        # Orders are in `_orders`: a shim that has forgotten the run would start it again. Stops are in `_stops`.
        if "orders" not in body and "stops" not in body:
            self._unacknowledged[self._sequence] = message
        try:
            self._connection.send(message)
        except OSError:
            _log.warning(
                "the connection to the shim of %s was lost; unacknowledged messages are sent again", self._directory
            )

    def _open_directory(self) -> None:
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            jobs = self._directory / "jobs"
            jobs.mkdir(mode=0o700, exist_ok=True)
            for folder in (self._directory, jobs):
                folder.chmod(0o700 if self._accounts is None else 0o711)  # Each run's own directory is private then.
        except OSError as error:
            msg = f"cannot use {self._directory} for runs: {error.strerror}"
            raise EngineError(msg) from error

    def _connect(self) -> dict[str, Any]:
        """Connect, take over the shim's runs, and send what it has not acknowledged; returns its greeting."""
        connection, first = connect(
            self._directory,
            environment=self._own_environment,
            limits=self._limits,
            idle_s=self._idle_s,
        )
        with self._lock:
            self._connection = connection
            self._heard_at, self._asked_at = time.monotonic(), None
            self._replace(first["runs"])
            try:
                connection.send({"seq": 0, "settings": self._settings})
                # A shim that died may not have passed them on; a supervisor that has them ignores them.
                if self._orders:
                    connection.send({"seq": 0, "orders": list(self._orders.values())})
                if self._stops:
                    connection.send({"seq": 0, "stops": list(self._stops.values())})
                for message in self._unacknowledged.values():
                    connection.send(message)
            except OSError:
                _log.warning("the connection to the shim of %s was lost again", self._directory)
        greeting: dict[str, Any] = first["hello"]
        return greeting

    def _replace(self, reports: Sequence[Mapping[str, Any]]) -> None:
        """Accept a full report as the truth, apart from messages still on their way to the shim."""
        on_the_way = self._unacknowledged.values()
        forgotten = {uid for message in on_the_way for uid in message.get("forget", ())}
        before = self._observed
        self._observed = {}
        for report in reports:
            if report["uid"] not in forgotten:
                self._see(report, before)
        for uid in self._orders:
            if uid not in forgotten:
                self._observed.setdefault(uid, before.get(uid) or Observation(uid, RunPhase.STARTING))
        self._stops = {uid: stop for uid, stop in self._stops.items() if uid in self._observed}
        self._snapshot = None

    def _see(self, report: Mapping[str, Any], before: Mapping[str, Observation]) -> None:
        seen, earlier = observation(report), before.get(report["uid"])
        if seen.phase is not RunPhase.STARTING:
            self._orders.pop(seen.uid, None)
        if seen.phase is RunPhase.FINISHED:
            self._stops.pop(seen.uid, None)
        self._observed[seen.uid] = earlier if earlier == seen else seen

    def _read(self) -> None:
        while not self._closed.is_set():
            for message in self._connection.receive():
                if message is None:
                    self._listen_for_life()
                    continue
                self._heard_at, self._asked_at, self._trouble = time.monotonic(), None, None
                self._apply(message)
                if message["runs"] or message.get("gone"):
                    self._wake()
            self._connection.close()
            while not self._closed.is_set() and not self._reconnected():
                self._closed.wait(_RECONNECT_S)
        self._connection.close()

    def _listen_for_life(self) -> None:
        """Ask a silent shim whether it is alive; resume it, and finally replace it, if it does not answer."""
        now = time.monotonic()
        if self._asked_at is None:
            if now - self._heard_at >= _PING_EVERY_S:
                self._asked_at = now
                with self._lock:
                    self._send({})
            return
        silent_s = now - self._asked_at
        if silent_s < _SILENT_S:
            return
        if self._trouble is None:
            _log.warning("the process that holds the programs of %s does not answer", self._directory)
        self._trouble = f"the process that holds the programs has not answered for {now - self._heard_at:.0f} s"
        if silent_s >= _RESUME_AFTER_S:
            signal_shim(self._connection.peer(), signal.SIGCONT)
        if silent_s >= _REPLACE_AFTER_S:
            _log.warning("replacing it; the programs keep running")
            signal_shim(self._connection.peer(), signal.SIGKILL)
            self._connection.shut()

    def _reconnected(self) -> bool:
        try:
            self._connect()
        except EngineError as error:
            if self._trouble is None:
                _log.warning("no connection to the process that holds the programs; trying again: %s", error.message)
            self._trouble = error.message
            return False
        self._trouble = None
        self._wake()
        return True

    def _apply(self, message: Mapping[str, Any]) -> None:
        with self._lock:
            for number in tuple(self._unacknowledged):
                if number <= message["ack"]:
                    del self._unacknowledged[number]
            for report in message["runs"]:
                self._see(report, self._observed)
            for uid in message.get("gone", ()):
                self._observed.pop(uid, None)
                self._stops.pop(uid, None)
            self._snapshot = None

    def _wake(self) -> None:
        for wake in tuple(self._wakes):
            wake()


def _is_evicted(seen: Observation | None) -> bool:
    return seen is not None and seen.outcome is not None and seen.outcome.ended_by is EndedBy.EVICTION
