"""What tasks of Iris' users find around them: their files, their environment and, for callables, a Python."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.e2e.iris_stage import door
from tools.clients import python_of

if TYPE_CHECKING:
    from tests.e2e.iris_stage import IrisServer

__all__ = ["door"]
pytestmark = pytest.mark.slow  # the client alone takes seconds to be imported
VENV = """
mkdir -p "$IRIS_VENV/bin"
printf '#!/bin/sh\\nexec {python} "$@"\\n' > "$IRIS_VENV/bin/python"
chmod +x "$IRIS_VENV/bin/python"
touch "$IRIS_VENV/bin/activate"
"""
"""An environment as setup scripts leave it: a Python of the client's version, as its functions need."""


def test_a_function_is_run_with_its_arguments_after_its_environment_was_set_up(door: IrisServer) -> None:
    state, printed, failed, trace = door.iris()(
        """
def add(one, two=0):
    import os
    print("sum", one + two, os.environ["IRIS_TASK_ID"])

def fail():
    raise ValueError("no such thing")

def submit(name, function, *args, **kwargs):
    environment = EnvironmentSpec(setup_scripts=[venv]).to_proto()
    entry = Entrypoint.from_callable(function, *args, **kwargs)
    client.submit_job(JobName.from_wire(name), entry, needs(memory=512 << 20), environment=environment)

submit("/ann/add", add, 40, two=2)
submit("/ann/fail", fail)
state, failed = int(wait("/ann/add").state), wait("/ann/fail")
done([state, [text for _, text in lines("/ann/add/")], [int(failed.state), failed.error],
      [text for _, text in lines("/ann/fail/")]])
""",
        venv=VENV.format(python=python_of("iris")),
    )
    assert (state, failed) == (4, [5, "Exit code: 1"])
    assert "[iris setup] step 1/2" in printed
    assert "sum 42 /ann/add/0:0" in printed
    assert trace[-1] == "ValueError: no such thing"


def test_functions_without_scripts_run_with_the_python_that_is_set_which_is_checked_at_submission(
    door: IrisServer,
) -> None:
    bare = door.folder / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    door.environ = {**door.environ, "HOLDFAST_FLUSTER_PYTHON": str(bare)}
    script = """
def submit(name, *scripts):
    entry = Entrypoint.from_callable(lambda: print("called"))
    environment = EnvironmentSpec(setup_scripts=[*scripts]).to_proto()
    return refused(client.submit_job, JobName.from_wire(name), entry, needs(memory=512 << 20), environment=environment)
"""
    alone, scripted, command = door.iris()(
        script
        + """
done([submit("/ann/alone"), submit("/ann/scripted", "true")[0], refused(raw.launch_job, request("/ann/command"))[0]])
"""
    )
    assert (alone[0], scripted, command) == ("INVALID_ARGUMENT", "OK", "OK")
    assert "No module named 'cloudpickle'" in alone[1]
    door.end()
    door.environ = {**door.environ, "HOLDFAST_FLUSTER_PYTHON": str(python_of("iris"))}
    said = door.iris()(
        script
        + """
submit("/ann/alone")
done([int(wait("/ann/alone").state), [text for _, text in lines("/ann/alone/")]])
"""
    )
    assert said == [4, ["called"]]


def test_the_files_of_a_workspace_are_there_for_a_job_and_for_its_children(door: IrisServer) -> None:
    iris, folder = door.iris(), door.folder / "work"
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / "told.txt").write_text("brought along")
    (folder / "large.bin").write_bytes(bytes(100_000))
    script = 'cat "$IRIS_WORKDIR/lib/told.txt"; echo; wc -c < large.bin; echo $IRIS_BUNDLE_ID'
    ran = iris.command(
        "job", "run", "--no-sync", "--job-name", "files", "--user", "ann", "--", "sh", "-c", script, cwd=folder
    )
    assert ran.returncode == 0, ran.stderr
    printed, again, unknown = iris(
        """
printed = [text for _, text in lines("/ann/files/")]
again = request("/ann/again", bundle_id=printed[-1])
again.entrypoint.run_command.argv[:] = ["cat", "lib/told.txt"]
raw.launch_job(again)
wait("/ann/again")
done([printed, [text for _, text in lines("/ann/again/")],
      refused(raw.launch_job, request("/ann/none", bundle_id="0" * 64))[0]])
"""
    )
    assert printed[:2] == ["brought along", "100000"]
    assert again == ["brought along"]
    assert unknown == "INVALID_ARGUMENT"


def test_a_tool_that_the_machine_lacks_is_a_launch_that_failed_and_is_named(door: IrisServer) -> None:
    state, failures, error, printed = door.iris()(
        """
launch("/ann/tool", "echo", "never", environment=EnvironmentSpec(setup_scripts=["set -e\\nno-such-tool sync"]))
ended = wait("/ann/tool", timeout=120)
done([int(ended.state), ended.failure_count, ended.error, [text for _, text in lines("/ann/tool/")]])
"""
    )
    assert (state, failures) == (7, 0)
    assert "exit code 127" in error
    assert any("no-such-tool: command not found" in line for line in printed)
    assert "never" not in printed


