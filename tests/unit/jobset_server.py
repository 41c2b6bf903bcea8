"""A server that is a script, for tests of what the command line says of job sets; time is counted, not spent."""

from __future__ import annotations

import io
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from holdfast.cli.context import Cli
from holdfast.cli.main import run_line
from holdfast.domain.terms.kinds import JOB_SET
from holdfast.errors import HoldfastError, NotFound
from holdfast.wire.jobs import BulkResult, JobApplied, JobView, LogChunk
from holdfast.wire.jobsets import JobSetApplied, JobSetLogEntry, JobSetView, JobSetWhy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.client import Client
    from holdfast.domain.terms.kinds import KindInfo

AT = "2026-01-01T00:00:00.000Z"
RESOURCES = {"cpu": "1", "memory": "0", "gpu": 0}
CONDITION = {"type": "RestartingJobSet", "status": False, "reason": "RestartJobSet", "message": "again", "since": AT}
PODS = {"parallelism": 2, "completions": 3, "active": 2, "ready": 1, "succeeded": 1, "completed_indexes": "0"}
DECISION = {
    "job": "train-workers-0",
    "attempt": 3,
    "restart": 2,
    "job_restart": 0,
    "action": "RestartJobSet",
    "granted": True,
    "reason": "RestartJobSetFailurePolicyAction",
    "message": "applying RestartJobSet",
    "rule": "preempted",
    "rule_index": 0,
    "delay_s": 2.0,
    "limits": [{"name": "maxRestarts", "used": 2, "limit": 10}],
    "considered": [{"policy": "train", "rule": "preempted", "matched": True, "because": "the reason is Preempted"}],
}
SET: Mapping[str, Any] = {
    "id": "01s",
    "name": "train",
    "state": "Running",
    "queue": "ml",
    "jobs": 2,
    "ready": 1,
    "active": 2,
    "restarts": 3,
    "restarts_counted": 2,
    "max_restarts": 10,
    "created_at": AT,
    "updated_at": AT,
    "startup_order": "AnyOrder",
    "success_operator": "All",
    "conditions": [CONDITION],
    "groups": [{"name": "workers", "replicas": 2, "active": 2, "ready": 1, "restarts": 1, "job_restarts": 2}],
    "children": [
        {
            "id": "01j",
            "name": "train-workers-0",
            "replicated_job": "workers",
            "index": 0,
            "state": "Running",
            "attempt": 4,
            "restarts": 0,
            "pods": PODS,
        }
    ],
    "left_failed": ["train-workers-1"],
    "manifest": {},
}
LOG = [
    {"seq": 1, "at": AT, "type": "Decision", "reason": "r", "message": "m", "decision": DECISION},
    {"seq": 2, "at": AT, "type": "Warning", "reason": "RestartedByUser", "message": "a user restarts the jobset"},
]
JOBSET = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: train
spec:
  replicatedJobs:
  - name: workers
