"""Jobs by Fluster's door, over real sockets and with real programs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from holdfast.api.fluster.calls import WORKER
from tests.e2e.fluster_stage import Connected, FlusterServer, cluster, fluster, launch
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["fluster"]


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connected]:
    server = FlusterServer(tmp_path_factory.mktemp("door"))
    yield server.open()
    server.clean_up()


def fails(tmp: str, times: int, code: int) -> str:
    """A program that fails so often before it succeeds."""
    count = f"echo x >> {tmp}; test $(wc -l < {tmp}) -gt {times} || exit {code}"
    return f"#!/bin/sh\n{count}\n"


def retried(*, max_retries_failure: int) -> cluster.RetryConfig:
    return cluster.RetryConfig(
        initial_retry_delay_ms=10, max_retry_delay_ms=50, max_retries_failure=max_retries_failure
    )


def test_a_job_that_fails_three_times_then_succeeds_has_its_failures_counted(
    door: Connected, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tries = tmp_path_factory.mktemp("tries") / "n"
    name = "exp one/\u65e5\u672c %20 ../x"
    assert door("LaunchJob", launch(name, fails(str(tries), 3, 7), retry=retried(max_retries_failure=3))).job_id == name
    status = door.ended(name)
    assert (status.job_id, status.state, status.exit_code) == (name, cluster.JOB_STATE_SUCCEEDED, 0)
    assert (status.failure_count, status.preemption_count, status.current_attempt_id) == (3, 0, 3)
    assert (status.max_retries_failure, status.max_retries_preemption) == (3, 100)
    assert [(one.attempt_id, one.state, one.exit_code) for one in status.attempts] == [
        (at, cluster.JOB_STATE_FAILED, 7) for at in range(3)
    ]
    assert status.parent_job_id == "exp one/\u65e5\u672c %20 .."
    assert status.worker_address in door.url
    assert name in {one.job_id for one in door("ListJobs").jobs}


def test_a_job_that_exceeds_its_retries_ran_once_more_than_these(
    door: Connected, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tries = tmp_path_factory.mktemp("tries") / "n"
    door("LaunchJob", launch("exceeds", fails(str(tries), 99, 3), retry=retried(max_retries_failure=2)))
    status = door.ended("exceeds")
    assert (status.state, status.exit_code, status.failure_count) == (cluster.JOB_STATE_FAILED, 3, 3)
    assert tries.read_text().count("x") == 3


def test_a_launch_that_is_sent_again_is_answered_as_the_first_time_and_another_of_its_name_is_not(
    door: Connected,
) -> None:
    sent = launch("once", "#!/bin/sh\ntrue\n")
    for _ in range(3):
        assert door("LaunchJob", sent).job_id == "once"
    door.ended("once")
    assert door("LaunchJob", sent).job_id == "once", "also of a job that has ended meanwhile"
    refused = door.refused("LaunchJob", launch("once", "#!/bin/sh\nfalse\n"))
    assert (refused.http, refused.code) == (409, "already_exists")
    assert refused.message.startswith("job 'once' exists already; a job keeps its name until")
    assert [one.job_id for one in door("ListJobs").jobs].count("once") == 1


def test_everything_that_is_wrong_with_a_launch_is_said_at_once_and_nothing_is_queued(door: Connected) -> None:
    wrong = cluster.Controller.LaunchJobRequest(scheduling_timeout_seconds=-1, ports=["a b", "x", "x"])
    wrong.resources.memory = "lots"
    wrong.resources.device.tpu.variant = "v4-8"
    wrong.retry.max_retries_failure = -1
    wrong.retry.backoff_multiplier = 0.5
    refused = door.refused("LaunchJob", wrong)
    assert (refused.http, refused.code) == (400, "invalid_argument")
    assert {*refused.paths} == {
        "name",
        "resources.memory",
        "resources.device.tpu",
        "retry.max_retries_failure",
        "retry.backoff_multiplier",
        "serialized_entrypoint",
        "scheduling_timeout_seconds",
        "ports[0]",
        "ports[2]",
    }
    assert all(path in refused.message for path in refused.paths)
    assert "" not in {one.job_id for one in door("ListJobs").jobs}
    for name in ("GetJobStatus", "TerminateJob"):
        assert door.refused(name).paths == ["job_id"]


def test_variables_and_ports_are_bounded_before_they_are_compared(door: Connected) -> None:
    wrong = cluster.Controller.LaunchJobRequest(name="much", serialized_entrypoint=b"#!/bin/sh\n")
    wrong.ports.extend(f"p{number}" for number in range(100_000))
    wrong.environment.env_vars.update({f"V{number}": "x" * 100_000 for number in range(20)} | {"A=": "1"})
    refused = door.refused("LaunchJob", wrong)
    assert (refused.http, refused.code) == (400, "invalid_argument")
    assert {*refused.paths} == {"ports", "environment.env_vars", "environment.env_vars.'A='"}


def test_a_job_that_is_not_there_is_named(door: Connected) -> None:
    asked = cluster.Controller.GetJobStatusRequest, cluster.Controller.TerminateJobRequest
    for sent in (one(job_id=name) for one in asked for name in ("no/such", "no/such\0", "\U0001f642no/such")):
        name = type(sent).__name__.removesuffix("Request")
        refused = door.refused(name, sent)
        assert (refused.http, refused.code) == (404, "not_found")
        assert "no/such" in refused.message


def test_terminating_a_job_ends_all_below_it_the_deepest_first(fluster: FlusterServer) -> None:
    door = fluster.open()
    forever, done = "#!/bin/sh\nsleep 1000\n", "#!/bin/sh\ntrue\n"
    for name, program in {"a": forever, "a/b": forever, "a/b/c": forever, "a/d": done, "ab": forever}.items():
        door("LaunchJob", launch(name, program, cpu=0))
    door.ended("a/d")
    running = cluster.JOB_STATE_RUNNING
    wait_until(lambda: all(door.status(name).state == running for name in ("a", "a/b", "a/b/c", "ab")), "all run")
    for _ in range(2):
        door("TerminateJob", cluster.Controller.TerminateJobRequest(job_id="a"))
    found = {name: door.ended(name) for name in ("a", "a/b", "a/b/c", "a/d")}
    killed = (cluster.JOB_STATE_KILLED, "Terminated by user", 0, 0)
    for name in ("a", "a/b", "a/b/c"):
        one = found[name]
        assert (one.state, one.error, one.failure_count, one.preemption_count) == killed
    assert found["a/d"].state == cluster.JOB_STATE_SUCCEEDED
    assert door.status("ab").state == cluster.JOB_STATE_RUNNING
    with fluster.client() as admin:
        ids = [one.name for one in admin.audit() if one.action == "cancel"]
        groups = [admin.job(one).group for one in ids]
    assert groups == ["a/b", "a", ""]
    door("TerminateJob", cluster.Controller.TerminateJobRequest(job_id="a"))
    assert door.ended("a").state == cluster.JOB_STATE_KILLED


def test_a_job_that_waits_for_its_retry_says_when_and_ends_for_good_when_it_is_terminated(door: Connected) -> None:
    retry = cluster.RetryConfig(max_retries_failure=3, initial_retry_delay_ms=60_000)
    door("LaunchJob", launch("waits", "#!/bin/sh\nexit 1\n", retry=retry))
    wait_until(lambda: door.status("waits").failure_count == 1, "the first failure")
    status = door.status("waits")
    assert status.state == cluster.JOB_STATE_PENDING
    assert status.retry_available_at_ms > status.attempts[0].finished_at_ms
    door("TerminateJob", cluster.Controller.TerminateJobRequest(job_id="waits"))
    status = door.ended("waits")
    assert (status.state, len(status.attempts), status.retry_available_at_ms) == (cluster.JOB_STATE_KILLED, 1, 0)


def test_many_who_launch_at_one_moment_each_have_their_job_and_of_one_name_there_is_one(door: Connected) -> None:
    def one(at: int) -> str:
        try:
            return str(door("LaunchJob", launch(f"many/{at % 20}", f"#!/bin/sh\n# {at}\n")).job_id)
        except Exception as error:  # noqa: BLE001 - which is asked below
            return str(getattr(error, "code", error))

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(one, range(60)))
    assert sorted(name for name in answers if name.startswith("many/")) == sorted(f"many/{at}" for at in range(20))
    assert answers.count("already_exists") == 40
    listed = [name.job_id for name in door("ListJobs").jobs if name.job_id.startswith("many/")]
    assert sorted(listed) == sorted({*listed})
    assert len(listed) == 20


def test_answers_outlive_a_kill_of_the_server_under_a_client_that_waits(fluster: FlusterServer) -> None:
    door = fluster.open()
    sent = launch("lives", "#!/bin/sh\nsleep 1; exit 0\n")
    door("LaunchJob", sent)
    wait_until(lambda: door.status("lives").state == cluster.JOB_STATE_RUNNING, "it runs")
    fluster.end()
    fluster.start().close()
    door = Connected(fluster)
    assert door("LaunchJob", sent).job_id == "lives", "what was stored is known over a kill"
    status = door.ended("lives")
    assert (status.state, status.failure_count, status.preemption_count) == (cluster.JOB_STATE_SUCCEEDED, 0, 0)


def test_the_workers_service_tells_of_jobs_as_the_controllers_does(door: Connected) -> None:
    door("LaunchJob", launch("told", "#!/bin/sh\ntrue\n"))
    told = door.ended("told")
    assert door("GetJobStatus", cluster.Worker.GetJobStatusRequest(job_id="told"), WORKER) == told
    assert told in door("ListJobs", None, WORKER).jobs
