"""``cancel()`` of a future says what is true: a call that has begun is made to its end, and another one never is."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

import pytest

import holdfast
from holdfast.errors import NotFound
from holdfast.sdk import pump
from holdfast.sdk.pump import Pump
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from holdfast.client import Client as Api
    from holdfast.sdk.futures import JobFuture
    from tests.e2e.server import Server

FOREVER_S = 1e6


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[holdfast.Client]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_DATA", str(tmp_path_factory.mktemp("python") / "data"))
        patch.setenv("HOLDFAST_CPUS", "1")
        with holdfast.Client.from_env() as made:
            yield made


def through(gate: Path) -> str:
    while not gate.exists():
        threading.Event().wait(0.02)
    return "made"


def unknown(executor: holdfast.Executor, *calls: Sequence[Any]) -> list[JobFuture[Any]]:
    """Submit calls of which nobody looks whether they begin."""
    futures = [executor.submit(*call) for call in calls]
    for future in futures:
        future.job(60)
    return futures


def test_a_call_that_has_begun_is_made_and_others_are_not_though_nobody_knew_which(
    client: holdfast.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with holdfast.Executor(client, cpus=1) as executor:
        with monkeypatch.context() as patch:
            patch.setattr(Pump, "_look", lambda _: False)
            ended, runs, waits = unknown(
                executor, (abs, -1), (through, tmp_path / "gate"), ((tmp_path / "never").touch,)
            )
            wait_until(lambda: runs.job().state == "Running", "a call that is made")
            assert {future.running() for future in (ended, runs, waits)} == {False}
        assert [future.cancel() for future in (ended, runs, waits)] == [False, False, True]
        assert [future.cancel() for future in (ended, runs, waits)] == [False, False, True]
        (tmp_path / "gate").touch()
        assert (ended.result(60), runs.result(60)) == (1, "made")
        with pytest.raises(CancelledError):
            waits.result(0)
    assert waits.job().state == "Cancelled"
    assert not (tmp_path / "never").exists()


def test_a_call_that_waits_for_its_next_attempt_has_begun_and_one_that_is_held_has_not(
    client: holdfast.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OSError

    later: Any = {"action": "retry", "backoff": {"initialDelay": "1h"}}
    with holdfast.Executor(client, cpus=1, on_exceptions={OSError: later}) as executor:
        with monkeypatch.context() as patch:
            patch.setattr(Pump, "_look", lambda _: False)
            [again] = unknown(executor, (fail,))
            wait_until(lambda: again.job().state == "BackOff", "a call that failed once")
        assert not again.cancel()
        assert again.running()
        blocker = executor.submit(time.sleep, 60)
        wait_until(blocker.running, "a call that takes the place")
        held = executor.submit(abs, -1)
        client.api.hold(held.job(60).id)
        wait_until(lambda: held.job().state == "Held", "a call that is held")
        assert held.cancel()
        for future in (again, blocker):
            future.job().cancel()


def test_threads_that_cancel_one_future_hear_the_same(client: holdfast.Client, tmp_path: Path) -> None:
    with holdfast.Executor(client, cpus=1) as executor, ThreadPoolExecutor(4) as threads:
        runs = executor.submit(through, tmp_path / "gate")
        wait_until(runs.running, "a call that is made")
        waits = executor.submit(abs, -1)
        waits.job(60)
        assert list(threads.map(lambda future: future.cancel(), [waits, runs] * 2)) == [True, False] * 2
        (tmp_path / "gate").touch()


def test_many_futures_are_cancelled_by_one_request(
    client: holdfast.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[tuple[int, bool]] = []
    cancel_many = type(client.api).cancel_many

    def count(api: Api, ids: Sequence[str], *, reason: str = "", unless_started: bool = False) -> list[str]:
        requests.append((len(ids), unless_started))
        return cancel_many(api, ids, reason=reason, unless_started=unless_started)

    def fails(number: int) -> None:
        msg = "the first"
        if number == 0:
            raise ValueError(msg)
        through(tmp_path / "gate")

    monkeypatch.setattr(type(client.api), "cancel_many", count)
    executor = holdfast.Executor(client, cpus=1)
    runs = executor.submit(through, tmp_path / "gate")
    wait_until(runs.running, "a call that is made")
    futures = [executor.submit(abs, number) for number in range(20)]
    futures[-1].job(60)
    executor.shutdown(wait=False, cancel_futures=True)
    assert wait(futures, timeout=60).not_done == set()
    (tmp_path / "gate").touch()
    assert (runs.result(60), all(future.cancelled() for future in futures)) == ("made", True)
    assert requests == [(21, True)]
    (tmp_path / "gate").unlink()
    with holdfast.Executor(client, cpus=1) as executor:
        with pytest.raises(ValueError, match="the first"):
            list(executor.map(fails, range(5)))
        (tmp_path / "gate").touch()
    assert len(requests) == 2


def test_callbacks_cancel_without_waiting(
    client: holdfast.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pump, "_VERDICT_S", FOREVER_S)

    async def cancel_wrapped(executor: holdfast.Executor) -> None:
        wrapped = [asyncio.get_running_loop().run_in_executor(executor, abs, number) for number in range(3)]
        await asyncio.sleep(0)
        for future in wrapped:
            future.cancel()
        await asyncio.wait(wrapped)

    with holdfast.Executor(client, cpus=1) as executor:
        runs = executor.submit(through, tmp_path / "gate")
        wait_until(runs.running, "a call that is made")
        waits = executor.submit(through, tmp_path / "gate")
        waits.job(60)
        asyncio.run(cancel_wrapped(executor))
        said: list[bool] = []
        runs.add_done_callback(lambda _: said.extend([waits.cancel(), waits.cancel()]))
        client.api.hold(waits.job().id)
        (tmp_path / "gate").touch()
        assert runs.result(60) == "made"
        assert wait([waits], timeout=60).done == {waits}
        assert (said, waits.cancelled()) == ([False, False], True)


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True])
def test_a_server_that_is_away_neither_has_a_thread_wait_for_ever_nor_is_taken_at_its_word(
    server: Server, monkeypatch: pytest.MonkeyPatch, *, killed: bool
) -> None:
    server.start().close()
    monkeypatch.setenv("HOLDFAST_DATA", str(server.data))
    with holdfast.Client.from_env() as client, holdfast.Executor(client, cpus=4) as executor:
        blocker = executor.submit(time.sleep, 600)
        wait_until(blocker.running, "a call that takes the place")
        waits = executor.submit(abs, -1)
        job = waits.job(60)
        if killed:
            monkeypatch.setattr(pump, "_VERDICT_S", FOREVER_S)
            assert server.process is not None
            server.process.send_signal(signal.SIGSTOP)
            with ThreadPoolExecutor(1) as thread:
                answer = thread.submit(waits.cancel)
                wait_until(lambda: waits.to_cancel, "a future that is to be cancelled")
                server.end()
                server.start().close()
                assert answer.result(60)
        else:
            monkeypatch.setattr(pump, "_VERDICT_S", 0.1)
            server.end()
            assert not waits.cancel()
            assert not waits.done()
            server.start().close()
            assert wait([waits], timeout=60).done == {waits}
        assert (waits.cancelled(), job.state) == (True, "Cancelled")
        blocker.job().cancel()


def test_a_server_that_knows_no_such_condition_is_said_to_be_older_and_nothing_is_cancelled(
    client: holdfast.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> list[str]:
        msg = "unless_started: is not known"
        raise NotFound(msg, hint="the server is older than this program")

    monkeypatch.setattr(type(client.api), "cancel_many", refuse)
    with holdfast.Executor(client, cpus=1) as executor:
        runs = executor.submit(time.sleep, 60)
        wait_until(runs.running, "a call that is made")
        waits = executor.submit(abs, -1)
        waits.job(60)
        assert not waits.cancel()
        runs.job().cancel()
        assert waits.result(60) == 1
    assert "the server is older than this program" in caplog.text
