"""The samples of Fluster's design of retries as they stand there, with what they leave out filled in."""

from __future__ import annotations

import inspect
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.fluster import Entrypoint, FlusterClient, RetryConfig, RpcClusterClient, cluster_pb2
from tests.e2e.fluster_stage import FlusterServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SMALL = cluster_pb2.ResourceSpec(cpu=0, memory="256m")
CONFIGURATIONS = """
# Basic: retry up to 3 times on any failure
job_id = client.submit(
    ...,
    retry=RetryConfig(max_retries_failure=3)
)

# With exponential backoff: 1s, 2s, 4s, 8s delays
job_id = client.submit(
    ...,
    retry=RetryConfig(
        max_retries_failure=5,
        initial_delay=1.0,
        max_delay=30.0,
        backoff_multiplier=2.0,
    )
)

# Only retry on specific exit codes (e.g., OOM = 137)
job_id = client.submit(
    ...,
    retry=RetryConfig(
        max_retries_failure=3,
        retry_on_exit_codes=[137, 139],  # SIGKILL (OOM), SIGSEGV
    )
)

# Don't retry on assertion errors (user bugs)
job_id = client.submit(
    ...,
    retry=RetryConfig(
        max_retries_failure=3,
        no_retry_on_exit_codes=[1],  # Generic error, likely a bug
    )
)
"""
DEFAULTS = {
    "max_retries_failure": 0,
    "max_retries_preemption": 100,
    "initial_delay": 1.0,
    "max_delay": 60.0,
    "backoff_multiplier": 2.0,
    "retry_on_exit_codes": [],
    "no_retry_on_exit_codes": [],
}
CODES = ([1, 0], [1, 1, 0], [137, 139, 1], [2, 1])
"""What the attempts of each of these jobs exit with."""
ENDS = (("SUCCEEDED", 1), ("SUCCEEDED", 2), ("FAILED", 3), ("FAILED", 2))
IDEMPOTENT = """
def my_job():
    attempt = int(os.environ.get("FLUSTER_ATTEMPT_ID", "0"))
    checkpoint_path = f"{bucket}/job-{os.environ['FLUSTER_JOB_ID']}/checkpoint_{attempt}.pkl"  # filled in: bucket

    # Resume from previous checkpoint if exists
    if attempt > 0:
        previous_checkpoint = f"{bucket}/job-{os.environ['FLUSTER_JOB_ID']}/checkpoint_{attempt-1}.pkl"
        if exists(previous_checkpoint):
            state = load(previous_checkpoint)
            return state  # filled in
    save(checkpoint_path, {"attempt": attempt})  # filled in
    raise RuntimeError("interrupted")  # filled in
"""
FILLED_IN = """
import os, pickle
from os.path import exists
def load(path):
    with open(path, "rb") as file: return pickle.load(file)
def save(path, state):
    os.makedirs(os.path.dirname(path))
    with open(path, "wb") as file: pickle.dump(state, file)
"""


class Filled:
    """A client that takes ``...`` for a call, a name and what that needs."""

    def __init__(self, client: RpcClusterClient) -> None:
        self.client = client
        self.names: list[str] = []

    def submit(self, _: object, *, retry: RetryConfig) -> str:
        codes = CODES[len(self.names)]
        space: dict[str, Any] = {"__name__": "__main__"}
        exec(f"def job():\n import os, sys\n sys.exit({codes}[int(os.environ['FLUSTER_ATTEMPT_ID'])])", space)  # noqa: S102 - of this test
        name = f"sample-{len(self.names)}"
        self.names.append(self.client.submit(Entrypoint.from_callable(space["job"]), name, SMALL, retry=retry))
        return self.names[-1]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[RpcClusterClient]:
    server = FlusterServer(tmp_path)
    server.open()
    with RpcClusterClient(str(server.address()["url"])) as client:
        yield client
    server.clean_up()


