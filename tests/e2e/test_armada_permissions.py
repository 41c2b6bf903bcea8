"""Whose a queue is at Armada's door, as its own client sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.e2e.armada_stage import door

if TYPE_CHECKING:
    from tests.e2e.armada_stage import DoorServer

__all__ = ["door"]
SCRIPT = """
stub = submit_pb2_grpc.QueueServiceStub(channel)
submits = submit_pb2_grpc.SubmitStub(channel)
shown = (("authorization", f"Bearer {token}"),)
def queue(name="ml", factor=1.0, **more): return submit_pb2.Queue(name=name, priority_factor=factor, **more)
def permissions(): return [json_format.MessageToDict(one) for one in client.get_queue("ml").permissions]
def of_ben(queue="ml"):
    asked = submit_pb2.JobSubmitRequest(queue=queue, job_set_id="s", job_request_items=[item("true")])
    return refused(lambda: submits.SubmitJobs(asked, metadata=shown))

client.create_queue(queue())
whose, hers, his = permissions(), submitted("ml", "s", item("true")), of_ben()
back = client.get_queue("ml")
back.priority_factor = 4.0
client.update_queue(back)
silent = refused(lambda: client.update_queue(queue(factor=5.0)))
client.create_queue(queue(factor=6.0))
stub.CordonQueue(submit_pb2.QueueCordonRequest(name="ml"))
kept = permissions()
given = refused(lambda: client.update_queue(queue(user_owners=["ben"])))
client.create_queue(queue("both", user_owners=["ann", "ben"], group_owners=["ml"]))
logs = submit_pb2.Queue.Permissions(subjects=[{"kind": "User", "name": "ann"}], verbs=["logs"])
spied = refused(lambda: client.create_queue(queue("spied", permissions=[logs])))
robot = submit_pb2.Queue.Permissions(subjects=[{"kind": "Robot", "name": "r"}], verbs=["watch"])
wrong = refused(lambda: client.create_queue(queue("wrong", permissions=[robot])))
factor = client.get_queue("ml").priority_factor
client.create_queue(queue("mine", user_owners=["ann", "ben"]))
client.delete_queue("mine")
dropped = refused(lambda: client.get_queue("mine"))
done([whose, len(hers), his, kept == whose, factor, silent, given, of_ben("both"), spied, wrong, dropped])
"""


def test_a_queue_is_its_owners_and_stays_theirs(door: DoorServer) -> None:
    stock = door.open("operator")
    door.run("update", "settings", "--access", "operator=user:ann", "--access", "user=user:ben")
    token = door.json("token", "create", "ben", "--user", "ben", "--role", "user")["token"]
    whose, hers, his, kept, factor, silent, given, of_both, spied, wrong, dropped = stock(SCRIPT, token=token)
    verbs = ["submit", "cancel", "preempt", "reprioritize", "watch"]
    assert whose == [{"subjects": [{"kind": "User", "name": "ann"}], "verbs": verbs}], "the caller's, without owners"
    assert (hers, kept, factor) == (1, True, 6.0)
    assert his[0] == "PERMISSION_DENIED"
    assert "permissions of queue ml with the verb submit for user:ben" in his[1]
    assert silent[0] == "PERMISSION_DENIED", "which would remove the owners"
    assert given[0] == "PERMISSION_DENIED", "an operator changes a queue, but not who may use it"
    assert dropped[0] == "NOT_FOUND", "who created a queue with owners deletes it"
    assert of_both is None
    assert spied[0] == "PERMISSION_DENIED", "nor gives others' logs away in a new one"
    unknown = "failed to map subjects. failed to map kind with index: 0. invalid kind value: Robot"
    assert wrong == [
        "INVALID_ARGUMENT",
        f"error validating queue: failed to map permission with index: 0. {unknown}",
    ]
