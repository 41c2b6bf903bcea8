"""What a person's shell completes: asked by a real bash, and in the words of zsh and fish."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.server import HOLDFAST, Server, wait_until
from tests.e2e.test_cli_shell import Shell

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LOAD = 'eval "$(holdfast --show-completion bash)"'
TAB = """
COMP_WORDS=({words}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_holdfast_completion holdfast
echo "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("completion"))
    try:
        with server.start() as client:
            for name in ("train", "trace", "eval"):
                client.submit({"name": name, "command": ["true"]})
            client.submit_array({"name": "tries", "command": ["true"], "array": {"indices": "0-1"}})
            policy = {"apiVersion": "holdfast.dev/v1", "kind": "RetryPolicy", "metadata": {"name": "infra"}}
            client.policies.create({**policy, "spec": {"retryLimit": 2}})
            yield server
    finally:
        server.clean_up()


def tab(environ: Mapping[str, str], *lines: str) -> list[str]:
    """Press Tab in bash after each of some lines."""
    program = f"{Path(sys.executable).parent}:{environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", LOAD + "".join(TAB.format(words=line) for line in lines)],
        env={**environ, "PATH": program, "SHELL": "/bin/bash"},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


COMPLETED = {
    "holdfast why tra": "trace train",
    "holdfast get no": "notifiers nodes",
    "holdfast get retrypolicies inf": "infra",
    "holdfast cancel eval tr": "trace train tries",
}


def test_bash_completes_names_of_what_there_is(server: Server) -> None:
    # A busy machine may need more than the second that a Tab waits at most; then nothing is shown, as it should be.
    found = list(COMPLETED.values())
    wait_until(lambda: tab(server.environ, *COMPLETED) == found, f"{found}", within_s=40)


@pytest.mark.parametrize(
    "asked",
    [
        {"_HOLDFAST_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "holdfast why trac"},
        {
            "_HOLDFAST_COMPLETE": "complete_fish",
            "_TYPER_COMPLETE_ARGS": "holdfast why trac",
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        },
    ],
)
def test_other_shells_are_answered_in_their_words(server: Server, asked: dict[str, str]) -> None:
    def answer() -> str:
        line = [*HOLDFAST]
        return subprocess.run(line, env={**server.environ, **asked}, capture_output=True, text=True, check=False).stdout

    wait_until(lambda: "trace" in answer(), "the name", within_s=20)


def test_without_a_server_that_answers_nothing_is_said_and_the_shell_does_not_wait(tmp_path: Path) -> None:
    environ = {**Server(tmp_path).environ, "HOLDFAST_URL": "http://127.0.0.1:9"}
    began = time.monotonic()
    assert tab(environ, "holdfast why tra") == [""]
    assert time.monotonic() - began < 15


def test_a_misspelt_name_and_command_are_guessed_and_help_and_version_are_everywhere(server: Server) -> None:
    shell = Shell(server.data.parent, {})
    assert "did you mean train?" in shell.run("why", "trian").err
    assert "did you mean submit?" in shell.run("sumbit").err
    assert shell.run("--version").out.startswith("holdfast ")
    assert (shell.run("get", "-h").out.strip() != "", shell.run("-h").code) == (True, 0)
