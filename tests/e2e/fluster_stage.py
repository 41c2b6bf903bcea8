"""A server with Fluster's door open, asked by plain HTTP as Connect has it; no client of Fluster's is needed."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from holdfast.api.connect._generated.error_details import BadRequest
from holdfast.api.fluster._generated import cluster
from holdfast.api.fluster.calls import CALLS, CONTROLLER
from tests.e2e.server import Server, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from google.protobuf.message import Message

__all__ = ["cluster"]
FINISHED = frozenset(
    {
        cluster.JOB_STATE_SUCCEEDED,
        cluster.JOB_STATE_FAILED,
        cluster.JOB_STATE_KILLED,
        cluster.JOB_STATE_WORKER_FAILED,
        cluster.JOB_STATE_UNSCHEDULABLE,
    }
)


class FlusterServer(Server):
    """A server with the door open, by which everybody on this machine is ``ann``."""

    def __init__(self, folder: Path, **environ: str) -> None:
        """Remember the directory."""
        listening = {"HOLDFAST_FLUSTER_LISTEN": "127.0.0.1:0"}
        opened = {"HOLDFAST_DOORS": "fluster", "HOLDFAST_DOOR_ANONYMOUS": "ann", **listening}
        super().__init__(folder, **{**opened, **environ})

    def open(self, role: str = "admin") -> Connected:
        """Start it, and give ``ann`` a role."""
        with self.start() as client:
            client.put_settings({"access": {role: ["user:ann"]}})
        return Connected(self)


class RefusedError(Exception):
    """A call was refused."""

    def __init__(self, answer: httpx.Response) -> None:
        """Read how."""
        told = answer.json()
        super().__init__(told)
        self.http, self.code, self.message = answer.status_code, str(told["code"]), str(told["message"])
        self.paths: list[str] = []
        for one in told.get("details", ()):
            assert one["type"] == "google.rpc.BadRequest"
            request = BadRequest.FromString(base64.b64decode(one["value"] + "=="))
            self.paths += [violation.field for violation in request.field_violations]


class Connected:
    """Calls a door by Connect."""

    def __init__(self, server: Server, token: str | None = None) -> None:
        """Remember where it is."""
        self.url = str(server.address()["url"])
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}

    def post(self, path: str, body: bytes, kind: str = "application/proto", **headers: str) -> httpx.Response:
        """Post a body as it is."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return httpx.post(
            f"{self.url}{path}", content=body, headers={"content-type": kind, **self._headers, **named}, timeout=60
        )

    def __call__(self, name: str, sent: Message | None = None, service: str = CONTROLLER) -> Any:  # noqa: ANN401 - its own type
        """Call a method, and return what is answered.

        Raises:
            RefusedError: It is refused.
        """
        method = CALLS.methods[f"/{service}/{name}"]
        answer = self.post(method.path, (sent or method.request()).SerializeToString())
        if answer.status_code != 200:
            raise RefusedError(answer)
        return method.response.FromString(answer.content)

    def status(self, name: str) -> cluster.JobStatus:
        """Say how a job does."""
        sent = cluster.Controller.GetJobStatusRequest(job_id=name)
        found: cluster.JobStatus = self("GetJobStatus", sent).job
        return found

    def ended(self, name: str) -> cluster.JobStatus:
        """Wait until a job has ended, and say how it did."""
        wait_until(lambda: self.status(name).state in FINISHED, f"the end of {name!r}")
        return self.status(name)

    def refused(self, name: str, sent: Message | None = None, service: str = CONTROLLER) -> RefusedError:
        """Call a method that is refused, and return how."""
        with pytest.raises(RefusedError) as raised:
            self(name, sent, service)
        return raised.value


def launch(
    name: str, script: str, *, retry: cluster.RetryConfig | None = None, cpu: int = 1
) -> cluster.Controller.LaunchJobRequest:
    """Return a launch of a script."""
    sent = cluster.Controller.LaunchJobRequest(name=name, serialized_entrypoint=script.encode(), retry=retry)
    sent.resources.cpu, sent.resources.memory = cpu, "16m"
    return sent


@pytest.fixture
def fluster(tmp_path: Path) -> Iterator[FlusterServer]:
    """A server that has yet to be started."""
    server = FlusterServer(tmp_path)
    yield server
    server.clean_up()
