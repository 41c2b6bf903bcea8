"""``holdfast.BackendAi`` and ``holdfast.AsyncBackendAi`` on a server with Backend.AI's door."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio.to_thread import run_sync

import holdfast
from holdfast.errors import AlreadyExists, InvalidRequest, InvalidSetting, NotFound, Unauthenticated, Unavailable
from tests.e2e.backendai_stage import BackendAiServer, door
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from holdfast.client.backendai.views import BackendAiSession

__all__ = ["door"]
POLICY = {"max_retries": 2, "retry_delay": 0.01, "jitter": "none"}
NAMES = ("BACKEND_ENDPOINT", "BACKEND_ACCESS_KEY", "BACKEND_SECRET_KEY")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "backendai.md"
NOBODY = "00000000-0000-5000-8000-000000000000"


@pytest.fixture
def reached(door: BackendAiServer, monkeypatch: pytest.MonkeyPatch) -> BackendAiServer:
    """A server whose data directory is the one of this process."""
    monkeypatch.setenv("HOLDFAST_DATA", str(door.data))
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    return door


def ended(session: BackendAiSession) -> bool:
    """Whether a session has ended and nothing follows it."""
    return session.lifecycle.status == "TERMINATED" and session.retry_state.state != "pending"


@pytest.mark.usefixtures("reached")
def test_a_program_enqueues_a_session_and_follows_its_retries() -> None:
    with holdfast.BackendAi() as backend:
        first = backend.enqueue("echo $WORD; exit 3", name="again", environ={"WORD": "hi"}, retry_policy=POLICY)
        wait_until(lambda: len(backend.get(first.id).retry_chain) == 3, "three sessions")
        last = backend.get(first.id).retry_chain[-1]
        wait_until(lambda: ended(backend.get(last)), "the last one's end")
        assert [(attempt.attempt, attempt.exit_code) for attempt in backend.attempts(last)] == [(1, 3), (2, 3), (3, 3)]
        assert backend.logs(last) == "hi\n"
        assert {step.to_status for step in backend.history(last)} >= {"RUNNING", "TERMINATED"}
        assert {step.session_id for step in backend.history(last, kernels=True)} == {last}
        assert [session.id for session in backend.search(["TERMINATED"], name="aga", project="default", limit=1)] == [
            last
        ]
        assert backend.search(["RUNNING"]) == []
        held = backend.enqueue(None, name="place", cluster_size=1, cpu=0.1, memory=1 << 26, tag="t")
        assert (held.metadata.session_type, held.metadata.tag) == ("interactive", "t")
        with pytest.raises(AlreadyExists):
            backend.enqueue("true", name="place")
        done = backend.terminate([held.id, NOBODY])
        assert ([*done.cancelled, *done.terminating], [*map(str, done.skipped)]) == ([held.id], [NOBODY])
        with pytest.raises(NotFound):
            backend.get(NOBODY)
        with pytest.raises(InvalidRequest) as raised:
            backend.enqueue("true", retry_policy={"max_retries": 1001})
        assert [problem.path for problem in raised.value.problems] == ["retry_policy.max_retries"]


async def _followed() -> tuple[str, int, str]:
    async with holdfast.AsyncBackendAi() as backend:
        session = await backend.enqueue(["sh", "-c", "echo $0", "a b"])
        await run_sync(partial(wait_until, lambda: ended(backend.client.get(session.id)), "the session's end"))
        attempts = await backend.attempts(session.id)
        result = (await backend.get(session.id)).lifecycle.result
        return result, len(attempts), await backend.logs(session.id)


@pytest.mark.usefixtures("reached")
def test_a_session_can_be_awaited() -> None:
    assert anyio.run(_followed) == ("success", 1, "a b\n")


def test_the_door_is_found_by_arguments_variables_or_what_the_server_left(
    reached: BackendAiServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    endpoint, access_key, secret_key = (reached.variables()[name] for name in NAMES)
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path / "other"))
    with pytest.raises(Unavailable, match=r"backendai\.env"):
        holdfast.BackendAi()
    with holdfast.BackendAi(endpoint, access_key, secret_key) as backend:
        assert backend.search() == []
    for name in NAMES:
        monkeypatch.setenv(name, reached.variables()[name])
    with holdfast.BackendAi() as backend:
        assert backend.search() == []
    with holdfast.BackendAi(secret_key="x" * 40) as backend, pytest.raises(Unauthenticated):
        backend.search()
    monkeypatch.delenv("BACKEND_SECRET_KEY")
    with pytest.raises(InvalidSetting) as raised:
        holdfast.BackendAi()
    assert [problem.path for problem in raised.value.problems] == ["BACKEND_SECRET_KEY"]
    with pytest.raises(InvalidSetting, match="not an address"):
        holdfast.BackendAi("here", access_key, secret_key)
    reached.end()
    with holdfast.BackendAi(endpoint, access_key, secret_key) as backend, pytest.raises(Unavailable):
        backend.get(NOBODY)


@pytest.mark.usefixtures("reached")
def test_the_program_of_the_page_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    [program] = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    exec(program, {})  # noqa: S102 - the page's own
    assert capsys.readouterr().out.splitlines() == re.findall(r"print\(.*\)  # (.*)$", program, re.MULTILINE)
