"""What the examples and integration tests of Armada's Python client do, by that client, unmodified.

Written from their flow: its examples leave out the namespace, which upstream refuses too, and wait for a kind of event
that the client no longer has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.armada_stage import door

if TYPE_CHECKING:
    from tests.e2e.armada_stage import DoorServer

__all__ = ["door"]
pytestmark = pytest.mark.slow
DUMMY = """
import time
from armada_client.permissions import Permissions, Subject

def dummy(seconds="1000"):
    some = {"cpu": amount.Quantity(string="120m"), "memory": amount.Quantity(string="510Mi")}
    program = core.Container(
        name="container1", image="index.docker.io/library/ubuntu:latest", args=["sleep", seconds],
        securityContext=core.SecurityContext(runAsUser=1000),
        resources=core.ResourceRequirements(requests=some, limits=some))
    return bare(program, priority=1)

def queue_once(name):
    wanted = client.create_queue_request(name=name, priority_factor=1)
    try:
        client.create_queue(wanted)
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.ALREADY_EXISTS
        client.update_queue(wanted)

def until(stream, job, kind):
    for raw in stream:
        one = client.unmarshal_event_response(raw)
        if one.message.job_id == job and one.type.name in (kind, "failed", "cancelled"):
            client.unwatch_events(stream)
            return one.type.name

def state_until(job, *wanted):
    while (found := states([job])[job]) not in wanted:
        time.sleep(0.05)
    return found
"""


def test_queues_with_owners_permissions_and_limits_are_made_alone_and_in_batches(door: DoorServer) -> None:
    made, batch, factors, listed = door.open()(
        DUMMY
        + """
subject = Subject(kind="Group", name="group1")
def wanted(name, factor=3.0):
    return client.create_queue_request(
        name=name, priority_factor=factor, user_owners=["user1"], group_owners=["group1"],
        resource_limits={"cpu": 1.0, "memory": 1.0},
        permissions=[Permissions(subjects=[subject], verbs=["cancel", "reprioritize"])])
client.create_queue(wanted("one"))
made = json_format.MessageToDict(client.get_queue(name="one"))
batch = [len(client.create_queues([wanted("one"), wanted("two")]).failed_queues),
         len(client.update_queues([wanted("one", 2.0), wanted("two", 2.0)]).failed_queues)]
factors = [client.get_queue(name=name).priority_factor for name in ("one", "two")]
done([made, batch, factors, sorted(one.name for one in client.get_queues())])
"""
    )
    assert made["priorityFactor"] == 3.0
    assert {"subjects": [{"kind": "Group", "name": "group1"}], "verbs": ["cancel", "reprioritize"]} in made[
        "permissions"
    ]
    assert (batch, factors) == ([0, 0], [2.0, 2.0])
    assert {"one", "two"} <= set(listed)


def test_a_job_is_submitted_reprioritized_with_its_set_and_waited_for(door: DoorServer) -> None:
    ended, answer, factor = door.open()(
        DUMMY
        + """
queue_once("test-general")
queue_once("test-general")
client.update_queue(client.create_queue_request(name="test-general", priority_factor=2))
[job] = submitted("test-general", "set", dummy("1"))
answer = dict(client.reprioritize_jobs(
    new_priority=2, job_ids=[], queue="test-general", job_set_id="set").reprioritization_results)
stream = client.get_job_events_stream(queue="test-general", job_set_id="set")
done([until(stream, job, "succeeded"), answer, client.get_queue(name="test-general").priority_factor])
"""
    )
    assert (ended, factor) == ("succeeded", 2.0)
    assert answer == {"all jobs in job set set": ""}


def test_a_set_is_watched_by_one_thread_while_another_submits_and_cancels(door: DoorServer) -> None:
    seen, cancelled = door.open()(
        DUMMY
        + """
from concurrent.futures import ThreadPoolExecutor
def watch():
    over, found = 0, []
    while True:
        try:
            for raw in client.get_job_events_stream("test-monitor", "set"):
                one = client.unmarshal_event_response(raw)
                found.append([one.type.name, one.message.job_id])
                over += one.type.name in ("succeeded", "cancelled")
                if over == 3:
                    return found
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.NOT_FOUND  # not there yet
            time.sleep(0.05)
with ThreadPoolExecutor(1) as pool:
    watching = pool.submit(watch)
    queue_once("test-monitor")
    first = submitted("test-monitor", "set", *[dummy("1") for _ in range(3)])[0]
    client.cancel_jobs(queue="test-monitor", job_id=first, job_set_id="set")
    done([watching.result(), first])
"""
    )
    assert sorted(kind for kind, _ in seen if kind in {"succeeded", "cancelled"}) == ["cancelled", *["succeeded"] * 2]
    assert ["cancelled", cancelled] in seen


def test_jobs_are_cancelled_by_id_by_set_and_by_state_and_preempted_by_id(door: DoorServer) -> None:
    by_id, preempted, ends = door.open()(
        DUMMY
        + """
queue_once("q")
one, two, three, four = (submitted("q", f"set {n}", dummy())[0] for n in range(4))
by_id = list(client.cancel_jobs(queue="q", job_set_id="set 0", job_id=one).cancelled_ids)
client.cancel_jobs(queue="q", job_set_id="set 1")
for job in (three, four):
    state_until(job, "RUNNING")
client.cancel_jobset(queue="q", job_set_id="set 2", filter_states=[JobState.PENDING, JobState.RUNNING])
preempted = dict(client.preempt_jobs(queue="q", job_set_id="set 3", job_id=four).preemption_results)
ends = [state_until(job, "CANCELLED", "PREEMPTED") for job in (one, two, three, four)]
done([by_id == [one], preempted == {four: ""}, ends])
"""
    )
    assert by_id
    assert preempted
    assert ends == ["CANCELLED", "CANCELLED", "CANCELLED", "PREEMPTED"]


def test_the_asyncio_client_submits_watches_and_asks_as_the_other_one_does(door: DoorServer) -> None:
    kinds, state, missing = door.open()(
        DUMMY
        + """
import asyncio
from armada_client.asyncio_client import ArmadaAsyncIOClient
async def main():
    async with grpc.aio.insecure_channel(sys.argv[1]) as channel:
        other, kinds = ArmadaAsyncIOClient(channel), []
        await other.create_queue(other.create_queue_request(name="aio", priority_factor=1))
        answer = await other.submit_jobs("aio", "set", [dummy("0.2")])
        job = answer.job_response_items[0].job_id
        async for raw in await other.get_job_events_stream("aio", "set"):
            kinds.append(raw.message.WhichOneof("events"))
            if kinds[-1] == "succeeded":
                break
        found = (await other.get_job_status([job])).job_states[job]
        try:
            await other.get_queue("nobody's")
        except grpc.aio.AioRpcError as error:
            return [kinds, submit_pb2.JobState.Name(found), error.code().name]
done(asyncio.run(main()))
"""
    )
    assert [kind for kind in kinds if kind != "running"] == ["submitted", "queued", "leased", "pending", "succeeded"]
    assert (state, missing) == ("SUCCEEDED", "NOT_FOUND")
