"""Calls by another Python than the server's, and as another account: what is theirs then, and what others see of it."""

from __future__ import annotations

import io
import os
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cloudpickle
import pytest

from holdfast.app.entrance.pythons import RUNNER
from holdfast.client import Client
from holdfast.fluster import Entrypoint, RpcClusterClient, cluster_pb2, create_environment
from tests.e2e.fluster_stage import FlusterServer
from tests.e2e.people import machine
from tests.e2e.server import wait_until
from tests.e2e.test_fluster_calls import wheel
from tests.e2e.test_run_as import is_known
from tools.clients.pythons import python_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.people import Machine

pytestmark = pytest.mark.slow
SMALL = cluster_pb2.ResourceSpec(cpu=0, memory="256m")
SYSTEM = "/usr/bin/python3"


def environment(python: str, place: Path) -> Path:
    """Make an environment that has cloudpickle and nothing else; returns its Python."""
    subprocess.run([python, "-m", "venv", "--without-pip", place], check=True)
    [packages] = place.glob("lib/python*/site-packages")
    shutil.copytree(Path(cloudpickle.__file__).parent, packages / "cloudpickle")
    return place / "bin" / "python"


def packed(**entries: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in entries.items():
            archive.writestr(f"{name}.py", text)
    return data.getvalue()


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_calls_are_made_by_the_python_that_is_set_whichever_wrote_them(tmp_path: Path, version: str) -> None:
    python = python_for([version], os.environ)
    if python is None:
        pytest.skip(f"NO PYTHON {version}: put one on the path, or below pyenv's versions")
    server = FlusterServer(tmp_path, HOLDFAST_FLUSTER_PYTHON=str(environment(python, tmp_path / "venv")))
    server.open()
    try:
        with RpcClusterClient(str(server.address()["url"])) as client:
            name = client.submit(Entrypoint.from_callable(platform.python_version), "version", SMALL)
            assert client.wait(name, timeout=60.0).state == cluster_pb2.JOB_STATE_SUCCEEDED
            assert client.result(name).startswith(f"{version}.")
            [line] = client.fetch_logs(name)
            assert line.data.startswith("this call was pickled by Python ")
            assert f"is made by {version}" in line.data
    finally:
        server.clean_up()


@pytest.fixture
def people() -> Iterator[Machine]:
    """People whose server runs calls by the system's Python, which is everybody's, and has packages for them."""
    if not Path(SYSTEM).exists() or any(not above.stat().st_mode & stat.S_IXOTH for above in RUNNER.parents):
        pytest.skip(f"CLOSED: other accounts have no {SYSTEM}, or cannot get to {RUNNER}")
    folder = Path(tempfile.mkdtemp(prefix="holdfast-python-"))
    folder.chmod(0o755)
    python = environment(SYSTEM, folder / "venv")
    (folder / "bin").mkdir()
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert uv is not None
    shutil.copy(uv, folder / "bin" / "uv")
    wheel(folder / "wheels")
    try:
        yield from machine(
            HOLDFAST_DOORS="fluster",
            HOLDFAST_FLUSTER_LISTEN="127.0.0.1:0",
            HOLDFAST_FLUSTER_PYTHON=str(python),
            HOLDFAST_FLUSTER_INDEX=str(folder / "wheels"),
            PATH=f"{folder}/bin:{os.defpath}",
        )
    finally:
        shutil.rmtree(folder)


LOOKS = """
def job():
    import os, pathlib, answers, module
    made = {str(path): (path.stat().st_uid, oct(path.stat().st_mode & 0o777)) for path in pathlib.Path().rglob("*")}
    return os.getuid(), answers.GIVEN + module.MORE, made
"""


def test_as_another_account_a_call_its_workspace_packages_and_result_are_that_account_s(people: Machine) -> None:
    server, bob = people.server, people.bob
    with server.client() as root:
        root.put_settings({"access": {"user": ["user:door:ci"]}})
    made = server.json("token", "create", "of-ci", "--user", "door:ci", "--role", "user")
    url = str(server.address()["url"])
    with Client(url, made["token"]) as known:
        wait_until(lambda: is_known(known), "a token that is known")
    bundle = packed(module="MORE = 1\n")
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(LOOKS, space)  # noqa: S102 - of a test
    with RpcClusterClient(url, token=made["token"], bundle=bundle) as client:
        needs = create_environment(pip_packages=["answers==1.0"])
        name = client.submit(Entrypoint.from_callable(space["job"]), "mine", SMALL, environment=needs)
        status = client.wait(name, timeout=120.0)
        assert status.state == cluster_pb2.JOB_STATE_SUCCEEDED, status.error
        uid, given, files = client.result(name)
    assert (uid, given) == (bob.uid, 43)
    assert {"module.py", "entrypoint.pkl", ".packages/answers.py"} <= set(files)
    assert {owner for owner, _ in files.values()} == {bob.uid}
    assert files["module.py"][1] == "0o644"
    [run] = server.data.glob("runs/jobs/*/1.0")
    assert (run.stat().st_uid, stat.S_IMODE(run.stat().st_mode)) == (bob.uid, 0o700)
    assert (run / "result").stat().st_uid == bob.uid
    [kept] = [path for path in (server.data / "blobs").rglob("*") if path.is_file()]
    assert (kept.stat().st_uid, stat.S_IMODE(kept.stat().st_mode)) == (0, 0o600)
    reads = f"import os; print([os.access(path, os.R_OK) for path in ({str(run / 'result')!r}, {str(kept)!r})])"
    said = subprocess.run(
        ["setpriv", f"--reuid={people.ann.uid}", "--clear-groups", SYSTEM, "-c", reads],
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "[False, False]\n", "it is nobody else's"
