"""Whatever is sent to the API, it answers as its own description says, and never with a defect.

Property: for every operation and every generated request, valid or not, the status is documented and below 500,
the media type is documented, and the body conforms to its schema.
"""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from holdfast.api.http.serving.app import create_app
from holdfast.api.http.serving.gates import Entrance
from holdfast.compiled.codec import dump_set_spec, dump_spec
from holdfast.dialects.jobset.loading import child_spec, dump_set
from holdfast.dialects.manifests import read_manifest
from holdfast.domain.access import Principal
from holdfast.domain.failure import Cause, ContainerResult, EndedBy, Failure, RunOutcome
from holdfast.domain.job import Attempt, ChildOf, Job, JobState, Node, Resources, Run
from holdfast.domain.lifecycle import AttemptStatus, Ending, EntityKind, HistoryRow, Outcome, RunStatus, attempt_id
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.model import Action, Decision, LimitUse, RetryPolicy, SetAction
from holdfast.domain.record import evolve
from holdfast.domain.workloads.jobset.model import JobSetSpec
from holdfast.domain.workloads.jobset.state import (
    GroupStatus,
    JobSet,
    JobSetState,
    SetCondition,
    SetDecision,
    SetEvent,
    SetLogEntry,
)
from holdfast.domain.workloads.kubejob.model import JobCondition, KubeJobState
from holdfast.domain.workloads.kubejob.records import KubeJobRecord
from holdfast.domain.workloads.spec import JobSpec
from holdfast.ports.logs import LogPart
from holdfast.ports.store import Changes, Submission
from tests.untimed import Untimed
from tools.memory_store import MemoryStore

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


class Noon:
    def now(self) -> float:
        return 1000.0


class Counting:
    def __init__(self) -> None:
        self._numbers = count(1)

    def new(self) -> str:
        return f"job{next(self._numbers):08d}"


class NoLogs(Untimed):
    def read(self, job_id: str, attempt: int, rank: int, *, offset: int, limit: int, stderr: bool = False) -> LogPart:
        assert stderr in {True, False}
        assert job_id
        assert attempt > 0
        assert rank >= 0
        assert limit >= 0
        return LogPart(b"", 0, offset)


@schemathesis.serializer("application/x-ndjson")
def _lines(_: schemathesis.SerializationContext, value: Any) -> bytes:  # noqa: ANN401 - whatever was generated
    return json.dumps(value).encode()


def _store() -> MemoryStore:
    """Make a store with one of everything: a job named ``0`` that failed once and waits for its retry."""
    store = MemoryStore()
    store.put_entry(RetryPolicy("0"))
    job = Job("job000000", "0", "default", 0, 1.0, dump_spec(JobSpec("0", ("true",))))
    store.submit(Submission([job]))
    failure = Failure(Cause.KERNEL_NONZERO_EXIT, frozenset({"AppError"}), (ContainerResult(3),), node="n1", ran_s=1.0)
    limits = (LimitUse("globalMaxRetries", 0, None), LimitUse("0/default", 0, 2))
    decision = Decision(Action.RETRY, DecisionCode.RETRY, "why", "0", "default", policy_revision=1, limits=limits)
    attempt = Attempt(
        job.id, 1, AttemptStatus.ERROR, ending=Ending.FAILED, failure=failure, decision=decision, retry_at=9.0
    )
    outcome = RunOutcome((ContainerResult(3),), ended_by=EndedBy.ITSELF, log_tail=("a",), ended_at=2.0)
    run = Run(f"{job.id}-1-0-1", job.id, 1, 0, RunStatus.ERROR, node="n1", executor="local", outcome=outcome)
    waiting = Job(job.id, job.name, job.queue, 0, 1.0, job.spec, seq=1, state=JobState.BACKOFF, attempt=1, retry_at=9.0)
    row = HistoryRow(
        EntityKind.ATTEMPT, attempt_id(job.id, 1), 0,
        "StartAttempts", AttemptStatus.PREPARED, AttemptStatus.CREATING, Outcome.SUCCESS, 1, 2,
    )  # fmt: skip
    store.commit(
        Changes(
            jobs={job.id: waiting},
            attempts={attempt.key: attempt},
            runs={run.uid: run},
            history={row.key: row},
            nodes={("local", "n1"): Node("n1", "local", Resources(4000, 1 << 30, 0))},
        )
    )
    return store


