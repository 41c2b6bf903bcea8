"""Names of jobs by Iris' door: whose they are, who gives them up, and what is said of those that are none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.api.iris._generated import controller, job
from holdfast.api.iris.calls import CALLS, CONTROLLER
from tests.e2e.fluster_stage import Connected, FlusterServer, RefusedError
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.protobuf.message import Message

C = controller.Controller
DEAF = "trap 'sleep 2; exit 0' TERM; sleep 100 & wait"
"""A program that takes two seconds to end."""


class Heir(Connected):
    """Calls Iris' services of a door."""

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

    def launch(self, name: str, script: str = "sleep 100", **more: Any) -> str:  # noqa: ANN401 - fields by name
        """Launch a script, and return ``OK`` or why it was refused."""
        command = job.CommandEntrypoint(argv=["sh", "-c", script])
        needs = job.ResourceSpecProto(cpu_millicores=10, memory_bytes=16 << 20)
        entry = job.RuntimeEntrypoint(run_command=command)
        try:
            self("LaunchJob", C.LaunchJobRequest(name=name, entrypoint=entry, resources=needs, replicas=1, **more))
        except RefusedError as error:
            return error.code
        return "OK"

    def state(self, name: str) -> str:
        """Return the state of a job, empty of one that is not there."""
        found = self("GetJobState", C.GetJobStateRequest(job_ids=[name])).states
        return job.JobState.Name(found[name])[10:] if name in found else ""

    def until(self, name: str, state: str) -> None:
        """Wait for a state."""
        wait_until(lambda: self.state(name) == state, f"{state} of {name}")

    def running(self, name: str) -> None:
        """Wait until the program of a job runs."""
        asked = C.ListTasksRequest(job_id=name)
        wait_until(lambda: self("ListTasks", asked).tasks[0].state == job.TASK_STATE_RUNNING, f"the start of {name}")

    def listed(self, **query: Any) -> list[str]:  # noqa: ANN401 - fields by name
        """Return the names of a list."""
        return [one.job_id for one in self("ListJobs", C.ListJobsRequest(query=C.JobQuery(**query))).jobs]

    def kick(self, target: str) -> tuple[bool, str]:
        """Preempt tasks; returns whether it was asked for, and why not."""
        asked = C.KickTasksRequest(targets=[target], desired_state=job.TASK_STATE_PREEMPTED)
        [result] = self("KickTasks", asked).results
        return result.queued, result.detail

    def terminate(self, name: str) -> None:
        """End a job and all below it."""
        self("TerminateJob", C.TerminateJobRequest(job_id=name))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlusterServer]:
    server = FlusterServer(tmp_path_factory.mktemp("door"))
    with server.start() as client:
        client.put_settings({"access": {"admin": ["user:ann"], "user": ["user:bob"]}, "othersSee": "nothing"})
    yield server
    server.clean_up()


@pytest.fixture
def heir(server: FlusterServer) -> Heir:
    return Heir(server)


def test_a_list_is_of_names_that_begin_with_a_text_wherever_that_ends(heir: Heir) -> None:
    for name in ("/list/a1", "/list/a2", "/list/a1/kid", "/list/b", "/lists/c"):
        assert heir.launch(name) == "OK"
    assert heir.listed(job_id_prefix="/list/a") == ["/list/a1/kid", "/list/a2", "/list/a1"]
    assert heir.listed(job_id_prefix="/list") == ["/lists/c", "/list/b", "/list/a1/kid", "/list/a2", "/list/a1"]
    assert heir.listed(job_id_prefix="list") == []
    assert heir.listed(job_id_prefix="/list/", state_filter="succeeded") == []
    assert heir.listed(scope=C.JOB_QUERY_SCOPE_CHILDREN, parent_job_id="/list/a1") == ["/list/a1/kid"]
    heir.terminate("/list/a1")
    heir.until("/list/a1/kid", "KILLED")
    assert heir.state("/list/a2") != "KILLED"
    for name in ("/list/a2", "/list/b", "/lists/c"):
        heir.terminate(name)