def test_a_task_launches_and_waits_for_a_child_by_what_it_is_told_with_its_own_token(door: IrisServer) -> None:
    ended, family = door.iris()(
        """
script = '''
import os
from iris.cluster.client.job_info import get_job_info
from iris.cluster.client.remote_client import RemoteClusterClient
from iris.cluster.types import Entrypoint, EnvironmentSpec, JobName, TaskAttempt
from iris.rpc import job_pb2
shown = get_job_info().credentials.interceptors()
assert shown
client = RemoteClusterClient(os.environ["IRIS_CONTROLLER_URL"], timeout_ms=20000, interceptors=shown)
me = TaskAttempt.from_wire(os.environ["IRIS_TASK_ID"]).task_id.parent
child = client.submit_job(
    me.child("kid"), Entrypoint.from_command("echo", "from below"),
    job_pb2.ResourceSpecProto(cpu_millicores=100, memory_bytes=64 << 20),
    environment=EnvironmentSpec(setup_scripts=[]).to_proto())
raise SystemExit(client.wait_for_job(child, timeout=60, poll_interval=0.2).state != 4)
'''
launch("/ann/top", python, "-c", script, needs=needs(memory=1 << 30))
ended = int(wait("/ann/top", timeout=120).state)
done([ended, sorted(text for key, text in lines("/ann/top/") if key.startswith("/ann/top/kid/"))])
""",
        python=str(python_of("iris")),
    )
    assert (ended, family) == (4, ["from below"])


def test_a_task_reads_what_its_children_print_by_the_server_that_it_is_told_of(door: IrisServer) -> None:
    door.environ = {**door.environ, "HOLDFAST_FLUSTER_PYTHON": str(python_of("iris"))}
    ended, printed = door.iris()(
        """
def top():
    from iris.client.client import iris_ctx
    from iris.cluster.types import Entrypoint, ResourceSpec
    context = iris_ctx()
    entry = Entrypoint.from_command("echo", "from below")
    child = context.client.submit(entry, "kid", ResourceSpec(cpu=0.1, memory="64m"))
    child.wait(timeout=60, poll_interval=0.2, stream_logs=True)
    print("read:", [one.data for one in child.logs()])
    context.client.report_task_status_text(context.task_attempt.task_id, 0, "# all", "all")
    print("told")

entry, environment = Entrypoint.from_callable(top), EnvironmentSpec(setup_scripts=[]).to_proto()
client.submit_job(JobName.from_wire("/ann/top"), entry, needs(memory=1 << 30), environment=environment)
ended = int(wait("/ann/top", timeout=120).state)
done([ended, [text for key, text in lines("/ann/top/") if key.startswith("/ann/top/0:")]])
"""
    )
    assert ended == 4
    assert "read: ['from below']" in printed
    assert any("task=/ann/top/kid/0:0 | from below" in line for line in printed)
    assert "told" in printed


def test_endpoints_are_those_of_attempts_that_run_while_their_lease_lasts(door: IrisServer) -> None:
    leases, found, refusals, renewed, after = door.iris()(
        """
def names(**more):
    return [[one.name, one.address, one.task_id, dict(one.metadata)] for one in
            endpoints.list_endpoints(C.ListEndpointsRequest(**more)).endpoints]

def register(**more):
    asked = {"name": "/x/y", "address": "h:1", "task_id": "/ann/serve/0", "endpoint_id": "e1", **more}
    return endpoints.register_endpoint(C.RegisterEndpointRequest(**asked))

launch("/ann/serve", "sleep", "100", replicas=2)
until("/ann/serve", "RUNNING", tasks=["RUNNING"])
leases = [register(metadata={"a": "b"}).lease_duration.milliseconds,
          register(endpoint_id="e2", name="/x/z", task_id="/ann/serve/1",
                   lease_duration=duration_to_proto(Duration.from_seconds(45))).lease_duration.milliseconds]
found = [names(prefix="/x"), names(prefix="/x/y", exact=True), names(prefix="/x", exact=True),
         names(task_ids=["/ann/serve/1"])]
launch("/ann/other", "sleep", "100")
until("/ann/other", "RUNNING", tasks=["RUNNING"])
refusals = [refused(register, **more)[0] for more in (
    {"attempt_id": 5}, {"task_id": "/ann/none/0"}, {"task_id": "/ann/serve/9"}, {"task_id": "/ann/serve"},
    {"name": ""}, {"address": "h" * 2000}, {"metadata": {"a": "b" * 5000}},
    {"task_id": "/ann/other/0"})]
refusals.append(refused(endpoints.list_endpoints, C.ListEndpointsRequest(task_ids=["bad"]))[0])
register(address="h:2")
renewed = names(prefix="/x/y")
endpoints.unregister_endpoint(C.UnregisterEndpointRequest(endpoint_id="e1"))
endpoints.unregister_endpoint(C.UnregisterEndpointRequest(endpoint_id="nobody's"))
gone = names(prefix="/x/y")
client.kick_tasks(["/ann/serve"], job_pb2.TASK_STATE_PREEMPTED, "")
deadline = time.monotonic() + 60
while names() and time.monotonic() < deadline:
    time.sleep(0.05)
done([leases, found, refusals, renewed, [gone, names()]])
"""
    )
    one = ["/x/y", "h:1", "/ann/serve/0", {"a": "b"}]
    two = ["/x/z", "h:1", "/ann/serve/1", {}]
    assert leases == [600_000, 180_000]
    assert found == [[one, two], [one], [], [two]]
    wrong, conflict = "INVALID_ARGUMENT", "FAILED_PRECONDITION"
    assert refusals == [conflict, "NOT_FOUND", "NOT_FOUND", wrong, wrong, wrong, wrong, conflict, wrong]
    assert renewed == [["/x/y", "h:2", "/ann/serve/0", {}]]
    assert after == [[], []]
