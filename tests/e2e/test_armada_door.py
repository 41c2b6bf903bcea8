"""Armada's door is judged by Armada's own client, unmodified, against real processes."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import pytest

from tests.e2e.armada_stage import door
from tests.e2e.server import until, wait_until

if TYPE_CHECKING:
    from tests.e2e.armada_stage import DoorServer

__all__ = ["door"]
FACTOR = "priority factor cannot be lower than 1.0. Value: 0.500000"


def kinds(told: list[list[object]], job_id: str) -> list[str]:
    return [str(kind) for _, kind, of, _ in told if of == job_id]


def test_a_queue_a_submission_and_a_watch_go_as_its_users_know_them(door: DoorServer) -> None:
    stock = door.open()
    found = stock(
        """
        a_queue()
        ids = submitted("ml", "sweep one/7", item("sh", "-c", 'echo $ARMADA_JOB_ID $ARMADA_QUEUE "$ARMADA_JOB_SET_ID"'),
                        item("-c", "exit 3", command=["sh"], priority=5.0))
        events = told("ml", "sweep one/7", 2)
        details = client.get_job_details(ids).job_details
        runs = {run.run_id: run for each in ids for run in details[each].job_runs}
        asked = client.get_job_run_details(list(runs)).job_run_details
        done({
            "health": [client.submit_health().status, client.event_health().status],
            "queue": json_format.MessageToDict(client.get_queue("ml")),
            "queues": [one.name for one in client.get_queues()],
            "ids": ids, "events": events,
            "status": states(ids),
            "details": {key: json_format.MessageToDict(one) for key, one in details.items()},
            "asked": sorted(asked) == sorted(runs),
            "errors": dict(client.get_job_errors(ids).job_errors),
        })
        """
    )
    good, bad = found["ids"]
    assert found["health"] == [1, 1]
    assert (found["queue"]["name"], found["queue"]["priorityFactor"], found["queues"]) == ("ml", 3.0, ["default", "ml"])
    assert kinds(found["events"], good)[:4] == ["submitted", "queued", "leased", "pending"]
    assert kinds(found["events"], good)[-1] == "succeeded"
    assert [kind for kind, _ in groupby(kinds(found["events"], bad))][-1] == "failed"
    submitted = found["events"][0][3]
    assert (submitted["job"]["podSpec"]["containers"][0]["name"], submitted["job"]["owner"]) == ("main", "ann")
    assert found["status"] == {good: "SUCCEEDED", bad: "FAILED"}
    assert found["details"][good]["jobset"] == "sweep one/7"
    assert found["details"][bad]["jobRuns"][0]["state"] == "RUN_STATE_FAILED"
    assert found["asked"]
    assert (found["errors"][good], "exited with code 3" in found["errors"][bad]) == ("", True)
    failed = next(one for _, kind, _, one in found["events"] if kind == "failed")
    assert failed["containerStatuses"][0]["exitCode"] == 3
    assert failed["podName"] == f"armada-{bad}-0"
    log = door.run("logs", good).stdout
    assert log.split(maxsplit=2) == [good, "ml", "sweep one/7\n"], "what Armada tells each program"
    assert door.json("get", "jobs", "--group", "sweep one/7")["items"][0]["submitted_by"] == "ann"


def test_a_failure_that_a_policy_retries_is_told_once_each_and_says_when_it_is_final(door: DoorServer) -> None:
    stock = door.open()
    found = stock(
        """
        retry = submit_pb2.RETRY_ACTION_RETRY
        policies.CreateRetryPolicy(submit_pb2.RetryPolicy(name="twice", retry_limit=2, default_action=retry))
        client.create_queue(submit_pb2.Queue(name="ml", priority_factor=1.0, retry_policies=["twice"]))
        ids = submitted("ml", "s", item("sh", "-c", "echo no > $HOLDFAST_TERMINATION_LOG; exit 7"),
                        item("sh", "-c", "exit 1", annotations={"armadaproject.io/failFast": "true"}))
        done([ids, told("ml", "s", 2), dict(client.get_job_errors(ids).job_errors)])
        """
    )
    (job, fast), events, errors = found
    failures = [one for _, kind, of, one in events if (kind, of) == ("failed", job)]
    assert [one.get("retryable", False) for one in failures] == [True, True, False]
    assert [one["podName"] for one in failures] == [f"armada-{job}-0", f"armada-{job}-0-1", f"armada-{job}-0-2"]
    assert kinds(events, job).count("leased") == 3
    assert kinds(events, job).count("queued") == 1, "a retry is not queued a second time"
    assert failures[-1]["reason"].startswith("Retry policy: policy retry limit exceeded (2/2)\n\nFinal run error:\n")
    assert errors[job].startswith("Retry policy: policy retry limit exceeded (2/2)")
    assert kinds(events, fast).count("failed") == 1, "what fails fast is not retried"


@pytest.mark.slow
def test_a_watch_goes_on_at_its_message_over_a_kill_of_the_server_without_a_gap_or_a_double(door: DoorServer) -> None:
    stock = door.open()
    script = """
    a_queue()
    ids = submitted("ml", "s", *[item("sh", "-c", f"sleep 0.{n % 7}; exit {n % 2}") for n in range(20)])
    stream = client.get_job_events_stream("ml", "s")
    first = [next(stream).id for _ in range(17)]
    done([ids, first])
    """
    ids, first = stock(script)
    door.end()
    with door.start() as client:
        for job in ids:
            until(client, job, lambda view: view.state in {"Succeeded", "Failed"})
    rest = door.stock('done([one[0] for one in told("ml", "s", 20 - ended, last)])', last=first[-1], ended=0)
    whole = door.stock('done([one[0] for one in told("ml", "s", 20)])')
    assert first + rest == whole
    assert len({*whole}) == len(whole)


@pytest.mark.slow
def test_jobs_are_cancelled_by_id_by_set_and_by_state_and_the_events_name_who_asked(door: DoorServer) -> None:
    stock = door.open()
    found = stock(
        """
        a_queue()
        def sleeper(): return item("sleep", "1000")
        a, b = submitted("ml", "one", sleeper(), sleeper())
        others = submitted("ml", "two", sleeper())
        answer = list(client.cancel_jobs("ml", "one", a).cancelled_ids)
        client.cancel_jobset("ml", "one", [])
        events = told("ml", "one", 2)
        waiting = submitted("ml", "three", *[item("sleep", "1000") for _ in range(60)])
        client.cancel_jobset("ml", "three", [JobState.QUEUED])
        done([a, b, answer, events, states(others)[others[0]],
              refused(lambda: client.cancel_jobset("ml", "three", [JobState.RUNNING])), waiting])
        """
    )
    a, b, answer, events, other, refused, waiting = found
    assert answer == [a]
    for job in (a, b):
        assert kinds(events, job)[-1] == "cancelled"
        assert "cancelling" in kinds(events, job), "before it; asking twice may tell it twice"
    assert {one["requestor"] for _, kind, _, one in events if kind in {"cancelling", "cancelled"}} == {"ann"}
    assert other in {"PENDING", "RUNNING"}, "another set is left alone"
    assert refused[0] == "INVALID_ARGUMENT"
    assert "must always be used together" in refused[1]
    with door.client() as client:
        wait_until(lambda: "Queued" not in {client.job(one).state for one in waiting}, "none waits any more")
        assert {client.job(one).state for one in waiting} >= {"Cancelled"}


@pytest.mark.parametrize(
    ("call", "code", "sentence"),
    [
        ('client.submit_jobs("none", "s", [item("true")])', "PERMISSION_DENIED", 'could not find queue "none"'),
        ('client.submit_jobs("ml", "", [item("true")])', "INVALID_ARGUMENT", "job set id is a required field"),
        (
            'client.submit_jobs("ml", "s" * 1024, [item("true")])',
            "INVALID_ARGUMENT",
            "job set id of length 1024 must be less than max character length 1024",
        ),
        (
            'client.submit_jobs("ml", chr(0), [item("true")])',
            "INVALID_ARGUMENT",
            "job set id contains a NUL character, which no database keeps",
        ),
        (
            'client.submit_jobs("ml", "s", [item("true"), item("true", namespace=None)])',
            "INVALID_ARGUMENT",
            "namespace is a required field",
        ),
        (
            'client.submit_jobs("ml", "s", [client.create_job_request_item(namespace="n")])',
            "INVALID_ARGUMENT",
            "Job must contain at least one PodSpec",
        ),
        (
            'client.submit_jobs("ml", "s", [bare(core.Container(name="c", args=["true"]))])',
            "INVALID_ARGUMENT",
            "container c has no resources specified",
        ),
        (
            'client.create_queue(submit_pb2.Queue(name="q", priority_factor=float("inf")))',
            "INVALID_ARGUMENT",
            f"error validating queue: failed to map priority factor. {FACTOR.partition(':')[0]}: inf",
        ),
        ('client.get_queue("none")', "NOT_FOUND", 'error: could not find queue "none"'),
        (
            'next(client.get_job_events_stream("none", "s"))',
            "NOT_FOUND",
            "[GetJobSetEvents] Queue none does not exist",
        ),
        (
            'next(client.get_job_events_stream("ml", "s"))',
            "NOT_FOUND",
            "[GetJobSetEvents] Jobset s for queue ml does not exist",
        ),
        (
            'client.create_queue(submit_pb2.Queue(name="q", priority_factor=0.5))',
            "INVALID_ARGUMENT",
            f"error validating queue: failed to map priority factor. {FACTOR}",
        ),
        (
            'client.create_queue(submit_pb2.Queue(name="q", priority_factor=1, retry_policies=["ghost"]))',
            "INVALID_ARGUMENT",
            'error creating queue: retry policies do not exist: "ghost"',
        ),
        (
            'policies.CreateRetryPolicy(submit_pb2.RetryPolicy(name="p"))',
            "INVALID_ARGUMENT",
            'invalid retry policy: retry policy "p" must set a default action (Fail or Retry)',
        ),
        (
            'policies.CreateRetryPolicy(policy("p", submit_pb2.RetryRule(action=2)))',
            "INVALID_ARGUMENT",
            'invalid retry policy: retry policy "p" rule 0: on_category must be set',
        ),
        ('policies.GetRetryPolicy(submit_pb2.RetryPolicyGetRequest(name="p"))', "NOT_FOUND", None),
    ],
)
@pytest.mark.slow
def test_what_is_refused_is_refused_by_upstreams_codes_and_sentences(
    opened: DoorServer, call: str, code: str, sentence: str | None
) -> None:
    found = opened.stock(f"done(refused(lambda: {call}))")
    assert found[0] == code
    assert sentence in {None, found[1]}


@pytest.fixture
def opened(door: DoorServer) -> DoorServer:
    door.open()("done(a_queue())")
    return door


def test_a_client_id_that_is_known_is_answered_with_its_job_and_nothing_runs_twice(door: DoorServer) -> None:
    stock = door.open()
    first, again = stock(
        """
        a_queue()
        def both(): return submitted("ml", "s", item("true", client_id="a"), item("true", client_id="b"))
        first = both()
        done([first, submitted("ml", "s", item("true", client_id="b"), item("true")) + both()])
        """
    )
    assert again[0] == first[1]
    assert again[2:] == first
    assert len({*first, *again}) == 3
    assert len(door.json("get", "jobs", "--queue", "ml")["items"]) == 3


@pytest.mark.slow
def test_a_stock_client_keeps_what_it_does_not_know_of_a_policy(door: DoorServer) -> None:
    stock = door.open()
    policy = """
    {apiVersion: armadaproject.io/v1, kind: RetryPolicy, metadata: {name: ml-training}, spec: {retryLimit: 5,
     defaultAction: Fail, backoff: {initialDelay: 10s, maxDelay: 5m, multiplier: 2.0}, antiAffinity: {mode: none},
     rules: [
     {name: gone, action: Retry, onConditions: [Preempted, Evicted], antiAffinity: {mode: node}},
     {name: memory, action: Retry, onConditions: [OOMKilled], retryLimit: 3},
     {name: killed, action: Retry, containerName: main, onExitCodes: {operator: In, values: [137]}},
     {name: said, action: Retry, onTerminationMessage: {pattern: ".*TRANSIENT.*"}},
     {name: ill, action: Retry, onFailureCategory: [cuda_error, infiniband_error]}]}}
    """
    assert door.run("create", "-f", "-", text=policy).returncode == 0
    before = door.json("get", "retrypolicy", "ml-training")
    stock(
        """
        one = policies.GetRetryPolicy(submit_pb2.RetryPolicyGetRequest(name="ml-training"))
        one.retry_limit = 7
        policies.UpdateRetryPolicy(one)
        done(None)
        """
    )
    after = door.json("get", "retrypolicy", "ml-training")
    assert after["spec"] == {**before["spec"], "retryLimit": 7}
    assert (
        stock(
            """
        policies.DeleteRetryPolicy(submit_pb2.RetryPolicyDeleteRequest(name="ml-training"))
        policies.DeleteRetryPolicy(submit_pb2.RetryPolicyDeleteRequest(name="ml-training"))
        done(len(policies.GetRetryPolicies(submit_pb2.RetryPolicyListRequest()).retry_policies))
        """
        )
        == 0
    )


def test_who_shows_nothing_is_let_in_only_where_the_operator_said_who_that_is(door: DoorServer) -> None:
    door.environ = {**door.environ, "HOLDFAST_DOOR_ANONYMOUS": ""}
    door.start().close()
    token = str(door.address()["token"])
    door.run("update", "settings", "--access", "operator=user:eve")
    api_token = door.json("token", "create", "airflow", "--user", "eve", "--role", "operator")["token"]
    refused, bearer, basic, wrong, of_eve, forged = door.stock(
        """
        import base64
        from armada_client.armada import submit_pb2_grpc
        stub = submit_pb2_grpc.SubmitStub(channel)
        def health(header): return stub.Health(empty_pb2.Empty(), metadata=(("authorization", header),)).status
        coded = base64.b64encode(f"me:{token}".encode()).decode()
        done([refused(client.submit_health), health(f"Bearer {token}"), health(f"Basic {coded}"),
              refused(lambda: health("Bearer nonsense")), health(f"Bearer {api_token}"),
              refused(lambda: health(f"Bearer {api_token[:-1]}_"))])
        """,
        token=token,
        api_token=api_token,
    )
    assert (refused[0], bearer, basic, wrong[0]) == ("UNAUTHENTICATED", 1, 1, "UNAUTHENTICATED")
    assert refused[1].startswith("A valid token is required; send the metadata authorization: Bearer TOKEN")
    assert refused[1].endswith("set HOLDFAST_DOOR_ANONYMOUS")
    assert "ANONYMOUS" not in wrong[1], "who shows a token is somebody else"
    assert (of_eve, forged[0]) == (1, "UNAUTHENTICATED")
    assert f", for Armada's clients at {door.at}, " in door.log.read_text()


@pytest.mark.slow
def test_a_viewer_is_refused_what_changes_anything_and_told_which_right_is_missing(door: DoorServer) -> None:
    stock = door.open("viewer")
    created, queues = stock(
        'done([refused(lambda: client.create_queue(submit_pb2.Queue(name="q", priority_factor=1))),'
        " [one.name for one in client.get_queues()]])"
    )
    assert created[0] == "PERMISSION_DENIED"
    assert "change" in created[1]
    assert queues == ["default"]


@pytest.mark.slow
def test_watches_have_a_budget_of_their_own_and_who_leaves_makes_room(door: DoorServer) -> None:
    door.environ = {**door.environ, "HOLDFAST_DOOR_WATCHES": "2"}
    found = door.open()(
        """
        a_queue()
        submitted("ml", "s", item("true"))
        watches = [client.get_job_events_stream("ml", "s") for _ in range(2)]
        for each in watches: next(each)
        third = refused(lambda: next(client.get_job_events_stream("ml", "s")))
        for each in watches: client.unwatch_events(each)
        left = threading.Event()
        for _ in range(100):
            again = refused(lambda: next(client.get_job_events_stream("ml", "s")))
            if again is None: break
            left.wait(0.1)
        done([third, again])
        """
    )
    assert found == [["RESOURCE_EXHAUSTED", "2 clients follow events already"], None]


def test_a_node_is_cordoned_by_its_name_by_operators_only(door: DoorServer) -> None:
    cordon = """
    from armada_client.armada import binoculars_pb2, binoculars_pb2_grpc
    nodes = binoculars_pb2_grpc.BinocularsStub(channel)
    def cordon(name): nodes.Cordon(binoculars_pb2.CordonRequest(node_name=name))
    done([refused(lambda: cordon(name)) for name in names])
    """
    stock = door.open("user")
    with door.client() as client:
        [node] = client.nodes()
        [refused] = stock(cordon, names=[node.name])
        assert refused[0] == "PERMISSION_DENIED"
        client.put_settings({"access": {"operator": ["user:ann"]}})
        wait_until(lambda: stock(cordon, names=[node.name]) == [None], "the new role is known")
        [cordoned] = client.nodes()
        assert (cordoned.state, cordoned.reason) == ("Cordoned", "cordoned by ann")
    [unknown] = stock(cordon, names=["n7"])
    assert unknown == ["NOT_FOUND", 'failed to cordon node n7: nodes "n7" not found']
