"""A server with the door for Iris' clients open, and their own client, unmodified, in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.fluster_stage import FlusterServer
from tools.clients import python_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PRELUDE = '''
import json, sys, time
from google.protobuf import json_format
from connectrpc.errors import ConnectError
from finelog.errors import StatsError
from finelog.rpc import logging_pb2
from iris.cluster.client.remote_client import RemoteClusterClient
from iris.cluster.types import Entrypoint, EnvironmentSpec, JobName, TaskAttempt
from iris.rpc import job_pb2, controller_pb2
from iris.rpc.controller_connect import ControllerServiceClientSync, EndpointServiceClientSync
from iris.time_proto import duration_to_proto
from rigging.timing import Duration

U = sys.argv[1]
C = controller_pb2.Controller
client = RemoteClusterClient(U, timeout_ms=20000)
raw = ControllerServiceClientSync(address=U, timeout_ms=20000)
endpoints = EndpointServiceClientSync(address=U, timeout_ms=20000)

def needs(cpu=100, memory=64 << 20, **more):
    return job_pb2.ResourceSpecProto(cpu_millicores=cpu, memory_bytes=memory, disk_bytes=1 << 20, **more)

def launch(name, *command, needs=needs(), environment=None, **more):
    environment = (environment or EnvironmentSpec(setup_scripts=[])).to_proto()
    return client.submit_job(
        JobName.from_wire(name), Entrypoint.from_command(*command), needs, environment=environment, **more)

def request(name, **more):
    asked = C.LaunchJobRequest(**{"name": name, "resources": needs(), "replicas": 1, **more})
    if not asked.entrypoint.run_command.argv:
        asked.entrypoint.run_command.argv[:] = ["sleep", "100"]
    return asked

def wait(name, timeout=60):
    return client.wait_for_job(JobName.from_wire(name), timeout=timeout, poll_interval=0.2)

def state(name):
    found = client.get_job_states([JobName.from_wire(name)])
    return job_pb2.JobState.Name(found[name])[10:]

def until(name, *wanted, tasks=()):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = state(name)
        there = [job_pb2.TaskState.Name(one.state)[11:] for one in client.list_tasks(JobName.from_wire(name))]
        if (not wanted or found in wanted) and (not tasks or set(there) <= set(tasks)):
            return found
        time.sleep(0.05)
    raise SystemExit(f"{name} is never {wanted} {tasks}: {found} {there}")

def told(name):
    """What is said of a job and its tasks, without times and places."""
    one = client.get_job_status(JobName.from_wire(name))
    tasks = [
        [job_pb2.TaskState.Name(task.state)[11:], task.exit_code, task.current_attempt_id,
         [[each.attempt_id, job_pb2.TaskState.Name(each.state)[11:], each.exit_code] for each in
          client.get_task_status(JobName.from_wire(task.task_id)).attempts]]
        for task in client.list_tasks(JobName.from_wire(name))]
    return [job_pb2.JobState.Name(one.state)[10:], one.failure_count, one.preemption_count, tasks]

def lines(source, scope=logging_pb2.MATCH_SCOPE_PREFIX, **more):
    return [[one.key, one.data] for one in client.fetch_logs(source, match_scope=scope, **more).entries]

def refused(call, *given, **more):
    try:
        return ["OK", str(call(*given, **more))]
    except ConnectError as error:
        return [error.code.name, error.message]
    except StatsError as error:  # what the library for logs makes of what is not to be tried again
        return [type(error).__name__, str(error)]

def done(value):
    print(json.dumps(value))
'''


class Iris:
    """Iris' client and command, of the version that is pinned."""

    def __init__(self, url: str, home: Path) -> None:
        """Remember where the door is, and where the client may leave something."""
        self._python = python_of("iris")
        self._url = url
        self._environ = {**os.environ, "HOME": str(home), "TQDM_DISABLE": "1"}

    def __call__(self, script: str, *, within_s: float = 180, **given: object) -> Any:  # noqa: ANN401 - what is done
        """Run a script, which ends by saying what it has ``done``; ``given`` are names it has."""
        running = self.begin(script, **given)
        said, errors = running.communicate(timeout=within_s)
        assert running.returncode == 0, errors
        return self.told(said)

    def told(self, said: str) -> Any:  # noqa: ANN401 - what a script says is done
        """Read what a script said that is over."""
        return json.loads(said.splitlines()[-1])

    def begin(self, script: str, **given: object) -> subprocess.Popen[str]:
        """Start a script, and do not wait for it."""
        names = "".join(f"{name} = {value!r}\n" for name, value in given.items())
        text = PRELUDE + names + textwrap.dedent(script)
        return subprocess.Popen(
            [self._python, "-c", text, self._url],
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def command(self, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run the command in a directory, whose files it takes along."""
        program = [str(self._python), str(self._python.with_name("iris")), "--controller-url", self._url, *words]
        return subprocess.run(
            program, env=self._environ, cwd=cwd, capture_output=True, text=True, check=False, timeout=180
        )


class IrisServer(FlusterServer):
    """A server with the door open, by which everybody on this machine is ``ann``."""

    def iris(self, role: str = "admin") -> Iris:
        """Start it, and give ``ann`` a role."""
        with self.start() as client:
            client.put_settings({"access": {role: ["user:ann"]}})
        return self.stock

    @property
    def stock(self) -> Iris:
        """The client, which comes in by the door that is open now."""
        return Iris(str(self.address()["url"]), self.folder)


@pytest.fixture
def door(tmp_path: Path) -> Iterator[IrisServer]:
    """A server that is not started yet."""
    if not python_of("iris").exists():
        pytest.skip("Iris' client is not installed; to judge the door by it: ./dev clients")
    server = IrisServer(tmp_path)
    yield server
    server.clean_up()
