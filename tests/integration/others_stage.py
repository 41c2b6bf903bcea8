"""A server on which one person has work of every kind, with a mark in whatever they could write, and another looks."""

from __future__ import annotations

import itertools
import re
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from holdfast.api.http.serving.app import create_app
from holdfast.api.http.serving.gates import PRINCIPAL, Entrance
from holdfast.domain.access import Principal
from holdfast.domain.devices import Device
from holdfast.domain.failure import ContainerResult, RunOutcome
from holdfast.domain.job import Resources
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.engine import NodeInfo
from holdfast.ports.logs import LogPart
from holdfast.service.access.book import FRESH_S
from holdfast.storage.sql import open_store
from tests.asgi import asking
from tests.unit.jobset_lab import FOREVER, SetLab, group, manifest
from tests.untimed import Untimed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx
    from fastapi import FastAPI
    from starlette.types import ASGIApp, Receive, Scope, Send

    from holdfast.ports.engine import RunOrder

LAB, BEN = Principal("lab", uid=1000), Principal("ben", uid=1002)
HER = Principal("zqann", uid=1001)
MARK = re.compile(r"(?<![A-Za-z0-9_])zq[a-z]+")  # not within a word: a new token is any letters
JOB: dict[str, Any] = {
    "name": "zqjob",
    "command": ["zqcommand"],
    "env": {"ZQ": "zqenv"},
    "labels": {"zqkey": "zqvalue"},
    "annotations": {"zqnote": "zqnoted"},
    "group": "zqgroup",
    "workingDir": "/zqdir",
}
OWN: dict[str, Any] = {"command": ["true"], "group": "own/one"}
"""What the other user submits."""
KUBE: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "zqkube", "labels": {"zqkey": "zqvalue"}},
    "spec": {
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "main", "image": "zqimage", "command": ["zqcommand"]}],
            }
        }
    },
}
_PRINTED = ContainerResult(3, reason="Error", message="zqlog", log_tail=("zqlog",))
FAILED = RunOutcome(containers=(_PRINTED,), log_tail=("zqlog",), error_line="zqlog", log="zqlog", progress="zqlog")


class Known:
    """Stands before the server and says who calls, as a gate does."""

    def __init__(self, app: ASGIApp, who: Principal) -> None:
        self._app, self._who = app, who

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})[PRINCIPAL] = self._who
        await self._app(scope, receive, send)


class Ids:
    """Ids that tell whose they are."""

    def __init__(self, begin: str) -> None:
        self._begin, self._numbers = begin, itertools.count(1)

    def new(self) -> str:
        return f"{self._begin}{next(self._numbers):06d}"


class Logs(Untimed):
    """Every run printed the same."""

    def read(self, job_id: str, attempt: int, rank: int, *, offset: int, limit: int, stderr: bool = False) -> LogPart:
        del job_id, attempt, rank, offset, limit, stderr
        return LogPart(b"zqlog\n", 6, 0)


def does(order: RunOrder) -> SimulatedRun:
    """Say what the programs do: some fail, and all others run on."""
    if "fails" in order.job_name:
        return SimulatedRun(duration_s=1.0, outcome=FAILED)
    hers = order.job_name.startswith("zq")
    return SimulatedRun(duration_s=FOREVER, progress="zqlog" if hers else "")