def test_a_name_is_given_to_another_as_the_policy_of_its_launch_says(heir: Heir) -> None:
    error, keep, recreate = (
        job.EXISTING_JOB_POLICY_ERROR,
        job.EXISTING_JOB_POLICY_KEEP,
        job.EXISTING_JOB_POLICY_RECREATE,
    )
    assert heir.launch("/own/x", DEAF) == "OK"
    assert heir.launch("/own/x/kid") == "OK"
    heir.running("/own/x")
    assert heir.launch("/own/x", "true") == "already_exists"
    assert heir.launch("/own/x", "true", existing_job_policy=error) == "already_exists"
    assert heir.launch("/own/x", "true", existing_job_policy=keep) == "OK"
    assert heir.state("/own/x/kid") in {"PENDING", "RUNNING"}, "nothing was replaced"
    assert heir.launch("/own/x", "true", existing_job_policy=recreate) == "OK"
    waiting = heir("GetJobStatus", C.GetJobStatusRequest(job_id="/own/x")).job
    assert (waiting.state, "to end" in waiting.pending_reason) == (job.JOB_STATE_PENDING, True)
    heir.until("/own/x", "SUCCEEDED")
    assert heir.listed(job_id_prefix="/own/x") == ["/own/x"]
    assert heir.launch("/own/x", "exit 1", existing_job_policy=error) == "already_exists"
    assert heir.launch("/own/x", "exit 1") == "OK"
    heir.until("/own/x", "FAILED")


def test_a_kick_is_of_the_attempt_that_it_names_and_of_no_later_one(heir: Heir) -> None:
    assert heir.launch("/kick/x", "sleep 100", max_retries_preemption=5) == "OK"
    heir.running("/kick/x")
    assert heir.kick("/kick/x/0:1") == (False, "attempt 1 is not current (current is 0)")
    assert heir.kick("/kick/x:0") == (False, "a job target cannot carry an ':attempt' suffix")
    assert heir.kick("/kick/x/1") == (False, "task not found")
    assert heir.kick("/kick/x/0:0") == (True, "")
    heir.running("/kick/x")
    wait_until(lambda: heir.kick("/kick/x/0:0")[1].startswith("attempt 0 is not current"), "the next attempt")
    heir.terminate("/kick/x")
    heir.until("/kick/x", "KILLED")
    assert heir.kick("/kick/x/0") == (False, "task is killed, not running on a worker")
    assert heir.kick("/kick/x") == (False, "job has no tasks running on a worker")


def test_a_job_that_its_user_declares_done_has_succeeded_and_ends_what_is_below(heir: Heir) -> None:
    assert heir.launch("/done/x") == heir.launch("/done/x/kid") == "OK"
    heir.running("/done/x")
    heir("CompleteJob", C.CompleteJobRequest(job_id="/done/x"))
    heir.until("/done/x", "SUCCEEDED")
    heir.until("/done/x/kid", "KILLED")
    heir("CompleteJob", C.CompleteJobRequest(job_id="/done/x/kid"))
    assert heir.state("/done/x/kid") == "KILLED", "what has ended stays as it ended"
    told = heir("GetJobStatus", C.GetJobStatusRequest(job_id="/done/x")).job
    assert (told.error, told.completed_count, dict(told.task_state_counts)) == ("", 1, {"succeeded": 1})


@pytest.mark.parametrize(
    "name", ["", "ann", "/ann", "/ann/", "//x", "/ann/a//b", "/ann/ /x", "/ann/\0", "/" + "x" * 950]
)
def test_what_is_no_name_is_refused_as_what_only_its_sender_can_mend(heir: Heir, name: str) -> None:
    assert heir.launch(name) == "invalid_argument"
    asked = (
        ("GetJobStatus", C.GetJobStatusRequest(job_id=name)),
        ("TerminateJob", C.TerminateJobRequest(job_id=name)),
        ("CompleteJob", C.CompleteJobRequest(job_id=name)),
        ("ListTasks", C.ListTasksRequest(job_id=name)),
        ("GetTaskStatus", C.GetTaskStatusRequest(task_id=name)),
    )
    for call, sent in asked:
        with pytest.raises(RefusedError) as refused:
            heir(call, sent)
        assert refused.value.code == "invalid_argument", call
    assert heir.state(name) == ""


def test_a_name_of_somebody_else_is_not_given_away_and_says_nothing_of_its_job(
    server: FlusterServer, heir: Heir
) -> None:
    assert heir.launch("/ann/mine", "true") == "OK"
    heir.until("/ann/mine", "SUCCEEDED")
    with server.client() as client:
        bob = Heir(server, client.create_token("bob", user="bob").token)
    policies = (job.EXISTING_JOB_POLICY_RECREATE, job.EXISTING_JOB_POLICY_KEEP)
    assert bob.launch("/ann/mine") == "already_exists"
    assert [bob.launch("/ann/mine", existing_job_policy=one) for one in policies] == ["already_exists"] * 2
    assert (bob.state("/ann/mine"), bob.listed(job_id_prefix="/ann/mine"), heir.state("/ann/mine")) == (
        "",
        [],
        "SUCCEEDED",
    )
    assert bob.launch("/bob/own") == "OK"
    assert (bob.listed(), heir.listed(job_id_prefix="/bob/")) == (["/bob/own"], ["/bob/own"])
