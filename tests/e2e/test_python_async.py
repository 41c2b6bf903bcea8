"""``holdfast.AsyncClient`` on an event loop, and how a job looks in a notebook."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import anyio
import pytest

import holdfast
from holdfast.sdk.asynchronous import as_completed
from holdfast.sdk.notebook import share_of

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[holdfast.Client]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_DATA", str(tmp_path_factory.mktemp("python") / "data"))
        patch.setenv("HOLDFAST_CPUS", "4")
        with holdfast.Client.from_env() as made:
            yield made


async def _everything() -> list[Any]:
    async with await holdfast.AsyncClient.from_env() as client:
        hello = await client.submit("echo hello", name="hello")
        found: list[Any] = [await hello.wait(60), await hello.logs(), (await hello.why()).state]
        found.append(await (await client.submit(pow, (2, 5))).result(60))
        jobs = await client.map(abs, [-1, -2])
        found.append(sorted([await job.result() async for job in as_completed(jobs, 60)]))
        found.append(await (await client.job(jobs[0].id)).result())
        slow = await client.submit(time.sleep, (60,))
        with pytest.raises(TimeoutError):
            await slow.wait(0.05)
        await slow.cancel("enough")
        with pytest.raises(holdfast.JobCancelled, match="enough"):
            await slow.result(60)
        return found


def test_everything_can_be_awaited(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path_factory.mktemp("async") / "data"))
    assert anyio.run(_everything) == ["Succeeded", "hello\n", "Succeeded", 32, [1, 2], 1]


def test_waiting_takes_no_thread_so_any_number_can_wait(client: holdfast.Client) -> None:
    async def wait_for_many() -> int:
        anyio.to_thread.current_default_thread_limiter().total_tokens = 2
        watching = holdfast.AsyncClient(client)
        gate = await watching.submit("sleep 0.5")
        ended: list[str] = []
        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(_note, gate, ended)
        return len(ended)

    assert anyio.run(wait_for_many) == 8


async def _note(job: holdfast.AsyncJob[Any], ended: list[str]) -> None:
    ended.append(await job.wait(60))


def test_a_job_shows_its_attempts_and_progress_in_a_notebook(client: holdfast.Client) -> None:
    def work() -> None:
        run = holdfast.current()
        run.progress(run.attempt, 4, "<loss> 0.3")
        if run.attempt == 1:
            run.fail("not yet", retryable=True)

    job = client.submit(work, name="shown", retries=1)
    job.wait(60)
    shown = job._repr_html_()
    assert re.sub(r"<[^>]*>", " ", shown).split() == [
        *("shown", job.id, "Succeeded", "Attempt", "State", "Ended", "with", "Progress"),
        *("1", "Failed", "kernel_nonzero_exit", "1/4", "&lt;loss&gt;", "0.3"),
        *("2", "Succeeded", "exit", "code", "0", "2/4", "&lt;loss&gt;", "0.3"),
    ]
    assert '<progress value="0.5000" max="1">' in shown


@pytest.mark.parametrize(
    ("progress", "share"),
    [("3/4", 0.75), ("37.5 / 100 epoch 2", 0.375), ("30 %", 0.3), ("9/3", 1.0), ("1/0", None), ("warming up", None)],
)
def test_a_share_is_read_where_progress_begins_with_one(progress: str, share: float | None) -> None:
    assert share_of(progress) == share
