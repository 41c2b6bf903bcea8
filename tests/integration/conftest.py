"""A machine with a process engine, waited for on conditions with a deadline; and an API of job sets in virtual time."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from typing import TYPE_CHECKING, Protocol, TypedDict, Unpack

import psutil
import pytest

from holdfast.api.http.serving.app import create_app
from holdfast.api.http.serving.gates import Entrance
from holdfast.app.inprocess import in_process
from holdfast.domain.access import Principal
from holdfast.domain.job import Resources
from holdfast.engines.process.engine import ProcessEngine
from holdfast.engines.process.files import log_path
from holdfast.ports.engine import Container, NodeInfo, Observation, RunOrder, RunPhase, StopReason
from holdfast.ports.logs import LogPart
from tests.asgi import asking
from tests.unit.conftest import exits
from tests.unit.jobset_lab import FOREVER, SetLab
from tests.untimed import Untimed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import httpx
    from fastapi import FastAPI

    from holdfast.client import Client
    from holdfast.domain.failure import RunOutcome
    from holdfast.domain.workloads.preparing import Input, Preparation
    from holdfast.domain.workloads.watching import EarlyWarning, StallLimits
    from holdfast.ports.secrets import SecretUser


class Settings(TypedDict, total=False):
    """Of an engine, beside its directory."""

    nodes: Sequence[NodeInfo]
    log_limit: int
    pids_limit: int
    launch_limit_s: float
    lease_s: float | None
    held_port: int
    memory_limits: str
    environ: Mapping[str, str]
    blob: Callable[[str, SecretUser], Path]


class Fields(TypedDict, total=False):
    """Of an order, beside its uid and command."""

    job_id: str
    attempt: int
    rank: int
    size: int
    env: Mapping[str, str]
    working_dir: str | None
    resources: Resources
    memory_limit: int | None
    deadline_s: float | None
    grace_s: float
    stall: StallLimits | None
    warning: EarlyWarning | None
    checkpointed_exit_code: int | None
    preparation: Preparation | None
    inputs: tuple[Input, ...]
    keeps_work: bool
    ports: tuple[str, ...]
    separate_logs: bool
    checkpoints_of: tuple[str, ...]


class NewMachine(Protocol):
    """Makes a machine that is ended with the test."""

    def __call__(self, directory: Path, **settings: Unpack[Settings]) -> Machine: ...


class Machine:
    """An engine on a directory, and short ways to run things on it."""

    def __init__(self, directory: Path, **settings: Unpack[Settings]) -> None:
        self.directory = directory
        self.settings = settings
        self.numbers = itertools.count(1)
        self.changed = threading.Event()
        self.engine = self.open()

    def open(self) -> ProcessEngine:
        self.engine = ProcessEngine(self.directory, shim_idle_s=0.1, **self.settings)
        self.engine.on_change(self.changed.set)
        return self.engine

    def order(self, *command: str, **fields: Unpack[Fields]) -> RunOrder:
        number = next(self.numbers)
        main = Container(
            command=command,
            env=fields.get("env", {}),
            working_dir=fields.get("working_dir"),
            memory_limit=fields.get("memory_limit"),
        )
        return RunOrder(
            uid=f"run-{number}",
            job_id=fields.get("job_id", f"job-{number}"),
            job_name="a-job",
            attempt=fields.get("attempt", 1),
            rank=fields.get("rank", 0),
            size=fields.get("size", 1),
            containers=(main,),
            resources=fields.get("resources", Resources()),
            deadline_s=fields.get("deadline_s"),
            grace_s=fields.get("grace_s", 5.0),
            stall=fields.get("stall"),
            warning=fields.get("warning"),
            checkpointed_exit_code=fields.get("checkpointed_exit_code"),
            preparation=fields.get("preparation"),
            inputs=fields.get("inputs", ()),
            keeps_work=fields.get("keeps_work", True),
            ports=fields.get("ports", ()),
            separate_logs=fields.get("separate_logs", False),
            checkpoints_of=fields.get("checkpoints_of", ()),
        )

    def start(self, *command: str, **fields: Unpack[Fields]) -> RunOrder:
        order = self.order(*command, **fields)
        self.engine.start([order])
        return order

    def until(self, order: RunOrder, condition: Callable[[Observation], object]) -> Observation:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            self.changed.clear()
            seen = self.engine.observe()[order.uid]
            if condition(seen):
                return seen
            self.changed.wait(1)
        pytest.fail(f"never came to it: {self.engine.observe()[order.uid]}; {self.log(order)}")

    def finish(self, order: RunOrder) -> RunOutcome:
        outcome = self.until(order, lambda seen: seen.outcome).outcome
        assert outcome is not None
        return outcome

    def run(self, *command: str, **fields: Unpack[Fields]) -> RunOutcome:
        return self.finish(self.start(*command, **fields))

    def log(self, order: RunOrder) -> str:
        path = log_path(self.directory, order.job_id, order.attempt, order.rank)
        return path.read_text(errors="replace") if path.exists() else ""

    def until_logged(self, order: RunOrder, text: str) -> None:
        deadline = time.monotonic() + 20
        while text not in self.log(order):
            assert time.monotonic() < deadline, self.log(order)
            self.changed.wait(0.01)

    def survivors(self) -> list[psutil.Process]:
        """Find living processes whose environment says that they came from a run of this machine."""
        return marked(self.directory)

    def shim(self) -> psutil.Process:
        """Find the shim; there is exactly one."""
        [shim] = ours(self.directory, "holdfast-shim")
        return shim

    def supervisors(self) -> list[psutil.Process]:
        """Find the supervisors, those without a run too."""
        return ours(self.directory, "holdfast-run")

    def end(self) -> None:
        """Stop everything, and wait until shim and supervisors have left: they leave nothing behind."""
        going = [uid for uid, seen in self.engine.observe().items() if seen.phase is not RunPhase.FINISHED]
        self.engine.stop([(uid, 0.0, StopReason.USER) for uid in going])
        deadline = time.monotonic() + 20
        while any(self.engine.observe()[uid].phase is not RunPhase.FINISHED for uid in going):
            assert time.monotonic() < deadline
            self.changed.wait(0.01)
        self.engine.close()
        while (self.directory / "shim.sock").exists() or ours(self.directory):
            assert time.monotonic() < deadline, f"they stayed: {ours(self.directory)}"
            self.changed.wait(0.01)
        assert marked(self.directory) == []


def ours(directory: Path, name: str = "holdfast-") -> list[psutil.Process]:
    """Find the shim and the supervisors of a directory, by the beginning of their names."""
    found = []
    for process in psutil.process_iter(["cmdline", "status", "name"]):
        line = process.info["cmdline"] or []
        if str(directory) in line and process.info["name"].startswith(name):
            found.append(process)
    return [process for process in found if process.info["status"] != psutil.STATUS_ZOMBIE]


def marked(directory: Path) -> list[psutil.Process]:
    """Find living processes whose environment says that they came from a run in this directory."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            log = process.environ().get("HOLDFAST_TERMINATION_LOG", "")
            if log.startswith(str(directory)) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


