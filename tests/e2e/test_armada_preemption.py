"""Places are taken by Armada's own client, and what its watchers are told of it is what upstream tells."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import pytest

from tests.e2e.armada_stage import door
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from tests.e2e.armada_stage import DoorServer

__all__ = ["door"]
RUNS = """
import time
def run_until(ids, *wanted):
    while not {states([one])[one] for one in ids} <= set(wanted):
        time.sleep(0.02)
def preemptible(*args, **more):
    one = item(*args, **more)
    one.pod_spec.priorityClassName = "armada-preemptible"
    return one
ONCE = 'test "$HOLDFAST_ATTEMPT" = 1 && exec sleep 1000; exit 0'
"""


def told_of(events: list[list[object]], job: str) -> list[str]:
    """What a job's watchers are told, each once where it is told twice in a row."""
    return [kind for kind, _ in groupby(str(kind) for _, kind, of, _ in events if of == job)]


def test_a_preempted_job_that_no_policy_retries_ends_as_preempted_and_names_who_asked(door: DoorServer) -> None:
    stock = door.open()
    job, answer, again, events, state, errors, runs = stock(
        RUNS
        + """
a_queue()
[job] = submitted("ml", "s", preemptible("sleep", "1000"))
run_until([job], "RUNNING")
answer = dict(client.preempt_jobs("ml", "s", job).preemption_results)
again = dict(client.preempt_jobs("ml", "s", job).preemption_results)
events = told("ml", "s", 1)
details = client.get_job_details([job]).job_details[job]
done([job, answer, again, events, states([job])[job], client.get_job_errors([job]).job_errors[job],
      [job_pb2.JobRunState.Name(run.state) for run in details.job_runs]])
"""
    )
    assert answer == again == {job: ""}
    assert told_of(events, job) == [
        "submitted",
        "queued",
        "leased",
        "pending",
        "running",
        "preempting",
        "preempted",
    ]
    assert (state, runs) == ("PREEMPTED", ["RUN_STATE_PREEMPTED"])
    [outcome] = [one for _, kind, _, one in events if kind == "preempted"]
    assert (outcome["requestor"], outcome["runId"]) == ("ann", f"{job}-1-0-1")
    assert outcome["reason"] == "Preempted - preemption requested via API"
    assert {one["requestor"] for _, kind, _, one in events if kind == "preempting"} == {"ann"}
    assert errors


def test_a_preempted_job_that_a_policy_retries_is_told_as_a_failure_that_is_retried(door: DoorServer) -> None:
    stock = door.open("user")
    policy = """
    {apiVersion: armadaproject.io/v1, kind: RetryPolicy, metadata: {name: infra}, spec: {retryLimit: 1,
     defaultAction: Fail, rules: [{action: Retry, onConditions: [Preempted]}]}}
    """
    assert door.run("create", "-f", "-", text=policy).returncode == 0
    assert door.run("create", "queue", "ml", "--retry-policy", "infra").returncode == 0
    once, twice, events, state = stock(
        RUNS
        + """
once, twice = submitted("ml", "s", preemptible("sh", "-c", ONCE), preemptible("sleep", "1000"))
run_until([once, twice], "RUNNING")
for job in (once, twice):
    client.preempt_jobs("ml", "s", job)
run_until([once], "SUCCEEDED")
def runs(): return client.get_job_details([twice]).job_details[twice].job_runs
while len(runs()) < 2 or states([twice])[twice] != "RUNNING":
    time.sleep(0.02)
client.preempt_jobs("ml", "s", twice)
done([once, twice, told("ml", "s", 2), states([once, twice])])
"""
    )
    assert state == {once: "SUCCEEDED", twice: "PREEMPTED"}
    first = ["submitted", "queued", "leased", "pending", "running", "preempting", "failed", "leased", "pending"]
    assert told_of(events, once)[:9] == first
    assert "preempted" not in told_of(events, once)
    assert told_of(events, twice) == [*first, "running", "preempting", "preempted"]
    failed = next(one for _, kind, of, one in events if (kind, of) == ("failed", once))
    assert failed["retryable"]
    requestors = {one["requestor"] for _, kind, _, one in events if kind in {"preempting", "preempted"}}
    assert requestors == {"ann"}, "also for who may not read the audit log"


