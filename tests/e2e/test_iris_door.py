"""Jobs of Iris' users, launched, watched, read and ended by Iris' own client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.iris_stage import door

if TYPE_CHECKING:
    from tests.e2e.iris_stage import IrisServer

__all__ = ["door"]
pytestmark = pytest.mark.slow  # the client alone takes seconds to be imported


def test_jobs_are_launched_watched_listed_read_and_ended(door: IrisServer) -> None:
    ended, printed, exact, listed, killed, again = door.iris()(
        """
launch("/ann/ok", "sh", "-c", "echo hello $A from $IRIS_TASK_ID of $IRIS_NUM_TASKS; echo b >&2",
       environment=EnvironmentSpec(setup_scripts=[], env_vars={"A": "b"}), replicas=2)
ended = wait("/ann/ok").state
launch("/ann/long", "sleep", "100")
until("/ann/long", "RUNNING", tasks=["RUNNING"])
listed = [one.job_id for one in client.list_jobs(query=C.JobQuery(job_id_prefix="/ann/"))]
client.terminate_job(JobName.from_wire("/ann/long"))
killed = [wait("/ann/long").state, client.get_job_status(JobName.from_wire("/ann/long")).error]
done([[ended, told("/ann/ok")], sorted(lines("/ann/ok/")), lines("/ann/ok/1:0", logging_pb2.MATCH_SCOPE_EXACT),
      listed, killed, refused(client.terminate_job, JobName.from_wire("/ann/long"))])
"""
    )
    assert ended == [4, ["SUCCEEDED", 0, 0, [["SUCCEEDED", 0, 0, [[0, "SUCCEEDED", 0]]]] * 2]]
    assert printed == [
        ["/ann/ok/0:0", "b"],
        ["/ann/ok/0:0", "hello b from /ann/ok/0:0 of 2"],
        ["/ann/ok/1:0", "b"],
        ["/ann/ok/1:0", "hello b from /ann/ok/1:0 of 2"],
    ]
    assert exact == [["", "hello b from /ann/ok/1:0 of 2"], ["", "b"]]
    assert listed == ["/ann/long", "/ann/ok"]
    assert killed == [6, "Terminated by user"]
    assert again == ["OK", "None"]


def test_failures_are_retried_within_both_budgets_and_preemptions_by_their_own(door: IrisServer) -> None:
    once, within, capped, preempted, failed = door.iris()(
        """
launch("/ann/once", "sh", "-c", "exit 3", max_retries_failure=2)
launch("/ann/within", "sh", "-c", "case $IRIS_TASK_ID in *:1) ;; *) exit 3;; esac",
       max_retries_failure=2, max_task_failures=2)
launch("/ann/capped", "sh", "-c", "kill -9 $$", max_retries_failure=5, max_task_failures=1)
launch("/ann/kicked", "sh", "-c", "case $IRIS_TASK_ID in *:1) ;; *) sleep 100;; esac")
until("/ann/kicked", "RUNNING", tasks=["RUNNING"])
kicked = client.kick_tasks(["/ann/kicked/0:0"], job_pb2.TASK_STATE_PREEMPTED, "because")
launch("/ann/failed", "sleep", "100", max_retries_failure=5, max_task_failures=5)
until("/ann/failed", "RUNNING", tasks=["RUNNING"])
client.kick_tasks(["/ann/failed"], job_pb2.TASK_STATE_FAILED, "broken")
for name in ("/ann/once", "/ann/within", "/ann/capped", "/ann/kicked", "/ann/failed"):
    wait(name)
status = client.get_job_status(JobName.from_wire("/ann/failed"))
done([told("/ann/once"), told("/ann/within"), told("/ann/capped"),
      [[one.target, one.task_id, one.queued] for one in kicked] + [told("/ann/kicked")],
      [status.error, told("/ann/failed")]])
"""
    )
    assert once == ["FAILED", 1, 0, [["FAILED", 3, 0, [[0, "FAILED", 3]]]]]
    assert within == ["SUCCEEDED", 1, 0, [["SUCCEEDED", 0, 1, [[0, "FAILED", 3], [1, "SUCCEEDED", 0]]]]]
    assert capped == ["FAILED", 2, 0, [["FAILED", -9, 1, [[0, "FAILED", -9], [1, "FAILED", -9]]]]]
    assert preempted == [
        ["/ann/kicked/0:0", "/ann/kicked/0", True],
        ["SUCCEEDED", 0, 1, [["SUCCEEDED", 0, 1, [[0, "PREEMPTED", 0], [1, "SUCCEEDED", 0]]]]],
    ]
    assert failed == ["broken", ["FAILED", 1, 0, [["FAILED", 0, 0, [[0, "FAILED", 0]]]]]]


def test_a_name_is_taken_by_a_job_that_runs_and_given_to_another_when_it_has_ended(door: IrisServer) -> None:
    taken, kept, recreated, error, replaced, replayed = door.iris()(
        """