@pytest.fixture
def new_machine() -> Iterator[NewMachine]:
    with contextlib.ExitStack() as ends:

        def make(directory: Path, **settings: Unpack[Settings]) -> Machine:
            machine = Machine(directory, **settings)
            ends.callback(machine.end)
            return machine

        yield make


@pytest.fixture
def machine(new_machine: NewMachine, tmp_path: Path) -> Machine:
    return new_machine(tmp_path)


class Counting:
    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def new(self) -> str:
        return f"id{next(self._numbers):08d}"


class NoLogs(Untimed):
    def read(self, job_id: str, attempt: int, rank: int, *, offset: int, limit: int, stderr: bool = False) -> LogPart:
        del job_id, attempt, rank, offset, limit, stderr
        return LogPart(b"", 0)


@pytest.fixture
def lab() -> SetLab:
    lab = SetLab()
    lab.use(NodeInfo("n0", Resources(16_000, 64 << 30, 0)))
    lab.plan = lambda _: exits(0, after_s=FOREVER)
    return lab


@pytest.fixture
def app(lab: SetLab) -> FastAPI:
    return create_app(
        store=lab.store, clock=lab.clock, ids=Counting(), logs=NoLogs(), entrance=Entrance(Principal("tester"))
    )


@pytest.fixture
def http(app: FastAPI) -> Iterator[httpx.Client]:
    with asking(app) as client:
        yield client


@pytest.fixture
def client(app: FastAPI) -> Iterator[Client]:
    with in_process(app.state.backend, Principal("tester")) as client:
        yield client
