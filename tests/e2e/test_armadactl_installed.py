"""``armadactl`` as people get it: from the wheel with its extra alone, against a server of the same wheel."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from holdfast import __version__
from tests.e2e.armadactl_stage import JOBS, write
from tests.e2e.server import wait_until
from tests.e2e.test_installation import call, wheel
from tests.e2e.test_network import TOKEN, issue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["wheel"]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def home(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment in which the wheel is installed with the extra, and nothing else."""
    home = tmp_path_factory.mktemp("home")
    call(sys.executable, "-m", "venv", str(home))
    call(str(home / "bin" / "python"), "-m", "pip", "install", "-q", f"{wheel}[armada]")
    return home


@contextmanager
def up(home: Path, folder: Path, **environ: str) -> Iterator[tuple[Callable[..., str], str]]:
    """Run a server with the door open; yields what carries out a command line, and where the door is."""
    data = folder / "data"
    known = {"HOLDFAST_DATA": str(data), "HOME": str(folder), "HOLDFAST_ARMADA_LISTEN": "127.0.0.1:0", **environ}
    words = [str(home / "bin" / "holdfast"), "up", "--port", "0", "--door", "armada"]
    with subprocess.Popen(words, env=known, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_until((data / "server.json").exists, "the server")
            address = json.loads((data / "server.json").read_text())["doors"]["armada"]
            yield lambda *line: call(str(home / "bin" / "armadactl"), *line, **known), address
        finally:
            server.terminate()


def test_what_a_user_of_armada_does_works_from_the_wheel(home: Path, tmp_path: Path) -> None:
    with up(home, tmp_path) as (say, _):
        assert say("--version") == f"armadactl of holdfast {__version__}\n"
        assert say("create", "queue", "ml") == "Created queue ml\n"
        jobs = JOBS.replace("armadaproject.io/retry-policy: infra", "a: b")
        submitted = say("submit", write(tmp_path, "jobs.yaml", jobs.format(program="true")))
        job = submitted.removeprefix("Submitted job with id ").partition(" ")[0]
        watched = say("watch", "ml", "set 1", "--exit-if-inactive")
        assert (job in watched, "JobSucceededEvent" in watched) == (True, True), watched
        assert "name: ml\n" in say("get", "queue", "ml")
        other = jobs.replace("set 1", "set 2").format(program="sleep 1000")
        submitted = say("submit", write(tmp_path, "jobs.yaml", other))
        job = submitted.removeprefix("Submitted job with id ").partition(" ")[0]
        assert f"Requested cancellation for jobs {job}\n" in say("cancel", "job", "ml", "set 2", job)
        assert "JobCancelledEvent" in say("watch", "ml", "set 2", "--exit-if-inactive")


def test_it_comes_in_by_tls_with_a_token_from_here_and_as_from_elsewhere(home: Path, tmp_path: Path) -> None:
    cert, key = issue(tmp_path)
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    shown = {
        "HOLDFAST_TLS_CERT": str(cert),
        "HOLDFAST_TLS_KEY": str(key),
        "HOLDFAST_TOKEN_FILE": str(tmp_path / "token"),
    }
    with up(home, tmp_path, HOLDFAST_ARMADA_LISTEN="0.0.0.0:0", **shown) as (say, address):
        assert say("create", "queue", "ml") == "Created queue ml\n"
        port = address.rpartition(":")[2]
        elsewhere = {"HOLDFAST_DATA": str(tmp_path / "none"), "HOLDFAST_TLS_CERT": str(cert), "HOME": str(tmp_path)}
        config = "armadaUrl: ipv4:127.0.0.1:{}\nbasicAuth: {{username: ann, password: {}}}\n"
        write(tmp_path, ".armadactl.yaml", config.format(port, TOKEN))
        far = str(home / "bin" / "armadactl")
        assert "name: ml\n" in call(far, "get", "queue", "ml", **elsewhere)
        write(tmp_path, ".armadactl.yaml", config.format(port, "nonsense"))
        with pytest.raises(AssertionError, match="Unauthenticated"):
            call(far, "get", "queue", "ml", **elsewhere)
