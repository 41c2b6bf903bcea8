"""Armada's door while its server is stopped, killed under load, or short of disk space and file descriptors.

Its own client is answered in words with a code that says whether to try again, and nothing that was accepted is lost.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.e2e.armada_stage import door
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.armada_stage import DoorServer

__all__ = ["door"]
pytestmark = pytest.mark.slow
SUBMITTERS, WATCHERS, EACH = 20, 5, 10
TRYING = """
import time
def fresh():
    options = [("grpc.initial_reconnect_backoff_ms", 50), ("grpc.max_reconnect_backoff_ms", 200)]
    return ArmadaClient(grpc.insecure_channel(sys.argv[1], options=options))
codes = set()
def trying(call):
    while True:
        try:
            return call()
        except grpc.RpcError as error:
            codes.add(error.code().name)
            time.sleep(0.05)
def watched(queue, job_set, count, started=lambda: None):
    "Follow a set until so many have ended, from the last message on after each break."
    seen, last, over = [], None, 0
    one = fresh()
    while over < count:
        try:
            for raw in one.get_job_events_stream(queue, job_set, last):
                last = raw.id
                kind = raw.message.WhichOneof("events")
                seen.append([raw.id, kind, getattr(raw.message, kind).job_id])
                over += kind == "succeeded"
                started()
                if over == count:
                    break
        except grpc.RpcError as error:
            codes.add(error.code().name)
            one = fresh()
            time.sleep(0.05)
    return seen
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def test_kills_under_load_neither_double_a_job_nor_leave_a_gap_in_what_watchers_are_told(door: DoorServer) -> None:
    door.environ = {**door.environ, "HOLDFAST_ARMADA_LISTEN": f"127.0.0.1:{free_port()}"}
    stock, count = door.open(), SUBMITTERS * EACH
    stock("a_queue()\nsubmitted('ml', 's', item('true', client_id='first'))\ndone(0)")
    script = (
        TRYING
        + """
from concurrent.futures import ThreadPoolExecutor
def submit(who):
    one, found = fresh(), []
    for n in range(each):
        wanted = item("true", client_id=f"{who}-{n}")
        answer = trying(lambda: one.submit_jobs("ml", "s", [wanted]))
        found.append(answer.job_response_items[0].job_id)
    return found
with ThreadPoolExecutor(submitters + watchers) as pool:
    following = [pool.submit(watched, "ml", "s", submitters * each + 1) for _ in range(watchers)]
    ids = [one for found in pool.map(submit, range(submitters)) for one in found]
    done([ids, [one.result() for one in following], sorted(codes)])
"""
    )
    with ThreadPoolExecutor(1) as pool:
        told = pool.submit(stock, script, submitters=SUBMITTERS, watchers=WATCHERS, each=EACH)
        for fraction in (0.1, 0.4, 0.7):
            with door.client() as client:
                wait_until(lambda: len([*client.jobs()]) > count * fraction or told.done(), "some of the jobs")  # noqa: B023
            door.end()
            door.start().close()
        ids, watches, codes = told.result()
    assert set(codes) <= {"UNAVAILABLE", "CANCELLED"}, codes
    assert len(set(ids)) == count
    with door.client() as client:
        assert len([*client.jobs()]) == count + 1, "no job is there twice"
    for seen in watches:
        assert len({one[0] for one in seen}) == len(seen), "no message is told twice"
        assert seen == watches[0], "and none left out"
        for kind in ("submitted", "queued", "succeeded"):
            assert {job for _, each, job in seen if each == kind} >= set(ids)