class Stage:
    """Plain HTTP requests of the lab's owner, of her whose work it is, and of another user."""

    def __init__(self, path: Path, stack: ExitStack, sight: str, looker: Principal) -> None:
        self.sight, self.ben_name, lab = sight, looker.name, SetLab()
        self.lab = lab
        lab.store = open_store(path / "holdfast.db")  # type: ignore[assignment] # the real one
        stack.callback(lab.store.close)
        lab.restart_controller()
        lab.plan = does
        lab.use(NodeInfo("n0", Resources(64_000, 256 << 30, 1), {}, (Device("gpu-0", 0, "T4", 16 << 30, "nvidia"),)))
        self.owner, self.her, self.ben = (
            stack.enter_context(asking(self._app(who, begin)))
            for who, begin in ((LAB, "lab"), (HER, "zqid"), (looker, "own"))
        )
        self.done(self.owner.put("/api/v1/settings", json={"othersSee": sight}))
        lab.pass_s(FRESH_S)
        self._fill()

    def _app(self, who: Principal, begin: str) -> FastAPI:
        lab = self.lab
        app = create_app(store=lab.store, clock=lab.clock, ids=Ids(begin), logs=Logs(), entrance=Entrance(LAB))
        app.add_middleware(Known, who=who)
        return app

    def described(self) -> dict[str, Any]:
        """Return the description of every operation."""
        return self._app(BEN, "own").openapi()

    @staticmethod
    def done(answer: httpx.Response) -> Any:  # noqa: ANN401 - JSON
        assert answer.is_success, answer.text
        return answer.json()

    def _fill(self) -> None:
        submit = "/api/v1/jobs"
        gpu = {"resources": {"gpu": 1}}
        running = self.done(self.her.post(submit, json={**JOB, **gpu}))["id"]
        self.lab.pass_s(3.0)
        fails = self.done(self.her.post(submit, json={**JOB, "name": "zqfails"}))["id"]
        self.done(self.her.post(submit, json={**JOB, "name": "zqwaits", "dependsOn": ["zqjob"]}))
        cancelled = self.done(self.her.post(submit, json={**JOB, "name": "zqgone"}))["id"]
        kube = self.done(self.her.put(f"{submit}/zqkube", json=KUBE))["id"]
        array = {**JOB, "name": "zqarray", "array": {"matrix": {"zqaxis": ["zqone", "zqtwo"]}}}
        array_id = self.done(self.her.post("/api/v1/arrays", json=array))["id"]
        failing = {**JOB, "name": "zqfailsall", "array": {"indices": "0-1"}}
        self.done(self.her.post("/api/v1/arrays", json=failing))
        document = manifest("zqset", replicatedJobs=[group("zqworkers", 2)])
        document["metadata"]["labels"] = {"zqkey": "zqvalue"}
        container = document["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]
        container["env"] = [{"name": "ZQ", "value": "zqenv"}]
        set_id = self.done(self.her.post("/api/v1/jobsets", json=document))["id"]
        failing_set = manifest("zqfailsset", replicatedJobs=[group("zqworkers", 1)])
        self.done(self.her.post("/api/v1/jobsets", json=failing_set))
        failing_kube = {**KUBE, "metadata": {"name": "zqkubefails"}}
        self.done(self.her.put(f"{submit}/zqkubefails", json=failing_kube))
        again = {
            **JOB,
            "name": "zqfailsagain",
            "retry": {"retryLimit": 1, "defaultAction": "Retry", "backoff": {"initialDelay": "1h"}},
        }
        self.done(self.her.post(submit, json=again))
        self.lab.pass_s(3.0)
        self.done(self.her.post(f"{submit}/{cancelled}/cancel", json={"reason": "zqreason"}))
        self.done(self.ben.post(submit, json={**OWN, "name": "mine", **gpu}))
        self.done(self.ben.post("/api/v1/arrays", json={**OWN, "name": "own", "array": {"indices": "0-1"}}))
        self.lab.pass_s(5.0)
        task = f"{array_id}-zqarray-0"
        self.job_id, self.kube_id = running, kube
        self.told_ids = {running, fails, kube, array_id, set_id}
        """Of what is told to be there, where that is told."""
        ids = (running, fails, kube, array_id, task, set_id)
        names = ("zqjob", "zqfails", "zqkube", "zqfailsall", "zqfailsset", "zqarray", "zqarray-0", "zqset")
        self.references = (*names, "zqset-zqworkers-0", *ids, running[:8])
        self.values = (
            "zqjob",
            running,
            "zqarray",
            array_id,
            "zqset",
            "zqann",
            "zqgroup",
            "zqkey=zqvalue",
            "zqkey",
            "zq",
        )


@contextmanager
def staged(path: Path, sight: str, looker: Principal = BEN) -> Iterator[Stage]:
    """Open a server where others see so much of what is not theirs, for somebody who looks."""
    with ExitStack() as stack:
        yield Stage(path, stack, sight, looker)
