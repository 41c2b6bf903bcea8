"""How the commands of Armada's users find a server and get in: contexts, addresses, tokens, libraries."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import grpc
import pytest

from tests.e2e.armada_stage import DoorServer
from tests.e2e.armadactl_stage import JOBS, say, server, write
from tests.e2e.server import HOLDFAST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.e2e.armadactl_stage import Said

__all__ = ["say", "server"]


def test_a_context_of_the_configuration_file_says_where_to_go_and_as_whom(
    say: Callable[..., Said], tmp_path: Path, server: DoorServer
) -> None:
    token, door = server.address()["token"], server.address()["doors"]
    assert isinstance(door, dict)
    file = tmp_path / ".armadactl.yaml"
    file.write_text(
        textwrap.dedent(f"""
        currentContext: gone
        contexts:
          gone: {{armadaUrl: "localhost:1"}}
          wrong: {{armadaUrl: "{door["armada"]}", basicAuth: {{username: ann, password: nonsense}}}}
          here: {{armadaUrl: "{door["armada"]}", basicAuth: {{username: ann, password: "{token}"}}}}
        """)
    )
    code, _, err = say("get", "queues")
    assert (code, "rpc error: code = Unavailable" in err) == (1, True)
    assert "nothing answers at localhost:1; to open the door here: holdfast up --door armada" in err
    assert "code = Unauthenticated" in say("get", "queues", "--context", "wrong")[2]
    assert say("get", "queues", "-c", "here")[0] == 0
    assert say("get", "queues", "--armadaUrl", door["armada"])[0] == 0
    assert say("config", "get-contexts")[1] == "Available contexts: gone (current), here, wrong\n"
    assert say("config", "use-context", "ghost")[2] == (
        "Error: unable to use context ghost. Context not defined in config.\n"
    )
    assert say("config", "use-context", "here")[1] == "Current context set to here\n"
    assert say("config", "current-context")[1] == "Current context: here\n"
    assert say("get", "queues")[0] == 0
    assert say("get", "queues", "--config", str(tmp_path / "ghost"))[2] == (
        f"Error: could not find config file {tmp_path / 'ghost'}\n"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("contexts: [1]\n", "contexts must be a mapping"),
        ("a: [", "error reading config file"),
        ("- 1\n", "error reading config file"),
        ("currentContext: x\ncontexts: {x: 1}\n", "context x not found under contexts within the Armada config"),
        ("currentContext: 5\n", "context 5 not found"),
        ("armadaUrl: 5\nbasicAuth: ann\n", "rpc error: code = Unavailable"),
        ("armadaUrl: '::::'\n", "rpc error: code = Unavailable"),
    ],
)
def test_a_configuration_file_that_is_none_is_told(
    say: Callable[..., Said], tmp_path: Path, text: str, told: str
) -> None:
    (tmp_path / ".armadactl.yaml").write_text(text)
    code, out, err = say("get", "queues")
    assert (code, out, told in err) == (1, "", True), err


@pytest.mark.slow  # it looks for the server again every five seconds
def test_a_watch_goes_on_over_a_server_that_is_killed_and_comes_back_elsewhere(tmp_path: Path) -> None:
    server = DoorServer(tmp_path)
    environ = {key: value for key, value in server.environ.items() if key != "HOLDFAST_ARMADA_LISTEN"}
    try:
        server.start().close()
        file = write(tmp_path, "jobs.yaml", JOBS.format(program="sleep 3").replace("retry-policy: infra", "x: y"))
        for words in (("create", "queue", "ml"), ("submit", file)):
            subprocess.run([*HOLDFAST, "armada", *words], env=environ, check=True, capture_output=True)
        watch = [*HOLDFAST, "armada", "watch", "ml", "set 1", "--exit-if-inactive"]
        with subprocess.Popen(watch, env=environ, stdout=subprocess.PIPE, text=True) as watching:
            assert watching.stdout is not None
            before = [watching.stdout.readline() for _ in range(3)]
            server.end()
            server.start().close()
            rest = watching.stdout.read()
        assert watching.returncode == 0
        assert "JobSucceededEvent" in rest
        assert "JobSubmittedEvent" in before[1]
        assert "JobSubmittedEvent" not in rest, "it goes on where it was"
    finally:
        server.clean_up()


@contextmanager
def a_stranger() -> Iterator[tuple[str, list[str]]]:
    """Another server that is not ours, and what it was shown by those who call it."""
    shown: list[str] = []

    class Listening(grpc.GenericRpcHandler):
        def service(self, details: grpc.HandlerCallDetails) -> None:
            shown.append(str(dict(details.invocation_metadata).get("authorization")))

    strange = grpc.server(ThreadPoolExecutor(1), handlers=[Listening()])
    port = strange.add_insecure_port("127.0.0.1:0")
    strange.start()
    yield f"127.0.0.1:{port}", shown
    strange.stop(None).wait()


def test_the_script_and_the_command_are_the_same_program(server: DoorServer) -> None:
    script = (sys.executable, "-c", "from holdfast.cli.armada.main import main; main()")
    said = []
    for program in ((*HOLDFAST, "armada"), script):
        words = [*program, "get", "queues"]
        environ = {key: value for key, value in server.environ.items() if key != "HOLDFAST_ARMADA_LISTEN"}
        said.append(subprocess.run(words, env=environ, capture_output=True, text=True, check=True).stdout)
    assert said[0] == said[1]
    assert "name: default" in said[0]


def test_without_the_libraries_a_command_says_how_to_install_them(tmp_path: Path) -> None:
    bare = (
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'grpc': raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Without())\n"
        "from holdfast.cli.main import main\n"
        "main()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", bare, "armada", "get", "queues"],
        env={**os.environ, "HOLDFAST_DATA": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert "pip install 'holdfast-scheduler[armada]'" in ended.stderr


def test_the_token_of_the_server_here_is_shown_to_that_server_alone(
    say: Callable[..., Said], server: DoorServer
) -> None:
    with a_stranger() as (address, shown):
        code, _, err = say("--armadaUrl", address, "get", "queues")
        assert (code, shown) == (1, ["None"])
        assert "rpc error: code = Unimplemented" in err
    doors = server.address()["doors"]
    assert isinstance(doors, dict)
    port = str(doors["armada"]).rpartition(":")[2]
    assert say("--armadaUrl", f"localhost:{port}", "get", "queues")[0] == 0