def test_a_server_that_is_stopped_for_a_while_goes_on_with_its_watches_and_submissions(door: DoorServer) -> None:
    stock = door.open()
    stock("a_queue()\nsubmitted('ml', 's', item('true'))\ndone(0)")
    script = (
        TRYING
        + """
from concurrent.futures import ThreadPoolExecutor
first = threading.Event()
with ThreadPoolExecutor(2) as pool:
    following = pool.submit(watched, "ml", "s", 4, first.set)
    first.wait()
    os.kill(server, 19)
    stub = submit_pb2_grpc.SubmitStub(channel)
    impatient = refused(lambda: stub.SubmitJobs(
        submit_pb2.JobSubmitRequest(queue="ml", job_set_id="s", job_request_items=[item("true", client_id="a")]),
        timeout=1))
    patient = pool.submit(lambda: submitted("ml", "s", item("true", client_id="b"), item("true", client_id="c")))
    time.sleep(0.5)
    os.kill(server, 18)
    found = patient.result()
    again = submitted("ml", "s", item("true", client_id="a"), item("true", client_id="b"))
    done([impatient, found, again, following.result(), sorted(codes)])
"""
    )
    assert door.process is not None
    try:
        impatient, found, again, seen, codes = stock(script, server=door.process.pid)
    finally:
        door.process.send_signal(signal.SIGCONT)
    assert impatient == ["DEADLINE_EXCEEDED", "Deadline Exceeded"]
    assert again[1] == found[0]
    assert codes == [], "no watch broke"
    assert {job for _, kind, job in seen if kind == "succeeded"} >= {*found, *again}
    with door.client() as client:
        assert len([*client.jobs()]) == 4


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """Fill a disk for a while."""
    ballast = folder / "ballast"
    try:
        with ballast.open("wb", buffering=0) as file:
            for size in (65536, 4096, 512):
                try:
                    while file.write(b"x" * size):
                        pass
                except OSError:
                    pass
        yield
    finally:
        ballast.unlink()


def test_a_full_disk_is_said_in_words_and_what_was_accepted_runs_once_there_is_room(door: DoorServer) -> None:
    door.data.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "mode=0700,size=12m", "tmpfs", str(door.data)]
    if os.geteuid() or subprocess.run(words, check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here, so none can be full")
    try:
        stock = door.open()
        accepted = stock("a_queue()\ndone(submitted('ml', 's', *[item('true') for _ in range(20)]))")
        stock("done(told('ml', 's', 20))")
        with full(door.data):
            refusals = stock(
                """
                import time
                found = []
                for n in range(200):
                    one = refused(lambda: submitted("ml", "s", item("true", client_id=f"late-{n}")))
                    if one: found.append(one)
                    if len(found) == 5: break
                reads = [len(states(accepted)), client.get_queue("ml").name, len(told("ml", "s", 20))]
                done([found, reads])
                """,
                accepted=accepted,
            )
        found, (known, queue, events) = refusals
        assert {code for code, _ in found} == {"UNAVAILABLE"}, found
        assert all("disk is full" in words for _, words in found), found
        assert (known, queue) == (20, "ml")
        assert events > 20
        [late] = stock(TRYING + "done(trying(lambda: submitted('ml', 's', item('true', client_id='late'))))")
        with door.client() as client:
            wait_until(lambda: client.job(late).state == "Succeeded", "a job once there is room")
            wait_until(lambda: {job.state for job in client.jobs()} == {"Succeeded"}, "all that was accepted")
    finally:
        door.clean_up()
        subprocess.run(["umount", "--lazy", str(door.data)], check=True)


def test_a_server_without_descriptors_takes_nothing_half_and_goes_on_once_it_has_some(door: DoorServer) -> None:
    stock = door.open()
    stock("a_queue()\ndone(0)")
    assert door.process is not None
    pid = door.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    script = (
        TRYING
        + """
from concurrent.futures import ThreadPoolExecutor
one = fresh()
one.get_queue("ml")
resource.prlimit(server, resource.RLIMIT_NOFILE, (len(os.listdir(f"/proc/{server}/fd")), limits[1]))
def shut_out():
    try:
        grpc.channel_ready_future(grpc.insecure_channel(sys.argv[1], options=[("n", os.urandom(4).hex())])).result(1)
    except grpc.FutureTimeoutError:
        return True
out = [shut_out() for _ in range(3)]
answers = []
for n in range(10):
    try:
        made = one.submit_jobs("ml", "s", [item("true", client_id=str(n))])
        answers.append(["OK", made.job_response_items[0].job_id])
    except grpc.RpcError as error:
        answers.append([error.code().name, error.details()])
resource.prlimit(server, resource.RLIMIT_NOFILE, limits)
again = [trying(lambda: fresh().submit_jobs("ml", "s", [item("true", client_id=str(n))])).job_response_items[0].job_id
         for n in range(10)]
done([out, answers, again, watched("ml", "s", 10)])
"""
    )
    try:
        out, answers, again, seen = stock("import resource\n" + script, server=pid, limits=list(before))
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    assert {code for code, _ in answers} <= {"OK", "UNAVAILABLE", "RESOURCE_EXHAUSTED"}, answers
    for code, words in answers:
        assert words, code
    assert len(set(again)) == 10
    assert [each for each, (code, _) in zip(again, answers, strict=True) if code == "OK"] == [
        job for code, job in answers if code == "OK"
    ]
    assert {job for _, kind, job in seen if kind == "succeeded"} == set(again)
    assert out