def _add_set(store: MemoryStore) -> None:
    """Add a job set with the id ``0`` whose one job failed and runs again."""
    described = {"jobs": [{"name": "w", "command": ["true"]}], "failurePolicy": {"maxRestarts": 1}}
    manifest = {"apiVersion": "holdfast.dev/v1", "kind": "JobSet", "metadata": {"name": "train"}, "spec": described}
    spec = read_manifest(manifest)
    assert isinstance(spec, JobSetSpec)
    job_spec = dump_spec(child_spec(spec, spec.replicated_jobs[0]))
    row = JobSet(id="0", name="train", created_at=1.0, manifest=dump_set(manifest), spec=dump_set_spec(spec))
    at = ChildOf("0", "w", 0)
    job = Job("job000001", "train-w-0", "default", 0, 1.0, job_spec, state=JobState.WAITING, child=at)
    store.submit(Submission([job], owner=row))
    restarting = SetCondition("RestartingJobSet", status=True, reason="why", message="what", since=2.0)
    state = JobSetState(
        restarts=1,
        restarts_counted=1,
        conditions=(restarting,),
        groups=(GroupStatus("w", active=1),),
        not_before={"": 5.0, "group/w": 5.0, "job/train-w-0": 5.0},
        left_failed={"train-w-0": (0, 0)},
    )
    decided = SetDecision(
        job="train-w-0",
        attempt=(0, 0),
        action=SetAction.RESTART_JOB_SET,
        granted=True,
        reason="why",
        message="what",
        limits=(LimitUse("maxRestarts", 0, 1),),
    )
    failed = JobCondition("Failed", status=True, reason="why", message="what", since=2.0)
    pods = KubeJobState(active=1, failed=1, conditions=(failed,))
    store.commit(
        Changes(
            workloads={"0": evolve(row, state=state), job.id: KubeJobRecord(job.id, state=pods)},
            set_log=[
                SetLogEntry(set_id="0", at=2.0, what=decided),
                SetLogEntry(set_id="0", at=2.0, what=SetEvent("Normal", "why", "what")),
            ],
        )
    )


def _api() -> schemathesis.BaseSchema:
    store = _store()
    _add_set(store)
    app = create_app(store=store, clock=Noon(), ids=Counting(), logs=NoLogs(), entrance=Entrance(Principal("tester")))
    return schemathesis.openapi.from_asgi("/openapi.json", app)


API = _api()


@API.parametrize()
@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_every_answer_is_one_that_is_described(case: schemathesis.Case[Any]) -> None:
    case.call_and_validate(checks=CHECKS)


@pytest.mark.parametrize("path", ["", "/attempts", "/attempts/1", "/decisions", "/history", "/why", "/logs"])
def test_a_job_that_failed_is_described_as_described(path: str) -> None:
    operation = API[f"/api/v1/jobs/{{ref}}{path.replace('/1', '/{number}')}"]["GET"]
    case = operation.Case(path_parameters={"ref": "0", "number": 1} if path.endswith("1") else {"ref": "0"})
    response = case.call_and_validate(checks=CHECKS)
    assert response.status_code == 200


@pytest.mark.parametrize("path", ["", "/jobs", "/log", "/why"])
def test_a_job_set_that_restarts_is_described_as_described(path: str) -> None:
    case = API[f"/api/v1/jobsets/{{ref}}{path}"]["GET"].Case(path_parameters={"ref": "0"})
    response = case.call_and_validate(checks=CHECKS)
    assert response.status_code == 200


def test_a_job_of_a_set_is_described_as_described() -> None:
    case = API["/api/v1/jobs/{ref}"]["GET"].Case(path_parameters={"ref": "train-w-0"})
    assert case.call_and_validate(checks=CHECKS).json()["pods"]["failed"] == 1
