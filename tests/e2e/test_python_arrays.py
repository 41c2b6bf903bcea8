"""``Client.submit_array`` and what comes of it, with a real server and real programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

import holdfast
from holdfast.errors import Conflict, InvalidManifest, InvalidRequest, NotFound
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.server import Server

ADDS = 'echo "$HOLDFAST_PARAM_LR" >> "$HOLDFAST_CHECKPOINT_DIR/seen"; cat "$HOLDFAST_CHECKPOINT_DIR/seen"; '


@pytest.fixture
def client(server: Server) -> Iterator[holdfast.Client]:
    with server.start() as api, holdfast.Client(api=api, directory=server.data / "calls") as made:
        yield made


def test_an_array_is_submitted_waited_for_looked_at_and_what_failed_of_it_is_run_again(
    client: holdfast.Client, tmp_path: Path
) -> None:
    script = f'{ADDS} test -e {tmp_path}/mended || test "{{seed}}" != 2'
    array = client.submit_array(script, name="sweep", matrix={"lr": (0.1, 0.01), "seed": range(1, 3)}, max_running=3)
    assert repr(array) == f"<Array sweep {array.id}>"
    assert array.wait(60) == array.state == "Failed"
    view = array.view()
    assert (view.total, view.succeeded, view.failed, view.max_running) == (4, 2, 2, 3)
    (group,) = array.why().groups
    assert (group.indexes, group.exit_code) == ("1,3", 1)
    assert array.logs(3) == "0.01\n"
    assert array.task(0).state == "Succeeded"
    (tmp_path / "mended").touch()
    again = client.array("sweep").rerun(change={"env": {"MORE": "1"}}, name="again")
    assert (again.name, again.wait(60)) == ("again", "Succeeded")
    assert again.logs(3) == "0.01\n0.01\n"
    with pytest.raises(Conflict, match="rerun already"):
        array.rerun()
    assert array.rerun(indices=[0]).wait(60) == "Succeeded"


def test_an_array_is_held_released_and_cancelled(client: holdfast.Client, tmp_path: Path) -> None:
    wait = f"while ! test -e {tmp_path}/go; do sleep 0.02; done"
    array = client.submit_array(wait, indices=range(6), max_running=2)
    wait_until(lambda: array.view().running == 2, "two of its tasks")
    with pytest.raises(TimeoutError, match="6 of 6 tasks"):
        array.wait(0.2)
    array.hold("lunch")
    wait_until(lambda: array.state == "Held", "its hold")
    array.release()
    wait_until(lambda: array.state == "Running", "its release")
    array.cancel("not needed")
    assert array.wait(60) == "Cancelled"
    with pytest.raises(NotFound):
        client.array("nobody")


def told() -> str | None:
    import os  # noqa: PLC0415 - it is called in another process

    return os.environ.get("TOKEN_B")


def test_a_secret_reaches_programs_and_is_stored_with_none_of_them(
    client: holdfast.Client, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "s3cret-of-the-python-client"  # noqa: S105 - nothing is opened by it
    monkeypatch.setenv("API_KEY", secret)
    script = 'test "${#API_KEY}" = 27 && test "$OTHER" = plain'
    assert client.submit(script, env={"OTHER": "plain"}, secret_env=["API_KEY"]).wait(60) == "Succeeded"
    assert client.submit(told, secret_env={"TOKEN_B": secret}).result(60) == secret
    array = client.submit_array('test "${#API_KEY}" = 27', lines=["a", "b"], secret_env=["API_KEY"])
    assert array.wait(60) == "Succeeded"
    stored = [path for path in server.data.rglob("holdfast.db*") if path.is_file()]
    assert stored
    assert not [path for path in stored if secret.encode() in path.read_bytes()]


def test_what_cannot_be_sent_or_is_no_array_is_refused(client: holdfast.Client) -> None:
    with pytest.raises(InvalidRequest, match="UNSET_HERE"):
        client.submit("true", secret_env=["UNSET_HERE"])
    with pytest.raises(InvalidRequest, match="secret_env"):
        holdfast.Executor(client, secret_env=["PATH"])
    with pytest.raises(InvalidManifest, match="array"):
        client.submit_array("true")


def test_arrays_on_an_event_loop(client: holdfast.Client) -> None:
    async def story() -> None:
        asking = holdfast.AsyncClient(client)
        array = await asking.submit_array('echo "{line}"; test "{line}" != b', lines=["a", "b"])
        assert await array.wait(60) == await array.state() == "Failed"
        assert (await array.why()).groups[0].indexes == "1"
        assert await (await asking.array(array.id)).logs(0) == "a\n"
        assert (await (await array.task(1)).view()).state == "Failed"
        assert await (await array.rerun(failed=True)).wait(60) == "Failed"

    anyio.run(story)
