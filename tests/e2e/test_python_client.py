"""``holdfast.Client`` with real programs and calls, in this process and beside a server."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

import holdfast
from holdfast.errors import InvalidRequest, NotFound
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.server import Server


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[holdfast.Client]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_DATA", str(tmp_path_factory.mktemp("python") / "data"))
        patch.setenv("HOLDFAST_CPUS", "4")
        with holdfast.Client.from_env() as made:
            yield made


def test_a_command_runs_and_a_failed_one_says_why(client: holdfast.Client) -> None:
    assert client.submit("echo hello", name="hi").result() is None
    job = client.submit([sys.executable, "-c", "import sys; print('late words'); sys.exit(3)"])
    with pytest.raises(holdfast.JobFailed) as caught:
        job.result()
    assert "exit code 3" in str(caught.value)
    assert "late words" in str(caught.value.__cause__)
    assert job.logs() == "late words\n"
    assert (job.state, job.why().exit_code) == ("Failed", 3)


def test_a_function_of_the_program_itself_returns_its_value(client: holdfast.Client) -> None:
    factor = 21

    def product(number: int, *, more: int = 0) -> tuple[int, int]:
        return number * factor + more, os.getpid()

    value, pid = client.submit(product, (2,), {"more": 1}).result()
    assert value == 43
    assert pid != os.getpid()


def test_an_exception_comes_back_with_the_traceback_of_the_run(client: holdfast.Client) -> None:
    def broken() -> None:
        list(range(1))[1]

    with pytest.raises(IndexError) as caught:
        client.submit(broken).result()
    assert ", in broken" in str(caught.value.__cause__)


def test_exceptions_decide_what_follows(client: holdfast.Client) -> None:
    def attempt(name: str, good_from: int) -> int:
        run = holdfast.current()
        if run.attempt < good_from:
            raise {"reset": ConnectionResetError, "wrong": ValueError}[name]
        return run.attempt

    rules: Any = {ConnectionError: {"action": "retry", "backoff": {"initialDelay": "0s"}}, "ValueError": "fail"}
    assert client.submit(attempt, ("reset", 3), on_exceptions=rules).result() == 3
    job = client.submit(attempt, ("wrong", 2), on_exceptions=rules, retries=5)
    with pytest.raises(ValueError):  # noqa: PT011 - it has no text
        job.result()
    decision = job.why().decision
    assert decision is not None
    assert (decision.policy, decision.rule) == ("python", "on-valueerror")


def test_a_program_can_have_its_exceptions_decide_too(client: holdfast.Client) -> None:
    program = (
        "import holdfast\nrun = holdfast.current()\nrun.report_exceptions()\n"
        "if run.attempt == 1:\n    raise BrokenPipeError('no reader')\n"
    )
    job = client.submit([sys.executable, "-c", program], on_exceptions={"ConnectionError": "retry"})
    assert job.result() is None
    first = client.api.attempt(job.id, 1)
    assert first.decision is not None
    assert first.decision.rule == "on-connectionerror"
    assert "BrokenPipeError: no reader" in job.logs(attempt=1)


def test_a_call_that_says_not_to_try_again_is_believed(client: holdfast.Client) -> None:
    job = client.submit(lambda: holdfast.current().fail("no such user", retryable=False), retries=5)
    with pytest.raises(holdfast.CallError, match="no such user"):
        job.result()
    assert job.view().attempt == 1
    assert job.view().attempts[0].runs[0].containers[0].message == "no such user\n[not retryable]"


def test_many_calls_are_submitted_at_once_and_found_again(client: holdfast.Client) -> None:
    jobs = client.map(pow, [2, 3, 4], [3, 2, 1], labels={"part": "of-many"})
    assert {job.id for job in holdfast.as_completed(jobs)} == {job.id for job in jobs}
    assert [job.result() for job in jobs] == [8, 9, 4]
    assert client.job(jobs[1].id).result() == 9
    assert {job.id for job in jobs} <= {job.id for job in client.jobs(["Succeeded"])}
    with pytest.raises(NotFound):
        client.job("nobody")


def test_waiting_ends_at_its_limit_at_the_first_end_or_the_first_failure(client: holdfast.Client) -> None:
    slow = client.submit("sleep 60")
    with pytest.raises(TimeoutError, match="1 of 1 jobs"):
        slow.wait(0.1)
    assert holdfast.wait([slow], timeout=0) == (set(), {slow})
    quick, bad = client.submit("true"), client.submit("false")
    bad.wait()
    done, not_done = holdfast.wait([slow, quick, bad], return_when="FIRST_EXCEPTION")
    assert bad in done
    assert slow in not_done
    slow.cancel("enough")
    with pytest.raises(holdfast.JobCancelled):
        slow.result(30)
    assert holdfast.wait([slow, quick, bad], return_when="FIRST_COMPLETED").done
    with pytest.raises(ValueError, match="ALL_COMPLETED"):
        holdfast.wait([], return_when="SOME")  # type: ignore[arg-type] # which type checkers see, too


def test_a_log_is_followed_while_it_grows(client: holdfast.Client, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    job = client.submit(f"echo first; while [ ! -e {gate} ]; do sleep 0.05; done; echo last")
    parts = job.follow()
    assert next(parts) == "first\n"
    gate.touch()
    assert "".join(parts) == "last\n"
    assert "".join(job.follow()) == "first\nlast\n"


def test_a_call_that_leaves_no_result_is_a_failed_job(client: holdfast.Client) -> None:
    job = client.submit(os._exit, (0,))
    with pytest.raises(holdfast.JobFailed, match="succeeded, but its result is gone"):
        job.result()
    with pytest.raises(holdfast.JobFailed, match="exit code 9"):
        client.submit(os._exit, (9,)).result()


def test_a_gang_of_calls_returns_what_its_first_rank_did_and_raises_what_any_did(client: holdfast.Client) -> None:
    def ranked(bad: int) -> int:
        run = holdfast.current()
        if run.rank == bad:
            raise ValueError(run.rank)
        return run.rank * 10 + run.size

    job = client.submit(ranked, (-1,), gang=2)
    assert job.result() == 2
    assert job.outcome(1) == 12
    with pytest.raises(ValueError, match="1"):
        client.submit(ranked, (1,), gang=2).result()


def test_what_cannot_be_sent_is_refused_and_leaves_nothing_behind(client: holdfast.Client) -> None:
    before = set(client.calls.place.iterdir())
    with pytest.raises(TypeError, match="cannot be sent to another process"):
        client.submit(print, (threading.Lock(),))
    with pytest.raises(InvalidRequest, match="queue"):
        client.map(print, [1, 2], queue="NO SUCH")
    with pytest.raises(InvalidRequest, match="takes no options"):
        client.submit({"command": ["true"]}, queue="research")
    assert set(client.calls.place.iterdir()) == before
    assert client.submit({"command": ["true"], "name": "short"}).result() is None


def test_too_large_a_call_or_result_is_refused_with_its_size(client: holdfast.Client, tmp_path: Path) -> None:
    small = holdfast.Client(api=client.api, directory=tmp_path / "small", max_bytes=2000)
    with pytest.raises(ValueError, match=r"takes \d+ bytes, and 2000 are allowed"):
        small.submit(len, ("x" * 3000,))
    with pytest.raises(ValueError, match=r"takes \d+ bytes, and 2000 are allowed"):
        small.submit(lambda: "x" * 3000).result()


def test_a_directory_that_others_can_write_is_refused(client: holdfast.Client, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    open_to_all = holdfast.Client(api=client.api, directory=tmp_path)
    with pytest.raises(InvalidRequest, match="chmod 700"):
        open_to_all.submit(print)


def test_what_calls_of_forgotten_jobs_left_is_deleted(client: holdfast.Client) -> None:
    kept, gone = client.map(abs, [1, 2])
    holdfast.wait([kept, gone])
    folders = []
    for job in (kept, gone):
        assert job.call is not None
        os.utime(job.call.folder, (0, 0))
        folders.append(job.call.folder)
    lost = client.calls.add(abs, [3], {}).folder
    os.utime(lost, (0, 0))
    fresh = client.calls.add(abs, [4], {}).folder
    client.calls.forget(lambda ids: [one for one in ids if one == kept.id])
    assert [folder.exists() for folder in (*folders, lost, fresh)] == [True, False, False, True]


def test_a_run_that_is_told_to_stop_saves_what_it_has(client: holdfast.Client) -> None:
    def work() -> None:
        run = holdfast.current()
        run.should_stop()
        run.progress(1, 4, "ready")
        while not run.should_stop():
            threading.Event().wait(0.01)
        (run.checkpoint_dir / "state").write_text("saved")

    job = client.submit(work, grace="20s")
    wait_until(lambda: [run.progress for a in job.view().attempts for run in a.runs] == ["1/4 ready"], "its progress")
    job.cancel()
    assert job.wait(30) == "Cancelled"
    saved = client.calls.place.parent / "runs" / "jobs" / job.id / "checkpoints" / "state"
    assert saved.read_text() == "saved"


def test_a_server_is_found_as_the_command_line_finds_it(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.start()
    monkeypatch.setenv("HOLDFAST_DATA", str(server.data))
    with holdfast.Client.from_env() as client:
        assert client.api.connection.address == server.address()["url"]
        job = client.submit(sum, ([1, 2, 3],))
    with holdfast.Client.from_env() as client:
        assert client.job(job.id).result(30) == 6
        assert client.calls.place == server.data / "calls"
    elsewhere = holdfast.Client("http://127.0.0.1:9").calls.place
    assert elsewhere.parent == server.data
    assert elsewhere.name != "calls", "what one server forgot is not another's to delete"


def test_threads_share_a_client(client: holdfast.Client) -> None:
    found: list[int] = []
    threads = [threading.Thread(target=lambda n=n: found.append(client.submit(abs, (-n,)).result())) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(found) == [0, 1, 2, 3]


def test_a_program_that_forgets_to_close_its_client_ends_in_good_order(tmp_path: Path) -> None:
    program = "import holdfast\nclient = holdfast.Client.from_env()\nprint(client.submit(len, ('abc',)).result())"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "HOLDFAST_DATA": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")
