"""What an engine says again over a new connection to the shim, and what it must never say again."""

from __future__ import annotations

import fcntl
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.domain.failure import EndedBy
from holdfast.domain.record import evolve
from holdfast.engines.process.engine import ProcessEngine
from holdfast.engines.process.shim.records import LOCK, PROTOCOL, SOCKET, SUPERVISORS
from holdfast.ports.engine import Container, RunOrder, RunPhase, StopReason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.integration.conftest import Machine

ORDER = RunOrder("run-1", "j", "n", attempt=1, rank=0, size=1, containers=(Container(command=("true",)),))
FINISHED = {
    "uid": ORDER.uid,
    "node": "",
    "phase": "finished",
    "started_at": 1.0,
    "ports": [],
    "progress": "",
    "outcome": {"started": True, "ended_at": 2.0, "ended_by": "itself", "exit_code": 0, "reason": "Completed"},
}


class Dying:
    """What listens where the shim does, acknowledges nothing and ends whenever it is told to."""

    def __init__(self, directory: Path) -> None:
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(directory / SOCKET))
        self.listener.listen(4)
        self.listener.settimeout(20)
        self.lock = (directory / LOCK).open("w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)

    def greet(self, runs: Sequence[dict[str, Any]] = ()) -> None:
        self.line, _ = self.listener.accept()
        self.line.settimeout(8)  # after 10 s the engine replaces who is silent, and that is this process
        hello = {"protocol": PROTOCOL, "pid": 0, "memory": "rss"}
        self.line.sendall(json.dumps({"hello": hello, "runs": runs}).encode() + b"\n")
        self.lines = self.line.makefile()

    def tell(self, message: dict[str, Any]) -> None:
        self.line.sendall(json.dumps(message).encode() + b"\n")

    def until(self, what: str) -> list[dict[str, Any]]:
        """Read messages, the last of which says something."""
        told: list[dict[str, Any]] = []
        while not told or what not in told[-1]:
            told.append(json.loads(self.lines.readline()))
        return told

    def die(self) -> None:
        self.lines.close()
        self.line.close()


@pytest.fixture
def dying(tmp_path: Path) -> Iterator[Dying]:
    dying = Dying(tmp_path)
    yield dying
    dying.die()
    dying.listener.close()
    dying.lock.close()


@pytest.fixture
def engine(dying: Dying, tmp_path: Path) -> Iterator[ProcessEngine]:
    with ThreadPoolExecutor(1) as opening:
        opened = opening.submit(ProcessEngine, tmp_path)
        dying.greet()
        engine = opened.result()
    yield engine
    engine.close()


def test_a_run_that_was_forgotten_is_never_ordered_again(engine: ProcessEngine, dying: Dying) -> None:
    engine.start([ORDER])
    dying.until("orders")
    reconnected = threading.Event()
    engine.on_change(reconnected.set)
    dying.die()
    dying.greet([FINISHED])
    assert reconnected.wait(20)
    assert engine.observe()[ORDER.uid].phase is RunPhase.FINISHED
    engine.forget([ORDER.uid])
    dying.until("forget")
    dying.die()
    dying.greet()
    told = dying.until("forget")
    assert [message for message in told if "orders" in message] == []


def test_an_order_that_nobody_took_in_comes_again_before_what_was_said_of_it(
    engine: ProcessEngine, dying: Dying
) -> None:
    engine.start([ORDER])
    engine.stop([(ORDER.uid, 0.0, StopReason.USER)])
    dying.die()
    dying.greet()
    told = dying.until("stops")
    assert [message["orders"][0]["uid"] for message in told if "orders" in message] == [ORDER.uid]


def test_orders_sent_while_the_shim_dies_are_carried_out_once(machine: Machine) -> None:
    assert machine.run("true").succeeded
    machine.shim().suspend()
    order = machine.start("sh", "-c", "echo once")
    machine.shim().kill()
    assert machine.finish(order).succeeded
    assert machine.log(order) == "once\n"


def test_what_has_a_number_is_acknowledged_whatever_without_one_comes_after_it(machine: Machine) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(str(machine.directory / SOCKET))
        client.sendall(b'{"seq":5,"forget":["x"]}\n{"seq":0,"forget":["y"]}\n')
        with client.makefile() as lines:
            told = [json.loads(lines.readline()) for _ in range(2)]
    assert [message.get("ack") for message in told] == [None, 5]


def report(phase: str) -> dict[str, Any]:
    return {**FINISHED, "phase": phase, "outcome": None}


def test_a_stop_that_was_acknowledged_comes_again_until_its_run_has_ended(engine: ProcessEngine, dying: Dying) -> None:
    engine.start([ORDER])
    engine.stop([(ORDER.uid, 7.0, StopReason.USER)])
    number = dying.until("stops")[-1]["seq"]
    seen = threading.Event()
    engine.on_change(seen.set)
    # Acknowledged or not, nobody knows whether it had come to the run's supervisor when the shim died.
    for ended, phase in enumerate((report("running"), report("stopping"), FINISHED)):
        dying.tell({"ack": number, "runs": [phase]})
        assert seen.wait(20)
        seen.clear()
        dying.die()
        dying.greet([phase])
        assert seen.wait(20)
        seen.clear()
        number = following(engine, dying, f"later-{ended}", again=phase is not FINISHED)


def following(engine: ProcessEngine, dying: Dying, uid: str, *, again: bool) -> int:
    """Look whether the stop comes before what is said next; returns the number of that."""
    engine.start([evolve(ORDER, uid=uid)])
    told = dying.until("orders")
    while told[-1]["orders"][-1]["uid"] != uid or not told[-1]["seq"]:
        told += dying.until("orders")
    assert [message["stops"] for message in told if "stops" in message] == [[[ORDER.uid, 7.0, "user"]]] * again
    return int(told[-1]["seq"])


@pytest.mark.parametrize("successor", [False, True], ids=["alone", "with its successor there already"])
def test_a_stop_that_a_shim_passed_on_before_it_died_is_carried_out(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, *, successor: bool
) -> None:
    """The supervisor gets no time between the stop and the shim's death, as on a very busy machine."""
    order = machine.start("sleep", "1000")
    machine.until(order, lambda seen: seen.phase is RunPhase.RUNNING)
    machine.engine.close()
    shim = machine.shim()
    shim.kill()
    shim.wait(20)
    [supervisor] = machine.supervisors()
    monkeypatch.chdir(machine.directory)  # whose path may be longer than an address
    [address] = Path(SUPERVISORS).glob("*.sock")
    with socket.socket(socket.AF_UNIX) as first, socket.socket(socket.AF_UNIX) as second:
        first.settimeout(20)
        first.connect(str(address))
        assert json.loads(first.makefile().readline())["run"]["uid"] == order.uid
        supervisor.suspend()
        first.sendall(json.dumps({"stop": [order.uid, 0.0, "user"]}).encode() + b"\n")
        first.close()
        if successor:
            second.connect(str(address))
        supervisor.resume()
        machine.open()
        assert machine.finish(order).ended_by is EndedBy.USER
