"""A server with Armada's door open, and ``armadactl`` in the test's own process, which finds it as a user's does."""

from __future__ import annotations

import io
import textwrap
from typing import TYPE_CHECKING

import pytest

from holdfast.cli.armada.main import run
from holdfast.cli.context import Cli
from tests.e2e.armada_stage import DoorServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Said = tuple[int, str, str]

JOBS = """
    queue: ml
    jobSetId: set 1
    jobs:
      - priority: 0
        namespace: default
        annotations:
          armadaproject.io/retry-policy: infra
        podSpec:
          terminationGracePeriodSeconds: 0
          restartPolicy: Never
          containers:
            - name: main
              image: alpine:latest
              command: [sh, -c]
              args: ["{program}"]
              resources:
                limits: {{memory: 64Mi, cpu: 150m}}
                requests: {{memory: 64Mi, cpu: 150m}}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DoorServer]:
    """One server for the tests of a file."""
    started = DoorServer(tmp_path_factory.mktemp("server"))
    started.start().close()
    yield started
    started.clean_up()


@pytest.fixture
def say(server: DoorServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Said]:
    """Carries out a command line; returns its exit code and what it wrote."""
    for name in ("HOLDFAST_URL", "HOLDFAST_TOKEN", "HOLDFAST_CONTEXT", "HOLDFAST_ARMADA_LISTEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOLDFAST_DATA", str(server.data))
    monkeypatch.setenv("HOME", str(tmp_path))

    def said(*words: str) -> Said:
        out, err = io.StringIO(), io.StringIO()
        code = run(words, Cli(stdout=out, stderr=err), "armadactl")
        return code, out.getvalue(), err.getvalue()

    return said


def write(folder: Path, name: str, text: str) -> str:
    """Write a file, and return its path."""
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return str(path)
