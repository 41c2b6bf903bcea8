"""Logs by Armada's own client: lines with when they were written, of the pod that is meant, from a second on."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from tests.e2e.armada_stage import door

if TYPE_CHECKING:
    from tests.e2e.armada_stage import DoorServer

__all__ = ["door"]
READING = """
from armada_client.log_client import JobLogClient
from armada_client.internal.binoculars_client import new_binoculars_client
from armada_client.k8s.io.apimachinery.pkg.apis.meta.v1 import generated_pb2 as meta

def lines(job, since=""):
    return [[one.timestamp, one.line] for one in JobLogClient(sys.argv[1], job, True).logs(since)]

_, logs = new_binoculars_client(sys.argv[1], True)
def read(job, since="", **options):
    number, namespace = options.pop("pod_number", 0), options.pop("pod_namespace", "default")
    asked = core.PodLogOptions(**options)
    return [one.line for one in logs.logs(job, since, namespace, number, asked).log]
"""
WAITING = """
import time
while refused(lambda: lines(theirs)) or not lines(theirs): time.sleep(0.05)  # a right counts within a second
done(lines(theirs))
"""
GONE = (
    "The pod with these logs doesn't exist - "
    "this is likely because the job has finished and the pod has been cleaned up"
)


def test_the_stock_client_reads_lines_with_their_times_and_from_a_second_on(door: DoorServer) -> None:
    stock = door.open()
    job, lines, later, never = stock(
        READING
        + """
a_queue()
[job] = submitted("ml", "s", item("sh", "-c", "echo first; echo; sleep 1.3; echo '  last  one'"))
told("ml", "s", 1)
found = lines(job)
done([job, found, lines(job, found[-1][0]), lines(job, "tomorrow")])
"""
    )
    assert [line for _, line in lines] == ["first", "", "  last  one"]
    first, _, last = (datetime.fromisoformat(at) for at, _ in lines)
    assert 1.0 < (last - first).total_seconds() < 2.5
    assert all(at.endswith("Z") and "." in at for at, _ in lines)
    assert later == lines[-1:], "since is inclusive, and to the second"
    assert never == lines, "upstream takes no notice of a time that is none"
    assert door.run("logs", job).stdout == "first\n\n  last  one\n"


@pytest.mark.slow
def test_each_pod_of_a_retried_job_has_its_log_and_options_are_those_of_kubernetes(door: DoorServer) -> None:
    stock = door.open()
    found = stock(
        READING
        + """
retry = submit_pb2.RETRY_ACTION_RETRY
policies.CreateRetryPolicy(submit_pb2.RetryPolicy(name="twice", retry_limit=2, default_action=retry))
client.create_queue(submit_pb2.Queue(name="ml", priority_factor=1.0, retry_policies=["twice"]))
[job] = submitted("ml", "s", item("sh", "-c", "echo run $HOLDFAST_ATTEMPT; seq 3; exit 1", namespace="mine"))
told("ml", "s", 1)
[waiting] = submitted("ml", "t", item("true", required_node_labels={"no": "such"}))
done({
    "newest": read(job), "first": read(job + "-0"), "second": read(job + "-0", pod_number=1),
    "previous": read(job, previous=True), "tail": read(job, tailLines=2), "cut": read(job, limitBytes=29),
    "mine": read(job, pod_namespace="mine"), "named": read(job, container="main"),
    "recent": read(job, sinceSeconds=3600), "late": read(job, sinceTime=meta.Time(seconds=4000000000)),
    "wrong": [refused(call) for call in (
        lambda: read(job, pod_number=1), lambda: read(job + "-0", pod_number=3), lambda: read("nope"), lambda: read(""),
        lambda: read(job[:-1]), lambda: read(job, pod_namespace="other"), lambda: read(waiting),
        lambda: read(job, pod_number=-1), lambda: read(job + "-1"),
    )],
    "invalid": [refused(call) for call in (
        lambda: read(job, container="side"), lambda: read(job + "-0", previous=True), lambda: read(job, tailLines=-1),
        lambda: read(job, sinceSeconds=0), lambda: read(job, "2026-01-01T00:00:00Z", sinceSeconds=5),
        lambda: read(job, limitBytes=0),
    )],
    "job": job,
})
"""
    )
    job = found["job"]
    count = ["1", "2", "3"]
    assert found["newest"] == ["run 3", *count]
    assert found["first"] == ["run 1", *count]
    assert found["second"] == found["previous"] == ["run 2", *count]
    assert (found["tail"], found["cut"]) == (["2", "3"], ["r"])
    assert found["mine"] == found["named"] == found["recent"] == found["newest"]
    assert found["late"] == []
    assert found["wrong"] == [["NOT_FOUND", GONE]] * 9
    assert [code for code, _ in found["invalid"]] == ["INVALID_ARGUMENT"] * 6
    assert [told for _, told in found["invalid"]] == [
        f"container side is not valid for pod armada-{job}-0-2",
        f'previous terminated container "main" in pod "armada-{job}-0" not found',
        "tailLines: Invalid value: -1: must be greater than or equal to 0",
        "sinceSeconds: Invalid value: 0: must be greater than 0",
        "at most one of `sinceTime` or `sinceSeconds` may be specified",
        "limitBytes: Invalid value: 0: must be greater than 0",
    ]


@pytest.mark.slow
def test_a_log_of_any_size_is_read_in_answers_of_two_megabytes_and_none_of_it_holds_the_program_up(
    door: DoorServer,
) -> None:
    stock = door.open()
    sizes, count, last = stock(
        READING
        + """
a_queue()
program = "import time\\nfor n in range(300000): print(n)\\ntime.sleep(1.5)\\nprint('end')"
[job] = submitted("ml", "s", item(sys.executable, "-c", program))
told("ml", "s", 1)
found = lines(job)
size = sum(len(at) + len(line) + 2 for at, line in found)
done([size, len(found), read(job, tailLines=1)])
"""
    )
    assert 1_900_000 < sizes <= 2_000_100
    assert count > 50_000
    assert last == ["end"]


@pytest.mark.slow
def test_logs_are_read_by_whoever_has_the_right_and_while_the_server_was_killed_times_were_kept(
    door: DoorServer,
) -> None:
    stock = door.open("viewer")
    with door.client() as client:
        [theirs] = [client.submit({"command": ["sh", "-c", "echo theirs; sleep 1000"]}).id]
    refused = stock(READING + "done(refused(lambda: read(theirs)))", theirs=theirs)
    assert refused is not None
    assert refused[0] in {"PERMISSION_DENIED", "NOT_FOUND"}
    with door.client() as client:
        client.put_settings({"access": {"admin": ["user:ann"]}})
        (before,) = stock(READING + WAITING, theirs=theirs)
    door.end()
    with door.start():
        assert door.stock(READING + "done(lines(theirs))", theirs=theirs) == [before]