"""


@dataclass
class Server:
    """A server that answers from a script and remembers what it was asked."""

    states: list[str] = field(default_factory=lambda: ["Running"])
    """Of the set, look by look; ``gone`` is no set at all."""
    refusal: HoldfastError | None = None
    warnings: list[dict[str, Any]] = field(default_factory=list)
    jobs: list[JobView] = field(default_factory=list)
    asked: list[tuple[Any, ...]] = field(default_factory=list)
    children: dict[str, str] = field(default_factory=dict)
    began: dict[str, list[int]] = field(default_factory=dict)
    """Where in the log of a pod those began that took its place."""

    def job_set(self, reference: str) -> JobSetView:
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if state == "gone" or reference not in {"train", "01s"}:
            msg = f"there is no job set {reference!r}"
            raise NotFound(msg)
        return JobSetView.model_validate({**SET, "state": state})

    def of(self, kind: KindInfo) -> Server:
        assert kind is JOB_SET
        return self

    get = job_set

    def job_sets(
        self,
        *,
        limit: int | None,
        states: Sequence[str],
        labels: Mapping[str, str],
        user: str | None,
        group: str | None,
        unreadable: Callable[[object], object],
    ) -> list[JobSetView]:
        del unreadable
        assert (limit, states, labels, user, group) == (None, [], {}, None, None)
        return [self.job_set("train")]

    def _answer(self, *asked: object, result: str) -> JobSetApplied:
        self.asked.append(asked)
        if self.refusal is not None:
            raise self.refusal
        return JobSetApplied.model_validate({**SET, "result": result, "warnings": self.warnings})

    def create_job_set(self, manifest: Mapping[str, Any], *, lenient: bool) -> JobSetApplied:
        return self._answer("create", manifest["metadata"]["name"], lenient, result="created")

    def put_job_set(
        self, name: str, manifest: Mapping[str, Any], *, lenient: bool, must_exist: bool = False
    ) -> JobSetApplied:
        assert manifest["metadata"]["name"] == name
        return self._answer("update" if must_exist else "put", name, lenient, result="unchanged")

    def submit_bulk(self, manifests: Sequence[Mapping[str, Any]], *, lenient: bool) -> BulkResult:
        self.asked.append(("jobs", len(manifests), lenient))
        items = [{"index": at, "status": "created", "id": f"j{at}", "name": "j"} for at in range(len(manifests))]
        items = [{**item, "warnings": self.warnings} for item in items]
        return BulkResult.model_validate({"items": items})

    def put_job(self, name: str, manifest: Mapping[str, Any], *, lenient: bool) -> JobApplied:
        self._answer("put job", name, lenient, result="")
        name = manifest["metadata"]["name"]
        header = {"id": "j0", "name": name, "queue": "ml", "state": "Queued", "submitted_at": AT}
        return JobApplied.model_validate({**header, "resources": RESOURCES, "result": "created"})

    def check(self, manifests: Sequence[Mapping[str, Any]], *, verb: str, lenient: bool) -> BulkResult:
        self._answer("check", len(manifests), f"{verb} {lenient}", result="valid")
        return BulkResult(items=[])

    def delete_job_set(self, reference: str) -> JobSetView:
        if reference not in {"train", "01s"}:
            msg = f"there is no job set {reference!r}"
            raise NotFound(msg)
        self.asked.append(("delete", reference))
        return JobSetView.model_validate({**SET, "state": "Deleting"})

    def ask(self, reference: str, act: str, *, reason: str) -> None:
        self._answer(act, reference, reason, result="")

    def restart_job_set(
        self, reference: str, *, reason: str, replicated_job: str = "", index: int | None = None
    ) -> None:
        self.asked.append(("restart", reference, replicated_job, index, reason))

    def last_event(self) -> int:
        return len(self.jobs)

    def job(self, reference: str) -> JobView:
        if not self.jobs:
            raise NotFound
        found = self.jobs.pop(0) if len(self.jobs) > 1 else self.jobs[0]
        assert reference in {found.id, found.name}
        return found

    def logs(self, reference: str, *, attempt: int, rank: int, offset: int, newest: bool = False) -> LogChunk:
        log = f"{reference}/{attempt}/{rank}"
        whole, began = self.children[log], self.began.get(log, [])
        offset = max(offset, *began[-1:], 0) if newest else offset
        end = next((place for place in began if place > offset), len(whole))
        run = 1 + sum(place <= offset for place in began)
        where = {"attempt": attempt, "rank": rank, "offset": offset, "next_offset": end, "run": run}
        return LogChunk.model_validate({**where, "text": whole[offset:end], "finished": False})

    def last_job_set_log(self, reference: str, *, tail: int) -> list[JobSetLogEntry]:
        assert (reference, tail > 0) == ("01s", True)
        return [JobSetLogEntry.model_validate(one) for one in LOG]

    def job_set_why(self, reference: str, *, job: str | None = None) -> JobSetWhy:
        self.asked.append(("why", reference, job))
        trace = {"at": AT, "decision": DECISION, "summary": ["Rule preempted matched: the reason is Preempted."]}
        why = {"id": "01s", "name": "train", "state": "Running", "headline": "Job set train runs.", "traces": [trace]}
        return JobSetWhy.model_validate({**why, "omitted": 4})


@dataclass(slots=True)
class Surroundings(Cli):
    """A command's surroundings with that server, streams that are kept, and a clock that sleeping moves."""

    server: Server = field(default_factory=Server)
    at: float = 0.0
    notes: list[str] = field(default_factory=list)

    def connect(
        self, *, drive: bool = False, places: bool = True, attached: bool = False
    ) -> AbstractContextManager[Client]:
        assert places
        del attached  # this server is never away
        self.notes.append("drives" if drive else "asks")
        return nullcontext(cast("Client", self.server))

    @staticmethod
    def is_looked_after() -> bool:
        return True

    def note_unserved(self, what: str = "jobs start", wait: str = "holdfast wait JOB") -> None:
        assert wait.startswith("holdfast ")
        self.notes.append(what)

    def pass_by(self, seconds: float) -> None:
        self.at += seconds


def surroundings(server: Server | None = None, stdin: str = "") -> Surroundings:
    found = Surroundings(io.StringIO(stdin), io.StringIO(), io.StringIO(), clock=lambda: 1767225700.0)
    found.server, found.sleep, found.now = server or Server(), found.pass_by, lambda: found.at
    return found


@dataclass
class Said:
    code: int
    out: str
    err: str
    server: Server
    notes: list[str]


def said(line: str, server: Server | None = None, stdin: str = "") -> Said:
    cli = surroundings(server, stdin)
    code = run_line(line.split(), cli)
    return Said(code, cast("Any", cli.stdout).getvalue(), cast("Any", cli.stderr).getvalue(), cli.server, cli.notes)


def job(*runs: tuple[int, str], **facts: object) -> JobView:
    """Make a job of pods: its newest attempt's runs by rank and uid."""
    attempt = {
        "number": 1,
        "state": "Running",
        "phase": "RUNNING",
        "created_at": AT,
        "resources": RESOURCES,
        "runs": [{"uid": uid, "rank": rank, "state": "Running", "phase": "RUNNING"} for rank, uid in runs],
    }
    header = {"id": "01j", "name": "train-workers-0", "queue": "ml", "state": "Running", "submitted_at": AT}
    place = {"job_set": "01s", "replicated_job": "workers", "job_index": 0, "pods": {**PODS, "conditions": [CONDITION]}}
    body = {"resources": RESOURCES, "labels": {}, "counters": {}, "spec": {}, "attempts": [attempt], "attempt": 1}
    return JobView.model_validate({**header, **place, **body, **facts})
