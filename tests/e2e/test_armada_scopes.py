"""A token of one place at Armada's door, by the stubs of its own client: it opens that place, whatever is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.armada_stage import door
from tests.e2e.server import until

if TYPE_CHECKING:
    from tests.e2e.armada_stage import DoorServer

__all__ = ["door"]
pytestmark = pytest.mark.slow  # a server of its own, and a client
SCRIPT = """
from armada_client.armada import binoculars_pb2, binoculars_pb2_grpc, event_pb2_grpc, job_pb2_grpc
submits, jobs = submit_pb2_grpc.SubmitStub(channel), job_pb2_grpc.JobsStub(channel)
events, pods = event_pb2_grpc.EventStub(channel), binoculars_pb2_grpc.BinocularsStub(channel)
shown = (("authorization", f"Bearer {token}"),)

def of_token(queue, over, runs):
    asked = submit_pb2.JobSubmitRequest(queue=queue, job_set_id="s", job_request_items=[item("true")])
    watched = event_pb2.JobSetRequest(queue=queue, id="s", watch=False)
    read = binoculars_pb2.LogRequest(job_id=over, pod_namespace="default", log_options=core.PodLogOptions())
    cancel = submit_pb2.JobCancelRequest(queue=queue, job_set_id="s", job_ids=[runs])
    found = jobs.GetJobStatus(job_pb2.JobStatusRequest(job_ids=[runs]), metadata=shown).job_states.get(runs, 0)
    seen = len(list(events.GetJobSetEvents(watched, metadata=shown)))
    refusals = [
        refused(lambda: pods.Logs(read, metadata=shown)),
        refused(lambda: submits.SubmitJobs(asked, metadata=shown)),
        refused(lambda: submits.CancelJobs(cancel, metadata=shown)),
    ]
    return submit_pb2.JobState.Name(found), seen > 0, [one and one[0] for one in refusals]

def made(queue):
    client.create_queue(submit_pb2.Queue(name=queue, priority_factor=1.0, user_owners=["ann"]))
    ids = submitted(queue, "s", item("sh", "-c", "echo words"), item("sleep", "1000"))
    told(queue, "s", 1)
    return ids

there, elsewhere = made("ml"), made("other")
done([of_token("ml", *there), of_token("other", *elsewhere), there[1], elsewhere[1]])
"""


def test_a_token_of_one_queue_submits_watches_lists_reads_and_cancels_there_alone(door: DoorServer) -> None:
    stock = door.open("operator")
    scope = "submit,watch,logs,cancel@job:queue=ml"
    token = door.json("token", "create", "ml-only", "--user", "ann", "--scope", scope)["token"]
    inside, outside, ours, theirs = stock(SCRIPT, token=token)
    assert inside[1:] == [True, [None, None, None]]
    assert inside[0] != "UNKNOWN"
    assert outside[:2] == ["UNKNOWN", False], "it is not even told that there is something"
    assert outside[2][:2] == ["NOT_FOUND", "PERMISSION_DENIED"]
    with door.client() as admin:
        until(admin, ours, lambda view: view.state == "Cancelled")
        assert admin.job(theirs).state != "Cancelled"
        assert not admin.job(theirs).reason
        assert sorted(job.queue for job in admin.jobs()) == ["ml", "ml", "ml", "other", "other"]