first = request("/ann/x")
raw.launch_job(first)
replayed = refused(raw.launch_job, first)
taken = refused(raw.launch_job, request("/ann/x", max_retries_failure=1))
kept = refused(raw.launch_job, request("/ann/x", existing_job_policy=job_pb2.EXISTING_JOB_POLICY_KEEP))
until("/ann/x", "RUNNING", tasks=["RUNNING"])
before = client.list_tasks(JobName.from_wire("/ann/x"))[0].attempts[0].attempt_uid
again = refused(raw.launch_job, request("/ann/x", existing_job_policy=job_pb2.EXISTING_JOB_POLICY_RECREATE))
until("/ann/x", "RUNNING", tasks=["RUNNING"])
after = client.list_tasks(JobName.from_wire("/ann/x"))[0].attempts[0].attempt_uid
launch("/ann/y", "true")
wait("/ann/y")
error = refused(raw.launch_job, request("/ann/y", existing_job_policy=job_pb2.EXISTING_JOB_POLICY_ERROR))
launch("/ann/y", "sh", "-c", "exit 1")
done([taken, kept, [again, before != after], error, [int(wait("/ann/y").state),
      len(client.list_jobs(query=C.JobQuery(job_id_prefix="/ann/y")))], replayed])
"""
    )
    assert taken == ["ALREADY_EXISTS", "Job /ann/x already exists and is still running"]
    assert kept == replayed == ["OK", 'job_id: "/ann/x"\n']
    assert recreated == [kept, True]
    assert error[0] == "ALREADY_EXISTS"
    assert replaced == [5, 1]


def test_what_replaces_a_job_waits_for_its_end_and_has_its_name_and_nothing_below_it(door: IrisServer) -> None:
    waits, ran, listed, found, theirs = door.iris()(
        """
launch("/ann/x", "sh", "-c", "trap 'sleep 2; exit 0' TERM; echo there; sleep 100 & wait")
launch("/ann/x/kid", "sleep", "100")
launch("/ann/xy", "true")
until("/ann/x", "RUNNING", tasks=["RUNNING"])
until("/ann/x/kid", "RUNNING", tasks=["RUNNING"])
client.fetch_logs("/ann/x/0:0", match_scope=logging_pb2.MATCH_SCOPE_EXACT)
raw.launch_job(request("/ann/x", existing_job_policy=job_pb2.EXISTING_JOB_POLICY_RECREATE))
waits = state("/ann/x"), client.get_job_status(JobName.from_wire("/ann/x")).pending_reason
until("/ann/x", "RUNNING", tasks=["RUNNING"])
listed = sorted(one.job_id for one in client.list_jobs(query=C.JobQuery(job_id_prefix="/ann/x")))
found = client.get_job_states([JobName.from_wire("/ann/x/kid")])
done([waits, lines("/ann/x/"), listed, len(found), state("/ann/xy")])
"""
    )
    assert waits[0] == "PENDING"
    assert "to end" in waits[1]
    assert (ran, listed, found, theirs) == ([], ["/ann/x", "/ann/xy"], 0, "SUCCEEDED")
    jobs = door.json("get", "jobs", "--group", "/ann/x/")["items"]
    states = sorted((job["group"], job["state"]) for job in jobs)
    assert states == [("/ann/x", "Cancelled"), ("/ann/x", "Running"), ("/ann/x/kid", "Cancelled")]


def test_no_mistake_of_a_user_is_answered_in_a_way_that_clients_try_again(door: IrisServer) -> None:
    names, launches, others = door.iris()(
        """
names = [refused(raw.launch_job, request(name))[0] for name in
         ("", "ann", "/ann", "/ann/", "//x", "/ann/a//b", "/ann/ /x", "/ann/none/child", "/ann/a/0",
          "/ann/" + "x" * 2000,
          "/ann/\\x07bell", "/ann/0", "/ann/a b$%\\u00e9")]
launches = [refused(raw.launch_job, request("/ann/n", **more))[0] for more in (
    {"replicas": 0}, {"replicas": -1}, {"max_retries_failure": -1}, {"max_task_failures": -5},
    {"existing_job_policy": 9}, {"priority_band": 77}, {"container_profile": 6}, {"egress_policy": 3},
    {"ports": ["a b"]}, {"ports": ["a", "A"]}, {"federation": C.FederationHandoff()},
    {"coscheduling": job_pb2.CoschedulingConfig()},
    {"constraints": [job_pb2.Constraint(key="cluster", value=job_pb2.AttributeValue(string_value="x"))]},
    {"environment": job_pb2.EnvironmentConfig(secrets={"A": "b"})},
    {"resources": needs(device=job_pb2.DeviceConfig(tpu=job_pb2.TpuDevice(variant="v5litepod-16", count=4)))},
    {"resources": needs(cpu=-5)}, {"resources": needs(memory=1 << 62)}, {"bundle_blob": b"no zip"},
    {"entrypoint": job_pb2.RuntimeEntrypoint(run_command=job_pb2.CommandEntrypoint(argv=["a\\0b"]))})]