@pytest.mark.slow
def test_what_runs_in_a_queue_is_preempted_and_what_is_there_cancelled_by_class_and_state(door: DoorServer) -> None:
    stock = door.open()
    found = stock(
        RUNS
        + """
queues = submit_pb2_grpc.QueueServiceStub(channel)
a_queue()
plain, soft = submitted("ml", "s", item("sleep", "1000"), preemptible("sleep", "1000"))
run_until([plain, soft], "RUNNING")
queues.PreemptOnQueue(submit_pb2.QueuePreemptRequest(name="ml", priorityClasses=["armada-preemptible"], pools=["gpu"]))
queues.PreemptOnQueue(submit_pb2.QueuePreemptRequest(name="ml", priorityClasses=["armada-preemptible"]))
run_until([soft], "PREEMPTED")
first = states([plain, soft])
def cancel(*states, **more):
    queues.CancelOnQueue(submit_pb2.QueueCancelRequest(name="ml", jobStates=states, **more))
cancel(submit_pb2.QUEUED)
cancel(submit_pb2.RUNNING, priorityClasses=["armada-preemptible"])
second = states([plain])[plain]
cancel(submit_pb2.RUNNING, submit_pb2.PENDING, submit_pb2.LEASED)
run_until([plain], "CANCELLED")
events = told("ml", "s", 2)
done([plain, soft, first, second, events,
      refused(lambda: queues.CancelOnQueue(submit_pb2.QueueCancelRequest(jobStates=[submit_pb2.QUEUED]))),
      refused(lambda: cancel(submit_pb2.SUCCEEDED)),
      refused(lambda: queues.PreemptOnQueue(submit_pb2.QueuePreemptRequest()))])
"""
    )
    plain, soft, first, second, events, nameless, ended, nobody = found
    assert first == {plain: "RUNNING", soft: "PREEMPTED"}
    assert second == "RUNNING"
    assert told_of(events, plain)[-2:] == ["cancelling", "cancelled"]
    assert nameless == ["INVALID_ARGUMENT", "cannot cancel jobs on queue with empty name"]
    assert ended == ["INVALID_ARGUMENT", "provided job states must be non-terminal"]
    assert nobody == ["INVALID_ARGUMENT", "cannot preempt jobs on queue with empty name"]


@pytest.mark.slow
def test_a_watch_that_begins_after_the_request_still_names_who_asked(door: DoorServer) -> None:
    stock = door.open()
    found = stock(
        RUNS
        + """
a_queue()
[job] = submitted("ml", "s", preemptible("sh", "-c", "trap '' TERM; sleep 1000", grace=5))
run_until([job], "RUNNING")
client.preempt_jobs("ml", "s", job)
stream = client.get_job_events_stream("ml", "s")
last = next(raw.id for raw in stream if client.unmarshal_event_response(raw).type.name == "preempting")
stream.cancel()
run_until([job], "PREEMPTED")
for raw in client.get_job_events_stream("ml", "s", last):
    one = client.unmarshal_event_response(raw)
    if one.type.name == "preempted":
        done(one.message.requestor)
        break
""".replace(", grace=5))", "))")
    )
    assert found == "ann"


def test_jobs_are_reprioritized_by_id_and_by_set_and_a_group_by_the_command_line(door: DoorServer) -> None:
    stock = door.open("user")
    a, b, by_id, by_set, events, other = stock(
        RUNS
        + """
a, b, other = [submitted("default", name, item("sleep", "1000"))[0] for name in ("s", "s", "t")]
by_id = dict(client.reprioritize_jobs(2.0, [a], "s", "default").reprioritization_results)
stream = client.get_job_events_stream("default", "s")
next(raw for raw in stream if client.unmarshal_event_response(raw).type.name == "reprioritized")  # or both come at once
stream.cancel()
by_set = dict(client.reprioritize_jobs(3.0, None, "s", "default").reprioritization_results)
found = []
for raw in client.get_job_events_stream("default", "s"):
    one = client.unmarshal_event_response(raw)
    found.append([raw.id, one.type.name, one.message.job_id, json_format.MessageToDict(one.message)])
    if [kind for _, kind, _, _ in found].count("reprioritized") == 3:
        break
done([a, b, by_id, by_set, found, other])
"""
    )
    assert (by_id, by_set) == ({a: ""}, {"all jobs in job set s": ""})
    told = [(kind, of, one["newPriority"], one["requestor"]) for _, kind, of, one in events if "repriorit" in kind]
    assert [one for one in told if one[1] == a] == [
        ("reprioritizing", a, 2.0, "ann"),
        ("reprioritized", a, 2.0, "ann"),
        ("reprioritizing", a, 3.0, "ann"),
        ("reprioritized", a, 3.0, "ann"),
    ]
    assert [one for one in told if one[1] == b] == [("reprioritizing", b, 3.0, "ann"), ("reprioritized", b, 3.0, "ann")]
    asked = door.run("reprioritize", "s", "--priority", "-7")
    assert (asked.returncode, len(asked.stdout.splitlines())) == (0, 2), asked.stderr
    with door.client() as client:
        wait_until(lambda: {client.job(one).priority for one in (a, b)} == {-7}, "the whole group has it")
        assert client.job(other).priority == -1, "another set is left alone"
