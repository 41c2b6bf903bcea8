"""The calls that two servers get, upstream's own and ours: a script for the stock client that says what is answered."""

from __future__ import annotations

CALLS = r'''
from iris.version import client_revision_date
from iris.rpc import time_pb2

said = {}

def say(name, call, *given, **more):
    """Keep what was answered to a call; of a refusal the code, of everything else what it gives."""
    try:
        said[name] = call(*given, **more)
    except (ConnectError, StatsError, ValueError, TimeoutError) as error:
        said[name] = error.code.name if isinstance(error, ConnectError) else type(error).__name__
    return said[name]

def asked(name, *command, **more):
    made = {"max_retries_preemption": 1000, "client_revision_date": client_revision_date(), **more}
    found = request(name, **made)
    if command:
        found.entrypoint.run_command.argv[:] = command
    return found

def launched(name, *command, **more):
    return raw.launch_job(asked(name, *command, **more)).job_id

def sh(script):
    return ("sh", "-c", script)

def ended(*names):
    for name in names:
        wait(name, timeout=90)

def job_of(name):
    return client.get_job_status(JobName.from_wire(name))

def kicked(*targets, state=job_pb2.TASK_STATE_PREEMPTED, **more):
    found = raw.kick_tasks(C.KickTasksRequest(targets=targets, desired_state=state, **more)).results
    return [[one.target, one.task_id, one.queued, one.detail] for one in found]

def listed(**more):
    found = raw.list_jobs(C.ListJobsRequest(query=C.JobQuery(**more)))
    return [[one.job_id for one in found.jobs], found.total_count, found.has_more]

def going(name):
    until(name, "RUNNING", tasks=["RUNNING"])

# names, of which the good ones make jobs

GOOD = ("/ann/0", "/ann/a b$%\u00e9", "/Ann.2/x:y", "/ann/deep")
BAD = ("", "ann", "/ann", "/ann/", "//x", "/ann/a//b", "/ann/ /x", "/ann/none/child", "/ann/deep/0")
for name in GOOD:
    say(f"launch {name}", launched, name, "sleep", "100")
for name in BAD:
    say(f"launch {name!r}", launched, name, "sleep", "100")
for name in GOOD:
    say(f"terminate {name}", lambda name=name: str(raw.terminate_job(C.TerminateJobRequest(job_id=name))))

# launches that ask for too much, or for what makes no sense

device = job_pb2.DeviceConfig
WRONG = {
    "no replicas": {"replicas": 0},
    "replicas below 0": {"replicas": -1},
    "retries below 0": {"max_retries_failure": -1},
    "failures below 0": {"max_task_failures": -5},
    "unknown policy": {"existing_job_policy": 9},
    "unknown band": {"priority_band": 77},
    "no group_by": {"coscheduling": job_pb2.CoschedulingConfig()},
    "cpu below 0": {"resources": needs(cpu=-5)},
    "too much cpu": {"resources": needs(cpu=1_000_000)},
    "too much memory": {"resources": needs(memory=1 << 50)},
    "no such gpu": {"resources": needs(device=device(gpu=job_pb2.GpuDevice(variant="H100", count=8)))},
    "no such tpu": {"resources": needs(device=device(tpu=job_pb2.TpuDevice(variant="v5litepod-16", count=4)))},
    "no such region": {"constraints": [
        job_pb2.Constraint(key="region", value=job_pb2.AttributeValue(string_value="mars"))]},
    "constraint by another operator": {"constraints": [job_pb2.Constraint(
        key="color", op=job_pb2.CONSTRAINT_OP_NE, value=job_pb2.AttributeValue(string_value="mars"))]},
    "no zip": {"bundle_blob": b"no zip"},
    "unknown bundle": {"bundle_id": "0" * 64},
    "two ports of one name": {"ports": ["a", "a"]},
    "a port that is no name": {"ports": ["a b"]},
    "a secret": {"environment": job_pb2.EnvironmentConfig(secrets={"A": "b"})},
    "privileged": {"container_profile": job_pb2.CONTAINER_PROFILE_PRIVILEGED},
    "without a network": {"egress_policy": job_pb2.EGRESS_POLICY_NONE},
    "an image": {"task_image": "busybox"},
    "no date": {"client_revision_date": "yesterday"},
    "an old client": {"client_revision_date": "2020-01-01"},
    "fail_if_exists": {"fail_if_exists": True},
    "preserve children": {"preemption_policy": job_pb2.JOB_PREEMPTION_POLICY_PRESERVE_CHILDREN},
}
for what, more in WRONG.items():
    name = f"/wrong/{what}"
    if say(f"launch: {what}", launched, name, "sleep", "100", **more) == name:
        raw.terminate_job(C.TerminateJobRequest(job_id=name))

# questions about what is not there

for name in ("bad", "/ann/none"):
    say(f"status of {name}", lambda: raw.get_job_status(C.GetJobStatusRequest(job_id=name)).job.job_id)
    say(f"terminate {name}", lambda: str(raw.terminate_job(C.TerminateJobRequest(job_id=name))))
    say(f"complete {name}", lambda: str(raw.complete_job(C.CompleteJobRequest(job_id=name))))
    say(f"state of {name}", lambda: dict(raw.get_job_state(C.GetJobStateRequest(job_ids=[name])).states))
for name in ("", "bad", "/ann/none"):
    say(f"tasks of {name!r}", lambda: len(raw.list_tasks(C.ListTasksRequest(job_id=name)).tasks))
for name in ("bad", "/ann/none", "/ann/none/0", "/ann/deep/7"):
    say(f"task {name}", lambda: raw.get_task_status(C.GetTaskStatusRequest(task_id=name)).task.task_id)
say("list too deep", listed, offset=5001)
say("children of nobody", listed, scope=3)
say("kick nothing", kicked)
say("kick to another state", kicked, "/ann/none", state=job_pb2.TASK_STATE_SUCCEEDED)
say("kick what is not there", kicked, "bad", "/ann/none", "/ann/none/7", "/ann/none/7:1")

# how jobs end

launched("/end/ok", *sh("echo out; echo err >&2"), replicas=2)
launched("/end/fails", *sh("exit 3"))
launched("/end/retries alone", *sh("exit 3"), max_retries_failure=2)
launched("/end/failures alone", *sh("exit 3"), max_task_failures=5)
launched("/end/within both", *sh("case $IRIS_TASK_ID in *:1) ;; *) exit 3;; esac"),
         max_retries_failure=2, max_task_failures=2)
launched("/end/both used up", *sh("exit 4"), max_retries_failure=1, max_task_failures=5)
launched("/end/capped", *sh("kill -9 $$"), max_retries_failure=5, max_task_failures=1)
launched("/end/terminated", "sleep", "100")
launched("/end/completed", "sleep", "100", replicas=2)
launched("/end/kicked", *sh("case $IRIS_TASK_ID in *:1) ;; *) sleep 100;; esac"))
launched("/end/kicked out", "sleep", "100", max_retries_preemption=0)
launched("/end/kicked to failed", "sleep", "100", max_retries_failure=5, max_task_failures=5)
launched("/end/kicked to fail at last", "sleep", "100")
launched("/end/no program", "/no/such/program")
launched("/end/too late", "sleep", "100", timeout=time_pb2.Duration(milliseconds=1500))
launch("/end/badly set up", "true", environment=EnvironmentSpec(setup_scripts=["exit 3"]))
launched("/end/one of two again", *sh("case $IRIS_TASK_ID in */0:0) exit 3;; esac; sleep 1"), replicas=2,
         max_retries_failure=1, max_task_failures=1)
launched("/end/one of two kicked", *sh("case $IRIS_TASK_ID in *:1) ;; *) sleep 15;; esac"), replicas=2)
launched("/end/one of two fails", *sh("case $IRIS_TASK_ID in */0:*) exit 3;; esac; sleep 3"), replicas=2)
for name in ("one of two kicked", "terminated", "completed", "kicked", "kicked out", "kicked to failed",
             "kicked to fail at last"):
    going(f"/end/{name}")
raw.terminate_job(C.TerminateJobRequest(job_id="/end/terminated"))
raw.complete_job(C.CompleteJobRequest(job_id="/end/completed"))
say("kick a stale attempt", kicked, "/end/kicked/0:7")
say("kick an attempt of a job", kicked, "/end/kicked:0")
say("kick", kicked, "/end/kicked/0:0", reason="because")
say("kick one of two", kicked, "/end/one of two kicked/0")
say("kick a job", kicked, "/end/kicked out")
say("kick to failed", kicked, "/end/kicked to failed", state=job_pb2.TASK_STATE_FAILED, reason="broken")
say("kick to failed at last", kicked, "/end/kicked to fail at last/0", state=job_pb2.TASK_STATE_FAILED,
    reason="broken")
ENDS = ("ok", "fails", "retries alone", "failures alone", "within both", "both used up", "capped", "terminated",
        "completed", "kicked", "kicked out", "kicked to fail at last", "no program", "too late", "one of two fails",
        "one of two again", "one of two kicked", "badly set up")
ended(*(f"/end/{name}" for name in ENDS))
for name in ENDS:
    say(f"end: {name}", told, f"/end/{name}")
    if name != "badly set up":  # which quotes the log
        say(f"error: {name}", lambda: job_of(f"/end/{name}").error)
raw.terminate_job(C.TerminateJobRequest(job_id="/end/kicked to failed"))
ended("/end/kicked to failed")
say("end: kicked to failed", told, "/end/kicked to failed")
say("kick what has ended", kicked, "/end/ok", "/end/ok/1", "/end/ok/9")
for name in ("terminate", "complete"):
    call = getattr(raw, f"{name}_job")
    sent = getattr(C, f"{name.title()}JobRequest")
    say(f"{name} what has ended", lambda: [str(call(sent(job_id="/end/fails"))), state("/end/fails")])

# what is told of a job

def fields(name):
    one, request = job_of(name), raw.get_job_status(C.GetJobStatusRequest(job_id=name)).request
    times = [one.submitted_at.epoch_ms, one.started_at.epoch_ms, one.finished_at.epoch_ms]
    return {
        "job": [one.job_id, one.name, one.exit_code, one.task_count, one.completed_count, dict(one.task_state_counts),
                one.has_children, one.parent_job_id, one.backend_id, one.cluster, one.resources.cpu_millicores,
                one.resources.memory_bytes, one.pending_reason],
        "times": times == sorted(times) and times[0] > 0,
        "request": [request.name, request.replicas, list(request.entrypoint.run_command.argv),
                    request.max_retries_failure, request.max_task_failures, list(request.ports)],
    }

for name in ("ok", "fails", "terminated"):
    say(f"fields of {name}", fields, f"/end/{name}")
one = client.get_task_status(JobName.from_wire("/end/fails/0"))
say("fields of a task", lambda: [one.task_id, one.error, one.backend_id, one.cluster, one.current_attempt_id,
    [[each.attempt_id, each.error, each.is_worker_failure, len(each.attempt_uid) > 0] for each in one.attempts]])

# who has a name

POLICIES = {"NONE": 0, "ERROR": 1, "KEEP": 2, "RECREATE": 3}
for policy, number in POLICIES.items():
    name = f"/name/{policy}"
    launched(name, "sleep", "100")
    going(name)
    before = client.list_tasks(JobName.from_wire(name))[0].attempts[0].attempt_uid
    say(f"launch while it runs: {policy}", launched, name, "sleep", "100", existing_job_policy=number)
    going(name)
    after = client.list_tasks(JobName.from_wire(name))[0].attempts[0].attempt_uid
    say(f"another runs then: {policy}", lambda: before != after)
    raw.terminate_job(C.TerminateJobRequest(job_id=name))
    ended(name)
    say(f"launch when it has ended: {policy}", launched, name, "true", existing_job_policy=number)
    ended(name)
    say(f"jobs of that name then: {policy}", listed, job_id_prefix=name)
    say(f"it is: {policy}", state, name)
same = asked("/name/same", "sleep", "100")
say("the same launch at once", lambda: [raw.launch_job(same).job_id, refused(raw.launch_job, same)[0]])

# families

launched("/kin/top", "sleep", "100")
launched("/kin/topless", "sleep", "100")
say("launch a child", launched, "/kin/top/kid", "sleep", "100")
launched("/kin/top/kid/grand", "sleep", "100")
going("/kin/top/kid/grand")
say("a parent", lambda: [job_of("/kin/top").has_children, job_of("/kin/top").parent_job_id])
say("a child", lambda: [job_of("/kin/top/kid").has_children, job_of("/kin/top/kid").parent_job_id])
say("the children of one", listed, scope=3, parent_job_id="/kin/top")
say("the roots", listed, scope=2, job_id_prefix="/kin/")
raw.terminate_job(C.TerminateJobRequest(job_id="/kin/top"))
ended("/kin/top", "/kin/top/kid", "/kin/top/kid/grand")
say("a family that was terminated", lambda: [state(one) for one in ("/kin/top", "/kin/top/kid", "/kin/top/kid/grand")])
say("another that begins alike", lambda: state("/kin/topless") in ("PENDING", "RUNNING"))
say("launch a child of what has ended", launched, "/kin/top/late", "true")
launched("/kin/top", "sleep", "100")
say("children once their parent is another", listed, job_id_prefix="/kin/top/")
for name, script in (("succeeds", "sleep 6"), ("breaks", "sleep 6; exit 3")):
    launched(f"/kin/{name}", *sh(script))
    launched(f"/kin/{name}/kid", "sleep", "100")
    ended(f"/kin/{name}", f"/kin/{name}/kid")
    say(f"a child whose parent {name}", lambda: state(f"/kin/{name}/kid"))
for name in ("top", "topless", "succeeds", "breaks"):
    raw.terminate_job(C.TerminateJobRequest(job_id=f"/kin/{name}"))

# lists

for number in range(7):
    launched(f"/list/p{number}", *sh(f"exit {number % 2}"))
launched("/list/q_1", "true")
launched("/list/Q%1", "true")
ended(*(f"/list/p{number}" for number in range(7)), "/list/q_1", "/list/Q%1")
LISTS = {
    "a prefix": {"job_id_prefix": "/list/p"},
    "a prefix that is no segment": {"job_id_prefix": "/li"},
    "a prefix of one job": {"job_id_prefix": "/list/p3"},
    "a prefix within names": {"job_id_prefix": "list/"},
    "a prefix with a percent sign": {"job_id_prefix": "/list/Q%"},
    "a prefix with an underscore": {"job_id_prefix": "/list/q_"},
    "a prefix in another case": {"job_id_prefix": "/LIST/"},
    "a name": {"name_filter": "P3"},
    "a name with an underscore": {"name_filter": "q_", "job_id_prefix": "/list/"},
    "a name of a user": {"name_filter": "list", "job_id_prefix": "/list/"},
    "a state": {"state_filter": "failed", "job_id_prefix": "/list/"},
    "a state in capitals": {"state_filter": "FAILED", "job_id_prefix": "/list/"},
    "an unknown state": {"state_filter": "bogus"},
    "a page": {"job_id_prefix": "/list/p", "limit": 3},
    "the next page": {"job_id_prefix": "/list/p", "limit": 3, "offset": 3},
    "the last page": {"job_id_prefix": "/list/p", "limit": 3, "offset": 6},
    "beyond the end": {"job_id_prefix": "/list/p", "limit": 3, "offset": 60},
    "below the beginning": {"job_id_prefix": "/list/p", "limit": 1, "offset": -5},
    "a limit below 0": {"job_id_prefix": "/list/p", "limit": -1},
    "by name": {"job_id_prefix": "/list/p", "sort_field": 2, "limit": 2},
    "by name from the end": {"job_id_prefix": "/list/p", "sort_field": 2, "sort_direction": 2, "limit": 2},
    "by date from the beginning": {"job_id_prefix": "/list/p", "sort_field": 1, "sort_direction": 1, "limit": 2},
    "of another cluster": {"job_id_prefix": "/list/p", "cluster": "elsewhere"},
    "of another backend": {"job_id_prefix": "/list/p", "backend_id": "elsewhere"},
    "of this backend": {"job_id_prefix": "/list/p3", "backend_id": "default"},
}
for what, query in LISTS.items():
    say(f"list: {what}", listed, **query)
say("states of many", lambda: dict(raw.get_job_state(
    C.GetJobStateRequest(job_ids=["/list/p0", "/list/p1", "/list/p1", "/list/none", "bad"])).states))

# lines

# Of lines that come at once, a worker of theirs reads the first, and the others when the program ends.
launched("/log/talk", *sh("for n in 1 2 3 4 5; do echo line $n; sleep 1; done; echo last; sleep 40"), replicas=2)
launched("/log/talk/kid", *sh("echo below"))
launched("/log/levels", *sh("echo ERROR: told; echo err >&2"))
ended("/log/talk/kid", "/log/levels")
EXACT, PREFIX, REGEX = (getattr(logging_pb2, f"MATCH_SCOPE_{one}") for one in ("EXACT", "PREFIX", "REGEX"))

def settled(source, number):
    """Wait for the last line of an attempt: lines go to a store of their own there."""
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        if len(client.fetch_logs(source, match_scope=EXACT).entries) >= number:
            return
        time.sleep(0.3)

for source, number in {"talk/0:0": 6, "talk/1:0": 6, "talk/kid/0:0": 1, "levels/0:0": 2}.items():
    settled(f"/log/{source}", number)

def printed(source, scope, **more):
    return sorted(lines(source, scope, **more))

LOGS = {
    "of a task": ("/log/talk/0:", PREFIX, {}),
    "of an attempt": ("/log/talk/0:0", EXACT, {}),
    "of a job and its children": ("/log/talk/", PREFIX, {}),
    "of part of a name": ("/log/ta", PREFIX, {}),
    "of nothing": ("/log/none/", PREFIX, {}),
    "of an attempt that is not there": ("/log/talk/0:7", EXACT, {}),
    "the last": ("/log/talk/1:0", EXACT, {"tail": True, "max_lines": 2}),
    "the first": ("/log/talk/1:0", EXACT, {"max_lines": 2}),
    "with a text": ("/log/talk/1:0", EXACT, {"substring": "line 3"}),
    "from a level on": ("/log/levels/0:0", EXACT, {"min_level": "ERROR"}),
    "by a pattern": ("/log/talk/1:.*", REGEX, {}),
}
for what, (source, scope, more) in LOGS.items():
    say(f"lines: {what}", printed, source, scope, **more)

raw.terminate_job(C.TerminateJobRequest(job_id="/log/talk"))
ended("/log/talk")

def in_parts(source):
    cursor, found = 0, []
    for _ in range(20):
        part = client.fetch_logs(source, match_scope=EXACT, cursor=cursor, max_lines=2)
        found += [one.data for one in part.entries]
        cursor = part.cursor
    return found

say("lines: in parts", in_parts, "/log/talk/0:0")

# what a task finds

launched("/env/a", *sh("env | grep -o '^IRIS_[A-Z_]*' | sort -u; echo $A $IRIS_NUM_TASKS $IRIS_TASK_ID"),
         ports=["http"], environment=job_pb2.EnvironmentConfig(env_vars={"A": "b"}))
ended("/env/a")
settled("/env/a/0:0", 18)

def variables():
    return printed("/env/a/0:0", EXACT)

say("variables of a task", lambda: [one for one in variables() if one[1] != "IRIS_TASK_TOKEN"])
say("token of a task", lambda: ["", "IRIS_TASK_TOKEN"] in variables())
for name in ("/env/one", "/env/other"):
    launched(name, "sleep", "100")
    going(name)

def registered(name, task_id, **more):
    sent = C.RegisterEndpointRequest(name=name, address="127.0.0.1:1", task_id=task_id, **more)
    return endpoints.register_endpoint(sent).endpoint_id

def endpoints_of(prefix, exact=False):
    found = endpoints.list_endpoints(C.ListEndpointsRequest(prefix=prefix, exact=exact)).endpoints
    return sorted([one.name, one.task_id] for one in found)

say("register an endpoint", registered, "/env/a/x", "/env/one/0", endpoint_id="one")
say("register it again", registered, "/env/a/x", "/env/one/0", endpoint_id="one")
say("the endpoint of a name", endpoints_of, "/env/a/x", exact=True)
say("endpoints by part of a name", endpoints_of, "/env/a")
say("register one of another's id", registered, "/env/a/y", "/env/other/0", endpoint_id="one")
say("register one of an attempt that is over", registered, "/env/a/z", "/env/one/0", attempt_id=7)
say("register one of a task that is not there", registered, "/env/a/z", "/env/none/0")
say("register one of what is no task", registered, "/env/a/z", "/env/one")
say("endpoints", lambda: len(endpoints_of("/env/a/")))
say("endpoints of the system", endpoints_of, "/system/")
say("the endpoint for logs", endpoints_of, "/system/log-server", exact=True)
say("endpoints of the system by part of a name", endpoints_of, "/system/lo")
say("one of the system that is not there", endpoints_of, "/system/log", exact=True)
say("forget an endpoint", lambda: str(endpoints.unregister_endpoint(C.UnregisterEndpointRequest(endpoint_id="none"))))
for name in ("/env/one", "/env/other"):
    raw.terminate_job(C.TerminateJobRequest(job_id=name))
ended("/env/one", "/env/other")
say("endpoints of what has ended", endpoints_of, "/env/a/")
say("workers", lambda: [one.healthy for one in client.list_workers()][:1])
done(said)
'''