bad = lambda call, made: refused(call, made)[0]
others = [
    *[bad(raw.get_job_status, C.GetJobStatusRequest(job_id=name)) for name in ("bad", "/a/none")],
    *[bad(raw.terminate_job, C.TerminateJobRequest(job_id=name)) for name in ("bad", "/a/none")],
    *[bad(raw.get_task_status, C.GetTaskStatusRequest(task_id=name)) for name in ("/a/b", "/a/b/0")],
    *[bad(raw.list_tasks, C.ListTasksRequest(job_id=name)) for name in ("", "/a/none")],
    bad(raw.list_jobs, C.ListJobsRequest(query=C.JobQuery(offset=5001))),
    bad(raw.list_jobs, C.ListJobsRequest(query=C.JobQuery(scope=3))),
    bad(raw.kick_tasks, C.KickTasksRequest(desired_state=10)),
    bad(raw.kick_tasks, C.KickTasksRequest(targets=["/a/b"])),
    bad(raw.get_job_state, C.GetJobStateRequest(job_ids=["bad", "/a/none"])),
    raw.kick_tasks(C.KickTasksRequest(targets=["bad", "/a/b", "/a/b/7"], desired_state=10)).results[0].queued,
    refused(client.fetch_logs, ".*", match_scope=logging_pb2.MATCH_SCOPE_REGEX)[0]]
done([names, launches, others])
"""
    )
    wrong, absent = "INVALID_ARGUMENT", "NOT_FOUND"
    assert names == [*[wrong] * 7, "FAILED_PRECONDITION", wrong, wrong, wrong, "OK", "OK"]
    never_fits = launches.pop(16)
    assert (never_fits, launches) == ("FAILED_PRECONDITION", [wrong] * len(launches))
    assert others == [
        wrong, absent, wrong, absent, wrong, absent, wrong, "OK", wrong, wrong, wrong, wrong, "OK", False,
        "SchemaValidationError",
    ]  # fmt: skip


def test_a_waiting_client_rides_out_the_death_of_the_server(door: IrisServer) -> None:
    waiting = door.iris().begin(
        """
launch("/ann/slow", "sh", "-c", "while [ ! -e " + flag + " ]; do sleep 0.05; done")
until("/ann/slow", "RUNNING", tasks=["RUNNING"])
print("there", flush=True)
done([int(wait("/ann/slow", timeout=120).state), lines("/ann/slow/")])
""",
        flag=str(door.folder / "go"),
    )
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == "there\n"
    port = door.address()["url"]
    door.end()
    door.words = (*door.words[:-1], str(port).rpartition(":")[2])
    with door.start():
        (door.folder / "go").touch()
        said, errors = waiting.communicate(timeout=120)
    assert said.splitlines()[-1:] == ["[4, []]"], errors


def test_the_command_runs_lists_describes_reads_and_cancels(door: IrisServer) -> None:
    iris, folder = door.iris(), door.folder / "work"
    folder.mkdir()
    ran = iris.command(
        "job", "run", "--no-sync", "--job-name", "hello", "--user", "ann", "--", "echo", "hi there", cwd=folder
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "/ann/hello\n"
    assert "task=/ann/hello/0:0 | hi there" in ran.stderr
    failed = iris.command("job", "run", "--no-sync", "--job-name", "bad", "--user", "ann", "--", "false", cwd=folder)
    assert failed.returncode == 1
    assert "Exit code: 1" in failed.stderr
    listed = iris.command("job", "list", "--prefix", "/ann/", cwd=folder)
    rows = [line.split()[:2] for line in listed.stdout.splitlines()[1:]]
    assert rows == [["/ann/bad", "failed"], ["/ann/hello", "succeeded"]]


def test_what_can_never_fit_is_refused_when_it_is_launched(door: IrisServer) -> None:
    refusals = door.iris()(
        """
done([refused(raw.launch_job, request("/ann/n", resources=one)) for one in (
    needs(cpu=1_000_000), needs(memory=1 << 50),
    needs(device=job_pb2.DeviceConfig(gpu=job_pb2.GpuDevice(variant="H100", count=8))))]
  + [refused(raw.launch_job, request("/ann/n", constraints=[
      job_pb2.Constraint(key="region", value=job_pb2.AttributeValue(string_value="mars"))]))])
