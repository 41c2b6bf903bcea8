"""Iris' door under callers that come together, read in small parts, ride out a server's death, or are nobody."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.e2e.iris_stage import door

if TYPE_CHECKING:
    from tests.e2e.iris_stage import IrisServer

__all__ = ["door"]
pytestmark = pytest.mark.slow  # the client alone takes seconds to be imported


def test_of_launches_of_one_name_at_one_moment_one_makes_a_job(door: IrisServer) -> None:
    rounds = door.iris()(
        """
from concurrent.futures import ThreadPoolExecutor
def at_once(made):
    with ThreadPoolExecutor(12) as pool:
        return sorted(one[0] for one in pool.map(lambda sent: refused(raw.launch_job, sent), made))
rounds = []
for number in range(3):
    rounds.append(at_once([request("/ann/race", max_retries_preemption=n) for n in range(12)]))
    client.terminate_job(JobName.from_wire("/ann/race"))
    wait("/ann/race")
rounds.append(at_once([request("/ann/same")] * 12))
keep = job_pb2.EXISTING_JOB_POLICY_KEEP
rounds.append(at_once([request("/ann/kept", max_retries_preemption=n, existing_job_policy=keep) for n in range(12)]))
done(rounds)
"""
    )
    assert rounds == [*[["ALREADY_EXISTS"] * 11 + ["OK"]] * 3, ["OK"] * 12, ["OK"] * 12]
    made = Counter(job["group"] for job in door.json("get", "jobs")["items"])
    assert made == {"/ann/race": 3, "/ann/same": 1, "/ann/kept": 1}


def test_lines_are_read_once_each_in_parts_of_any_size_while_they_are_written(door: IrisServer) -> None:
    found, tail, since = door.iris()(
        """
script = "for n in $(seq 200); do echo line $n; [ $((n % 50)) -gt 0 ] || sleep 0.3; done"
launch("/ann/talk", "bash", "-c", script, replicas=3)
cursor, found, over = 0, {}, False
while True:
    over_before = over
    part = client.fetch_logs("/ann/talk/", match_scope=logging_pb2.MATCH_SCOPE_PREFIX, cursor=cursor, max_lines=7)
    assert part.cursor >= cursor
    assert [one.seq for one in part.entries] == sorted({one.seq for one in part.entries})
    for one in part.entries:
        found.setdefault(one.key, []).append(one.data)
    cursor = part.cursor
    over = state("/ann/talk") == "SUCCEEDED"
    if over_before and not part.entries:
        break
tail = [data for _, data in lines("/ann/talk/1:", tail=True, max_lines=2)]
last = client.fetch_logs("/ann/talk/0:0", match_scope=logging_pb2.MATCH_SCOPE_EXACT, tail=True, max_lines=1).entries[0]
since = lines("/ann/talk/0:", since_ms=last.timestamp.epoch_ms)
done([found, tail, since])
"""
    )
    assert found == {f"/ann/talk/{rank}:0": [f"line {n}" for n in range(1, 201)] for rank in range(3)}
    assert (tail, since) == (["line 199", "line 200"], [])


def test_launches_over_the_death_of_the_server_make_one_job_each(door: IrisServer) -> None:
    launching = door.iris().begin(
        """
for number in range(60):
    launch(f"/ann/n{number}", "true")
    print(number, flush=True)
for number in range(60):
    wait(f"/ann/n{number}")
done("over")
"""
    )
    assert launching.stdout is not None
    for _ in range(5):
        launching.stdout.readline()
    port = str(door.address()["url"]).rpartition(":")[2]
    door.end()
    door.words = (*door.words[:-1], port)
    with door.start():
        said, errors = launching.communicate(timeout=150)
    assert said.splitlines()[-1:] == ['"over"'], errors
    made = Counter(job["group"] for job in door.json("get", "jobs")["items"])
    assert made == {f"/ann/n{number}": 1 for number in range(60)}


def test_who_shows_no_token_is_nobody_where_nobody_is_said_to_be(door: IrisServer) -> None:
    door.environ = {key: value for key, value in door.environ.items() if key != "HOLDFAST_DOOR_ANONYMOUS"}
    with door.start():
        token = str(door.address()["token"])
    nobody, somebody = door.stock(
        """
class Token:
    def intercept_unary_sync(self, call_next, asked, context):
        context.request_headers()["authorization"] = f"Bearer {token}"
        return call_next(asked, context)
asked = C.ListWorkersRequest()
with_token = ControllerServiceClientSync(address=U, timeout_ms=20000, interceptors=[Token()])
done([refused(raw.list_workers, asked)[0], refused(with_token.list_workers, asked)[0]])
""",
        token=token,
    )
    assert (nobody, somebody) == ("UNAUTHENTICATED", "OK")
