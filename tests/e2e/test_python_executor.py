"""``holdfast.Executor`` behaves as the standard library's executors do, and its calls are jobs."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError, Executor, Future, as_completed, wait
from typing import TYPE_CHECKING, Any

import pytest

import holdfast
from holdfast.errors import InvalidRequest, Unavailable
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.server import Server

SLOW = 0.1


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[holdfast.Client]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_DATA", str(tmp_path_factory.mktemp("python") / "data"))
        patch.setenv("HOLDFAST_CPUS", "2")
        with holdfast.Client.from_env() as made:
            yield made


@pytest.fixture(scope="module")
def executor(client: holdfast.Client) -> Iterator[holdfast.Executor]:
    with holdfast.Executor(client, cpus=0.5) as made:
        yield made


def test_results_come_back_in_every_way_the_standard_library_has(executor: holdfast.Executor) -> None:
    assert isinstance(executor, Executor)
    assert executor.submit(pow, 2, exp=5).result() == 32
    assert list(executor.map(divmod, [7, 9], [2, 4], timeout=60)) == [(3, 1), (2, 1)]
    futures = [executor.submit(abs, -number) for number in range(3)]
    assert {future.result() for future in as_completed(futures, timeout=60)} == {0, 1, 2}
    assert wait(futures).not_done == set()
    seen: list[int] = []
    futures[1].add_done_callback(lambda future: seen.append(future.result()))
    assert seen == [1]


def test_map_makes_one_job_of_a_chunk_and_keeps_the_order(client: holdfast.Client) -> None:
    with holdfast.Executor(client, name="chunked", labels={"of": "chunks"}) as executor:
        assert list(executor.map(abs, range(-5, 0), chunksize=2)) == [5, 4, 3, 2, 1]
        with pytest.raises(ValueError, match="at least 1"):
            executor.map(abs, [1], chunksize=0)
    assert len(list(client.api.jobs(labels={"of": "chunks"}, name="chunked"))) == 3


def test_an_exception_has_the_traceback_of_the_run_as_its_cause(executor: holdfast.Executor) -> None:
    def broken() -> None:
        msg = "of no use"
        raise ValueError(msg)

    future = executor.submit(broken)
    error = future.exception()
    assert isinstance(error, ValueError)
    assert ", in broken" in str(error.__cause__)
    assert future.job().state == "Failed"


def test_a_call_whose_process_dies_says_how(executor: holdfast.Executor) -> None:
    with pytest.raises(holdfast.JobFailed, match="killed by SIGSEGV"):
        executor.submit(_die).result()


def _die() -> None:
    os.kill(os.getpid(), 11)


@pytest.mark.parametrize("end", ["returns", "exits", "raises"])
def test_the_outcome_is_the_workers_however_a_child_that_the_call_forked_ends(
    executor: holdfast.Executor, end: str
) -> None:
    def forks(reading: int, writing: int) -> int:
        child = os.fork()
        if child:
            # Only once the worker has left its outcome does the child end, and the worker waits for that.
            atexit.register(os.waitpid, child, 0)
            atexit.register(os.close, writing)
            return child
        os.close(writing)
        os.read(reading, 1)
        if end == "raises":
            raise ValueError(end)
        return sys.exit(3) if end == "exits" else 0

    def piped() -> int:
        return forks(*os.pipe())

    assert executor.submit(piped).result(60) > 0


def test_calls_after_one_that_forks_are_made_once(client: holdfast.Client, tmp_path: Path) -> None:
    def notes(number: int) -> int:
        if number == 0 and (child := os.fork()):
            os.waitpid(child, 0)
        with (tmp_path / "made").open("a") as file:
            file.write(f"{number}\n")
        return number

    with holdfast.Executor(client) as executor:
        assert list(executor.map(notes, range(3), chunksize=3)) == [0, 1, 2]
    with holdfast.PackedExecutor(client, calls_per_job=3) as packed:
        assert list(packed.map(notes, range(3))) == [0, 1, 2]
    assert sorted((tmp_path / "made").read_text().split()) == ["0"] * 4 + ["1"] * 2 + ["2"] * 2


def test_exceptions_are_retried_as_the_executor_was_told(client: holdfast.Client) -> None:
    def flaky(error: type[Exception]) -> int:
        attempt = holdfast.current().attempt
        if attempt < 3:
            raise error(attempt)
        return attempt

    soon: Any = {"action": "retry", "backoff": {"initialDelay": "0s"}}
    with holdfast.Executor(client, on_exceptions={OSError: soon, "ValueError": "fail"}) as executor:
        reset, wrong = executor.submit(flaky, TimeoutError), executor.submit(flaky, ValueError)
        assert reset.result() == 3
        with pytest.raises(ValueError, match="1"):
            wrong.result()


def test_what_a_retried_attempt_returned_is_not_the_result(client: holdfast.Client) -> None:
    def crash_then_leave_nothing() -> str:
        if holdfast.current().attempt > 1:
            os._exit(0)
        atexit.register(os.kill, os.getpid(), signal.SIGSEGV)
        return "of attempt 1"

    with holdfast.Executor(client, retries=1) as executor:
        future = executor.submit(crash_then_leave_nothing)
        with pytest.raises(holdfast.JobFailed, match="succeeded, but its result is gone"):
            future.result(60)


def test_a_future_that_waits_is_cancelled_with_its_job_and_one_that_runs_is_not(
    client: holdfast.Client, tmp_path: Path
) -> None:
    def hold(gate: Path) -> None:
        while not gate.exists():
            threading.Event().wait(SLOW)

    with holdfast.Executor(client, cpus=2) as executor:
        running = executor.submit(hold, tmp_path / "gate")
        queued = executor.submit(abs, 1)
        job = queued.job(30)
        wait_until(running.running, "a future that is running")
        assert not running.cancel()
        assert queued.cancel()
        assert queued.cancelled()
        assert wait([queued], timeout=30).done == {queued}
        with pytest.raises(CancelledError):
            queued.result()
        assert job.wait(30) == "Cancelled"
        both: list[Future[Any]] = [queued, running]
        assert next(as_completed(both, timeout=30)) is queued
        (tmp_path / "gate").touch()
        assert running.result() is None


def test_a_job_that_somebody_else_cancels_is_a_cancelled_future(client: holdfast.Client) -> None:
    with holdfast.Executor(client) as executor:
        future = executor.submit(time.sleep, 60)
        wait_until(future.running, "a future that is running")
        future.job().cancel("not needed")
        with pytest.raises(CancelledError, match="not needed"):
            future.result(30)


def test_shutdown_takes_no_more_and_cancels_what_waits_if_it_is_told_to(client: holdfast.Client) -> None:
    executor = holdfast.Executor(client, cpus=2)
    futures = [executor.submit(time.sleep, 0.5) for _ in range(5)]
    wait_until(futures[0].running, "a future that is running")
    executor.shutdown(wait=True, cancel_futures=True)
    assert all(future.done() for future in futures)
    assert futures[0].result() is None
    assert any(future.cancelled() for future in futures)
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(abs, 1)


def test_an_executor_that_no_job_could_come_of_is_refused_at_once(client: holdfast.Client) -> None:
    with pytest.raises(InvalidRequest, match="memory"):
        holdfast.Executor(client, memory="much")
    with holdfast.Executor(client) as executor, pytest.raises(TypeError, match="cannot be sent"):
        executor.submit(print, threading.Lock())


def test_nothing_is_left_of_a_call_whose_result_was_brought(client: holdfast.Client) -> None:
    with holdfast.Executor(client) as executor:
        future = executor.submit(abs, -1)
        assert future.result() == 1
    assert not future.call.folder.exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_calls_outlive_the_server_that_ran_them(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, number: int
) -> None:
    server.start().close()
    monkeypatch.setenv("HOLDFAST_DATA", str(server.data))
    away, back = "the server does not answer; waiting up to 5m for it", "the server answers again"
    with caplog.at_level(logging.WARNING), holdfast.Client.from_env() as client, holdfast.Executor(client) as executor:
        future = executor.submit(_slowly, 21)
        wait_until(future.running, "a future that is running")
        server.end(number)
        late = executor.submit(abs, -7)
        wait_until(lambda: away in caplog.text, "a future that misses the server")
        server.start().close()
        assert (future.result(60), late.result(60)) == (42, 7)
    assert [caplog.text.count(said) for said in (away, back)] == [1, 1]


@pytest.mark.slow
def test_calls_are_given_up_when_the_server_is_away_for_longer_than_was_said(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.start().close()
    monkeypatch.setenv("HOLDFAST_DATA", str(server.data))
    monkeypatch.setenv("HOLDFAST_PATIENCE", "100ms")
    with holdfast.Client.from_env() as client, holdfast.Executor(client) as executor:
        future = executor.submit(_slowly, 21)
        wait_until(future.running, "a future that is running")
        server.end()
        with pytest.raises(Unavailable):
            future.result(30)


def _slowly(number: int) -> int:
    threading.Event().wait(1)
    return 2 * number


@pytest.mark.parametrize("end", ["", "executor.shutdown(wait=False)", "del executor"])
def test_a_program_ends_when_what_it_submitted_is_over(tmp_path: Path, end: str) -> None:
    program = (
        "import holdfast\nexecutor = holdfast.Executor()\n"
        f"executor.submit(abs, -7).add_done_callback(lambda future: print(future.result()))\n{end}\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "HOLDFAST_DATA": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "7\n", "")


def test_packed_calls_share_jobs_and_each_has_its_own_result(client: holdfast.Client) -> None:
    with holdfast.PackedExecutor(client, calls_per_job=4, window_s=60, name="packed", labels={"of": "packs"}) as packed:
        futures = [packed.submit(divmod, 7, number) for number in (2, 0, 3, 4)]
        loose = [packed.submit(abs, -1), packed.submit(abs, -2)]
        assert loose[0].cancel()
        assert [futures[place].result(60) for place in (0, 2, 3)] == [(3, 1), (2, 1), (1, 3)]
        with pytest.raises(ZeroDivisionError):
            futures[1].result()
        assert len({future.job().id for future in futures}) == 1
        assert not loose[1].done(), "it waits for others"
        with pytest.raises(TypeError, match="cannot be sent"):
            packed.submit(threading.Lock().acquire)
    assert (loose[1].result(), loose[0].cancelled()) == (2, True)
    assert len(list(client.api.jobs(labels={"of": "packs"}))) == 2
    with pytest.raises(RuntimeError, match="after shutdown"):
        packed.submit(abs, 1)


def test_packed_calls_fail_together_where_their_job_does(client: holdfast.Client) -> None:
    with holdfast.PackedExecutor(client, calls_per_job=2) as packed:
        doomed: list[Future[Any]] = [packed.submit(os.kill, 0, 9), packed.submit(abs, -1)]
        for future in doomed:
            with pytest.raises(holdfast.JobFailed):
                future.result(60)
    with pytest.raises(ValueError, match="at least 1"):
        holdfast.PackedExecutor(client, calls_per_job=0)
    with holdfast.PackedExecutor(client) as packed:
        assert list(packed.map(abs, range(-45, 0))) == list(range(45, 0, -1))


def test_packed_calls_are_made_though_nobody_waits_for_them(tmp_path: Path) -> None:
    made = tmp_path / "made"
    program = f"import holdfast, pathlib; holdfast.PackedExecutor().submit(pathlib.Path({str(made)!r}).touch)"
    environ = {**os.environ, "HOLDFAST_DATA": str(tmp_path / "data")}
    subprocess.run([sys.executable, "-c", program], env=environ, check=True, timeout=60)
    assert made.exists()