"""
    )
    assert [code for code, _ in refusals] == ["FAILED_PRECONDITION"] * 4
    assert all(message.startswith("Job /ann/n is unschedulable: ") for _, message in refusals)


def test_workers_are_the_nodes_and_pages_of_jobs_go_on_where_they_end(door: IrisServer) -> None:
    workers, pages, found = door.iris()(
        """
for number in range(7):
    launch(f"/ann/p{number}", "true")
for number in range(7):
    wait(f"/ann/p{number}")
workers = [[one.healthy, one.metadata.cpu_count] for one in client.list_workers()]
query = C.JobQuery(job_id_prefix="/ann/p")
one = raw.list_jobs(C.ListJobsRequest(query=C.JobQuery(job_id_prefix="/ann/p", limit=3)))
pages = [one.total_count, one.has_more, [job.job_id for job in one.jobs],
         [job.job_id for job in client.list_jobs(query=query, page_size=2)]]
def names(**more):
    return [job.job_id for job in raw.list_jobs(C.ListJobsRequest(query=C.JobQuery(**more))).jobs]
found = [names(job_id_prefix="nn"), names(name_filter="P3"), names(state_filter="failed"), names(state_filter="bogus"),
         names(sort_field=2, sort_direction=1, limit=2), names(scope=2, limit=1)]
done([workers, pages, found])
"""
    )
    assert workers == [[True, 4]]
    newest = [f"/ann/p{number}" for number in reversed(range(7))]
    assert pages == [7, True, newest[:3], newest]
    assert found == [[], ["/ann/p3"], [], [], ["/ann/p0", "/ann/p1"], ["/ann/p6"]]


def test_children_are_launched_below_a_living_parent_and_end_with_it(door: IrisServer) -> None:
    family, ended, late = door.iris()(
        """
launch("/ann/top", "sleep", "100")
launch("/ann/top/kid", "sleep", "100")
launch("/ann/topless", "sleep", "100")
until("/ann/top/kid", "RUNNING")
one = client.get_job_status(JobName.from_wire("/ann/top"))
two = client.get_job_status(JobName.from_wire("/ann/top/kid"))
client.terminate_job(JobName.from_wire("/ann/top"))
ended = [int(wait("/ann/top").state), int(wait("/ann/top/kid").state), state("/ann/topless")]
client.terminate_job(JobName.from_wire("/ann/topless"))
done([[one.has_children, one.parent_job_id, two.has_children, two.parent_job_id], ended,
      refused(raw.launch_job, request("/ann/top/late"))[0]])
"""
    )
    assert family == [True, "", False, "/ann/top"]
    assert ended in ([6, 6, "RUNNING"], [6, 6, "PENDING"])
    assert late == "FAILED_PRECONDITION"


def test_children_end_when_their_parent_ends_by_itself_and_by_its_policy_when_it_is_tried_again(
    door: IrisServer,
) -> None:
    keep = door.folder / "gate"
    first, tried, last = door.iris()(
        """
KEEP = job_pb2.JOB_PREEMPTION_POLICY_PRESERVE_CHILDREN
waits = f"until test -e {gate}; do sleep 0.05; done"
launch("/ann/well", "sh", "-c", waits)
launch("/ann/bad", "sh", "-c", waits + "; exit 1", preemption_policy=KEEP)
launch("/ann/one", "sleep", "100")
launch("/ann/more", "sleep", "100", replicas=2)
for name in ("/ann/well", "/ann/bad", "/ann/one", "/ann/more"):
    until(name, "RUNNING", tasks=["RUNNING"])
    launch(name + "/kid", "sleep", "100")
    until(name + "/kid", "RUNNING", tasks=["RUNNING"])
for name in ("/ann/one", "/ann/more"):
    client.kick_tasks([name], job_pb2.TASK_STATE_PREEMPTED, "")
tried = [int(wait("/ann/one/kid").state), client.get_job_status(JobName.from_wire("/ann/one/kid")).error]
open(gate, "w").close()
first = [[int(wait(name).state) for name in ("/ann/well", "/ann/well/kid", "/ann/bad")],
         client.get_job_status(JobName.from_wire("/ann/well/kid")).error]
until("/ann/more", "RUNNING", tasks=["RUNNING"])
done([first, tried, [state("/ann/bad/kid"), state("/ann/more/kid")]])
""",
        gate=str(keep),
    )
    assert first == [[4, 6, 5], "its parent, job well, has ended: Succeeded"]
    assert tried == [6, "its parent, job one, is retried"]
    assert last == ["RUNNING", "RUNNING"]
