"""Armada's JSON gateway on the port of REST: every call, by plain HTTP, on real programs."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING

import pytest

from tests.e2e.gateway_stage import Gateway, gateway, item, server
from tests.e2e.server import until, wait_until

if TYPE_CHECKING:
    from tests.e2e.armada_stage import DoorServer

__all__ = ["gateway", "server"]
ENDLESS = ["sleep", "1000"]


def test_queues_policies_jobs_events_and_logs_are_asked_for_by_plain_http(server: DoorServer) -> None:
    server.open()
    ask = Gateway(server)
    assert ask.ok("POST", "/v1/retry-policy", {"name": "twice", "retryLimit": 2, "defaultAction": "Retry"}) == {}
    assert ask.ok("GET", "/v1/retry-policy/twice") == {"name": "twice", "retryLimit": 2, "defaultAction": "Retry"}
    assert ask.ok("PUT", "/v1/retry-policy/twice", {"retryLimit": 1, "defaultAction": "RETRY_ACTION_RETRY"}) == {}
    assert ask.ok("GET", "/v1/retry-policies")["retryPolicies"][0]["retryLimit"] == 1
    queue = {"name": "ml", "priorityFactor": 2.5, "retryPolicies": ["twice"], "labels": {"a": "b"}}
    assert ask.ok("POST", "/v1/queue", queue) == {}
    found = ask.ok("GET", "/v1/queue/ml")
    assert (found["priorityFactor"], found["retryPolicies"], found["labels"]) == (2.5, ["twice"], {"a": "b"})
    assert found["permissions"][0]["subjects"] == [{"kind": "User", "name": "ann"}]
    good, bad = ask.submit(["sh", "-c", "echo hello; echo $ARMADA_JOB_SET_ID"], ["sh", "-c", "exit 3"], job_set="a%2Fb")
    assert good != bad
    assert ask("POST", "/v1/job-set/ml/a%2Fb", {}).status_code == 200, "percent signs are only unescaped in paths"
    told = ask.told(2, job_set="a%252Fb")
    kinds = [kind for _, kind, event in told if event["jobId"] == bad]
    assert kinds[0] == "submitted"
    assert kinds.count("failed") == 2
    failed = [event for _, kind, event in told if kind == "failed"]
    assert [one.get("retryable", False) for one in failed] == [True, False]
    assert ("cause" in failed[0], failed[0]["containerStatuses"][0]["exitCode"]) == (False, 3), "Error is the default"
    assert told[0][2]["job"]["podSpec"]["containers"][0]["resources"]["limits"]["cpu"] == "100m"
    assert told[0][2]["created"].endswith("Z")
    assert ask.ok("POST", "/v1/job/status", {"jobIds": [good, bad, "x"]}) == {
        "jobStates": {good: "SUCCEEDED", bad: "FAILED", "x": "UNKNOWN"}
    }
    details = ask.ok("POST", "/v1/job/details", {"jobIds": [bad], "expandJobRun": True, "expandJobSpec": True})
    [detail] = details["jobDetails"].values()
    assert [run["state"] for run in detail["jobRuns"]] == ["RUN_STATE_FAILED"] * 2
    assert detail["jobSpec"]["podSpec"]["containers"][0]["name"] == "main"
    runs = ask.ok("POST", "/v1/run/details", {"runIds": [detail["latestRunId"]]})["jobRunDetails"]
    assert runs[detail["latestRunId"]] == detail["jobRuns"][0]
    errors = ask.ok("POST", "/v1/job/errors", {"jobIds": [good, bad]})["jobErrors"]
    assert (errors[good], "exited with code 3" in errors[bad]) == ("", True)
    lines = ask.ok("POST", "/v1/binoculars/log", {"jobId": good, "logOptions": {"tailLines": "1"}})["log"]
    assert [one["line"] for one in lines] == ["a%2Fb"]


def test_a_container_keeps_its_own_name_in_rules_events_and_errors(gateway: Gateway) -> None:
    rule = {"action": "Retry", "exitCodes": {"operator": "In", "values": [3]}, "containerName": "training"}
    policy = {"name": "named", "retryLimit": 1, "defaultAction": "Fail", "rules": [rule]}
    gateway.ok("POST", "/v1/retry-policy", policy)
    gateway.ok("PUT", "/v1/queue/ml", {"name": "ml", "priorityFactor": 1, "retryPolicies": ["named"]})
    pod = item(["sh", "-c", "exit 3"])
    pod["podSpec"]["containers"][0]["name"] = "training"  # type: ignore[index] # it is as it was just written
    body = {"queue": "ml", "jobSetId": "s", "jobRequestItems": [pod]}
    [made] = gateway.ok("POST", "/v1/job/submit", body)["jobResponseItems"]
    failed = [event for _, kind, event in gateway.told(1) if kind == "failed"]
    assert [one.get("retryable", False) for one in failed] == [True, False], "the rule matched, once"
    assert [status["name"] for one in failed for status in one["containerStatuses"]] == ["training"] * 2
    errors = gateway.ok("POST", "/v1/job/errors", {"jobIds": [made["jobId"]]})["jobErrors"]
    assert "training exited with code 3" in errors[made["jobId"]]


def test_a_queue_that_is_updated_without_owners_has_none_and_is_open_to_nobody(
    gateway: Gateway, server: DoorServer
) -> None:
    server.run("update", "settings", "--access", "user=user:ben")
    create = ("token", "create", "ben", "--user", "ben", "--role", "user", "-o", "json")
    created = server.run(*create)
    while "ben has no role here" in created.stderr:  # a server knows roles of a moment ago
        created = server.run(*create)
    ben = Gateway(server, authorization=f"Bearer {json.loads(created.stdout)['token']}")
    body = {"queue": "ml", "jobSetId": "s", "jobRequestItems": [item(["true"])]}
    owned = gateway.ok("GET", "/v1/queue/ml")
    assert gateway.ok("PUT", "/v1/queue/ml", {**owned, "priorityFactor": 3}) == {}
    assert gateway.ok("GET", "/v1/queue/ml")["permissions"] == owned["permissions"]
    for factor in (4, 5):
        assert gateway.ok("PUT", "/v1/queue/ml", {"priorityFactor": factor}) == {}
        assert "permissions" not in gateway.ok("GET", "/v1/queue/ml")
        assert ben.refused("POST", "/v1/job/submit", body)[0] == 403
    assert gateway.ok("PUT", "/v1/queue/new", {"priorityFactor": 1}) == {}
    assert ben.refused("POST", "/v1/job/submit", {**body, "queue": "new"})[0] == 403, "nor is one that is new"
    gateway.ok("DELETE", "/v1/queue/new")
    gateway.ok("PUT", "/v1/queue/ml", {"priorityFactor": 1, "userOwners": ["ben"]})
    wait_until(lambda: ben("POST", "/v1/job/submit", body).status_code == 200, "a queue that is open to its new owner")


def test_batches_of_queues_and_streams_of_them(gateway: Gateway) -> None:
    made = gateway.ok(
        "POST", "/v1/batched/create_queues", {"queues": [{"name": "b", "priorityFactor": 1}, {"name": "c"}]}
    )
    [failed] = made["failedQueues"]
    assert (failed["queue"]["name"], failed["error"][:25]) == ("c", "rpc error: code = Invalid")
    changed = {"queues": [{"name": "b", "priorityFactor": 4}]}
    assert gateway.ok("PUT", "/v1/batched/update_queues", changed) == {}
    lines = gateway("GET", "/v1/batched/queues").text.splitlines()
    assert [line[:28] for line in lines] == [*['{"result":{"queue":{"name":"'] * 3, '{"result":{"end":{}}}']
    assert len(gateway("GET", "/v1/batched/queues?num=1&nope=2").text.splitlines()) == 2
    assert gateway.ok("PUT", "/v1/queue/b", {"name": "other", "priorityFactor": 7}) == {}
    assert gateway.ok("GET", "/v1/queue/b")["priorityFactor"] == 7, "what is in the path wins"
    assert gateway.ok("DELETE", "/v1/queue/b") == {}
    assert gateway.refused("GET", "/v1/queue/b") == (404, 5, 'error: could not find queue "b"')
    assert gateway.ok("POST", "/v1/queues/active", {}) == {}


def test_active_queues_are_those_with_a_job_that_has_its_place_as_upstream_has_it(
    gateway: Gateway, server: DoorServer
) -> None:
    gateway.ok("POST", "/v1/queue", {"name": "waits", "priorityFactor": 1, "cordoned": True})
    gateway.submit(ENDLESS, queue="waits")
    [job] = gateway.submit(ENDLESS)
    with server.client() as client:
        until(client, job, lambda view: view.state == "Running")
    assert gateway.ok("POST", "/v1/queues/active", {}) == {"activeQueuesByPool": {"default": {"queues": ["ml"]}}}


@pytest.mark.slow
def test_jobs_are_cancelled_preempted_and_reprioritized_and_nodes_cordoned(
    gateway: Gateway, server: DoorServer
) -> None:
    ask = gateway
    first, second, third = ask.submit(ENDLESS, ENDLESS, ENDLESS)
    with server.client() as client:
        for one in (first, second, third):
            until(client, one, lambda view: view.state == "Running")
    where = {"queue": "ml", "jobSetId": "s"}
    assert ask.ok("POST", "/v1/queues/active", {}) == {"activeQueuesByPool": {"default": {"queues": ["ml"]}}}
    changed = ask.ok("POST", "/v1/job/reprioritize", {**where, "jobIds": [first], "newPriority": 9})
    assert changed == {"reprioritizationResults": {first: ""}}
    assert ask.ok("POST", "/v1/job/cancel", {**where, "jobIds": [first]}) == {"cancelledIds": [first]}
    taken = ask.ok("POST", "/v1/job/preempt", {**where, "jobIds": [second], "reason": "other work"})
    assert taken == {"preemptionResults": {second: ""}}
    assert ask.ok("POST", "/v1/jobset/cancel", {**where, "filter": {"states": ["PENDING", 2]}}) == {}
    told = ask.told(3)
    ends = {event["jobId"]: kind for _, kind, event in told if kind in {"cancelled", "preempted"}}
    assert ends == {first: "cancelled", second: "preempted", third: "cancelled"}
    assert {event["requestor"] for _, kind, event in told if kind in {"cancelled", "preempted"}} == {"ann"}
    with server.client() as client:
        [node] = {one.name for one in client.nodes()}
        assert ask.ok("POST", "/v1/binoculars/cordon", {"nodeName": node}) == {}
        assert all("cordoned by ann" in str(one.reason) for one in client.nodes())


def test_what_runs_on_a_node_is_preempted_and_cancelled_by_queue_and_class(
    gateway: Gateway, server: DoorServer
) -> None:
    ask = gateway
    [usual] = ask.submit(ENDLESS)
    pod = item(ENDLESS)["podSpec"]
    assert isinstance(pod, dict)
    [yields] = ask.submit(ENDLESS, podSpec={**pod, "priorityClassName": "armada-preemptible"})
    with server.client() as client:
        for one in (usual, yields):
            until(client, one, lambda view: view.state == "Running")
        [node] = {(one.name, one.executor) for one in client.nodes()}
    whole: dict[str, object] = {"executor": node[1], "queues": ["ml"], "priorityClasses": ["armada-preemptible"]}
    at = f"/v1/node/preempt/{node[0]}"
    others: list[dict[str, object]] = [{"queues": []}, {"queues": ["other"]}, {"executor": "other"}]
    others.append({"priorityClasses": ["armada-other"]})
    for less in others:
        assert ask.ok("POST", at, {**whole, **less}) == {}
        assert ask.ok("POST", at.replace("preempt", "cancel"), {**whole, **less}) == {}
    with server.client() as client:
        assert {one.action for one in client.audit()}.isdisjoint({"preempt", "cancel"}), "nobody was meant yet"
    missing = "must provide non-empty executor {} when determining what to preempt"
    assert ask.refused("POST", at, {"queues": ["ml"]}) == (400, 3, missing.format("id"))
    assert ask.ok("POST", at, whole) == {}
    with server.client() as client:
        assert "preempt" in {one.action for one in client.audit()}
    told = ask.told(1)
    assert [(event["jobId"], kind) for _, kind, event in told if kind == "preempted"] == [(yields, "preempted")]
    assert ask.ok("POST", at.replace("preempt", "cancel"), {**whole, "priorityClasses": []}) == {}
    [ended] = [event for _, kind, event in ask.told(2) if kind == "cancelled"]
    assert (ended["jobId"], ended["reason"]) == (usual, "cancelled by CancelOnNode")


@pytest.mark.slow
def test_a_watch_over_http_goes_on_at_its_message_over_a_kill_of_the_server(
    gateway: Gateway, server: DoorServer
) -> None:
    ids = gateway.submit(*[["sh", "-c", f"sleep 0.{n % 5}; exit {n % 2}"] for n in range(12)])
    first = [line["result"]["id"] for line in islice(gateway.events(watch=True), 9)]
    server.end()
    with server.start() as client:
        for one in ids:
            until(client, one, lambda view: view.state in {"Succeeded", "Failed"})
    again = Gateway(server)
    rest = [line["result"]["id"] for line in again.events(fromMessageId=first[-1])]
    whole = [line["result"]["id"] for line in again.events()]
    assert first + rest == whole, "without watch it ends by itself"
    assert len({*whole}) == len(whole)


def test_without_the_door_there_is_no_gateway(server: DoorServer) -> None:
    del server.environ["HOLDFAST_DOORS"]  # type: ignore[attr-defined]  # a dictionary
    with server.start():
        ask = Gateway(server, authorization=f"Bearer {server.address()['token']}")
        answer = ask("GET", "/v1/queue/default")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_job_that_is_not_submitted_is_told_of_in_upstreams_words_and_with_all_places(gateway: Gateway) -> None:
    wrong = item(["true"], podSpec={"containers": [{"name": "main", "resources": {"limits": {"cpu": "lots"}}}]})
    answer = gateway("POST", "/v1/job/submit", {"queue": "ml", "jobSetId": "s", "jobRequestItems": [item([]), wrong]})
    told = answer.json()
    assert (answer.status_code, told["code"]) == (400, 3)
    [details] = told["details"]
    assert details["@type"] == "type.googleapis.com/google.rpc.BadRequest"
    assert any("lots" in one["description"] for one in details["fieldViolations"])
    unknown = {"queue": "nope", "jobSetId": "s", "jobRequestItems": [item(["true"])]}
    assert gateway.refused("POST", "/v1/job/submit", unknown) == (403, 7, 'could not find queue "nope"')
    wait_until(lambda: gateway("POST", "/v1/job-set/ml/s", {}).text == "", "no job was stored")