@pytest.mark.slow
def test_its_four_configurations_do_what_their_comments_say(client: RpcClusterClient) -> None:
    filled = Filled(client)
    exec(CONFIGURATIONS, {"client": filled, "RetryConfig": RetryConfig})  # noqa: S102 - the document's
    for name, (state, failures) in zip(filled.names, ENDS, strict=True):
        status = client.wait(name, timeout=120.0)
        assert cluster_pb2.JobState.Name(status.state) == f"JOB_STATE_{state}", status
        assert status.failure_count == failures
        ended = [*(attempt.finished_at_ms for attempt in status.attempts)]
        began = [*(attempt.started_at_ms for attempt in status.attempts[1:]), status.started_at_ms]
        for at, (before_ms, after_ms) in enumerate(zip(ended, began, strict=True)):
            assert after_ms - before_ms >= 1000 * 2**at, "delays of 1 s, 2 s, 4 s"


@pytest.mark.slow
def test_its_example_of_idempotency_resumes_from_the_previous_checkpoint(
    client: RpcClusterClient, tmp_path: Path
) -> None:
    space: dict[str, Any] = {"__name__": "__main__", "bucket": str(tmp_path / "bucket")}
    exec(FILLED_IN + IDEMPOTENT, space)  # noqa: S102 - the document's
    job = Entrypoint.from_callable(space["my_job"])
    name = client.submit(job, "idempotent", SMALL, retry=RetryConfig(max_retries_failure=5))
    assert client.wait(name, timeout=120.0).state == cluster_pb2.JOB_STATE_SUCCEEDED
    assert client.result(name) == {"attempt": 0}
    assert (tmp_path / "bucket" / "job-idempotent" / "checkpoint_0.pkl").exists()


def test_its_retry_config_and_submit_have_its_arguments_in_its_order_with_its_defaults() -> None:
    assert [one.name for one in fields(RetryConfig)] == [*DEFAULTS]
    assert asdict(RetryConfig()) == DEFAULTS
    for client in (RpcClusterClient, FlusterClient):
        taken = inspect.signature(client.submit).parameters
        assert [name for name, one in taken.items() if one.kind is one.POSITIONAL_OR_KEYWORD] == [
            *("self", "entrypoint", "name", "resources"),
            *("environment", "ports", "scheduling_timeout_seconds", "retry"),
        ]
        assert [taken[name].default for name in ("environment", "ports", "scheduling_timeout_seconds", "retry")] == [
            None,
            None,
            0,
            None,
        ]


def test_its_messages_have_its_names_numbers_and_types() -> None:
    retry = cluster_pb2.RetryConfig.DESCRIPTOR
    assert [(one.number, one.name, one.type, one.is_repeated) for one in retry.fields] == [
        (1, "max_retries_failure", retry.fields[0].TYPE_INT32, False),
        (2, "max_retries_preemption", retry.fields[0].TYPE_INT32, False),
        (3, "initial_retry_delay_ms", retry.fields[0].TYPE_INT64, False),
        (4, "max_retry_delay_ms", retry.fields[0].TYPE_INT64, False),
        (5, "backoff_multiplier", retry.fields[0].TYPE_DOUBLE, False),
        (6, "retry_on_exit_codes", retry.fields[0].TYPE_INT32, True),
        (7, "no_retry_on_exit_codes", retry.fields[0].TYPE_INT32, True),
    ]
    launch = cluster_pb2.Controller.LaunchJobRequest.DESCRIPTOR.fields_by_name["retry"]
    assert (launch.number, launch.message_type) == (11, retry)
    status = cluster_pb2.JobStatus.DESCRIPTOR.fields_by_name
    assert [
        (status[name].number, status[name].type)
        for name in ("max_retries_failure", "max_retries_preemption", "retry_available_at_ms")
    ] == [(19, launch.TYPE_INT32), (20, launch.TYPE_INT32), (21, launch.TYPE_INT64)]
