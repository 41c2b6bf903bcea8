"""Sessions by Backend.AI's door: with its own client, unmodified, in an environment of its own, and by plain calls."""

from __future__ import annotations

import json
import os
import subprocess
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.domain.sessions.model import kernel_id, named_id
from tests.e2e.backendai_stage import BackendAiServer, door
from tests.e2e.backendai_table import ANSWERED, WHY_NOT
from tests.e2e.server import wait_until
from tools.clients import python_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["door"]
PROJECT, IMAGE = named_id("project", "default"), named_id("image", "default")
PRELUDE = """
import asyncio, json, os, sys
from uuid import UUID
from ai.backend.client.v2.auth import HMACAuth
from ai.backend.client.v2.config import ClientConfig
from ai.backend.client.v2.exceptions import BackendAPIError
from ai.backend.client.v2.v2_registry import V2ClientRegistry
from ai.backend.common.dto.manager.v2.kernel.request import *
from ai.backend.common.dto.manager.v2.scheduling_history.request import *
from ai.backend.common.dto.manager.v2.session.request import *
from yarl import URL

PROJECT, IMAGE = UUID(sys.argv[1]), UUID(sys.argv[2])

def batch(name, command, **more):
    entries = [{"resource_type": "cpu", "quantity": "0.1"}, {"resource_type": "mem", "quantity": "67108864"}]
    return EnqueueSessionInput(session_name=name, session_type="batch", image_id=IMAGE, project_id=PROJECT,
        resource_entries=entries, batch={"startup_command": command}, **more)

async def until(sessions, key, *statuses):
    for _ in range(600):
        node = await sessions.get(key)
        if node.lifecycle.status in statuses:
            return node
        await asyncio.sleep(0.05)
    raise SystemExit(f"{key} is never {statuses}: {node}")

def done(value):
    print(json.dumps(value, default=str))

def main(work):
    async def run():
        auth = HMACAuth(os.environ["BACKEND_ACCESS_KEY"], os.environ["BACKEND_SECRET_KEY"])
        config = ClientConfig(endpoint=URL(os.environ["BACKEND_ENDPOINT"]), endpoint_type="api")
        registry = await V2ClientRegistry.create(config, auth)
        try:
            await work(registry)
        finally:
            await registry.close()
    asyncio.run(run())
"""

SEARCHES = """
async def work(registry):
    sessions, history = registry.session, registry.scheduling_history
    nodes = [(await sessions.enqueue(batch(f"s{n}", "true", tag=f"t{n % 2}", cluster_size=n))).session
             for n in (1, 2, 3)]
    for node in nodes:
        await until(sessions, node.id, "TERMINATED")
    ids = [node.id for node in nodes]
    renamed = (await sessions.update(ids[0], UpdateSessionInput(name="renamed", tag="new"))).session
    order = [{"field": "name", "direction": "ASC"}]
    named = {"AND": [{"name": {"i_starts_with": "S"}}], "status": {"in": ["TERMINATED"]}}
    found = await sessions.my_search(AdminSearchSessionsInput(filter=named, order=order, limit=1))
    page = await sessions.admin_search(AdminSearchSessionsInput(order=order, last=1))
    project = await sessions.project_search(
        PROJECT, AdminSearchSessionsInput(filter={"cluster_size": {"greater_than": 1}}, order=order, offset=1))
    own = {"user_uuid": {"equals": nodes[0].user_id}}
    user = await sessions.my_search(AdminSearchSessionsInput(filter=own))
    kernels = await sessions.search_kernels_by_session(str(ids[2]), AdminSearchKernelsInput(
        filter={"status": {"equals": "TERMINATED"}}, order=[{"field": "cluster_idx", "direction": "ASC"}]))
    agent = kernels.items[0].resource.agent_id
    by_agent = [await sessions.search_sessions_by_agent(agent, AdminSearchSessionsInput()),
                await sessions.search_kernels_by_agent(agent, AdminSearchKernelsInput()),
                await sessions.admin_search_kernels(AdminSearchKernelsInput(first=2))]
    oldest = [{"field": "created_at", "direction": "ASC"}]
    steps = await history.session_scoped_search(
        ids[0], AdminSearchSessionHistoriesInput(order=oldest, first=50))
    every = await history.search_session_history(AdminSearchSessionHistoriesInput(
        filter={"to_status": ["RUNNING"], "result": {"equals": "SUCCESS"}}))
    of_kernels = await history.kernel_scoped_search(ScopedSearchKernelHistoriesInput(
        scope={"session": [{"value": ids[0]}]}, order=oldest, first=50))
    all_kernels = await history.search_kernel_history(AdminSearchKernelHistoriesInput(
        filter={"to_status": ["TERMINATED"]}))
    handlers = await registry.scheduling_handler.list()
    done({
        "renamed": [renamed.metadata.name, renamed.metadata.tag],
        "found": [[item.metadata.name for item in found.items], found.total_count, found.has_next_page],
        "page": [[item.metadata.name for item in page.items], page.has_previous_page, page.has_next_page],
        "project": [item.metadata.name for item in project.items],
        "user": user.total_count,
        "kernels": [[kernel.cluster.cluster_hostname, kernel.lifecycle.status] for kernel in kernels.items],
        "by_agent": [result.total_count for result in by_agent],
        "steps": [step.to_status for step in steps.items],
        "every": every.total_count,
        "of_kernels": [step.to_status for step in of_kernels.items],
        "all_kernels": all_kernels.total_count,
        "handlers": len(handlers.items),
    })
main(work)
"""


class StockClient:
    """The client of the pinned version, as the administrator."""

    def __init__(self, server: BackendAiServer) -> None:
        if not python_of("backendai").exists():
            pytest.skip("Backend.AI's client is not installed; to judge the door by it: ./dev clients")
        self._python = python_of("backendai")
        self._environ = {**os.environ, **server.variables(), "HOME": str(server.folder)}

    def __call__(self, script: str) -> Any:  # noqa: ANN401 - what the script prints
        """Run a script, and return what it says is ``done``."""
        ended = self._run("-c", PRELUDE + textwrap.dedent(script), PROJECT, IMAGE)
        return json.loads(ended.splitlines()[-1])

    def command(self, *words: str) -> str:
        """Run ``backend.ai``."""
        return self._run("-m", "ai.backend.cli", *words)

    def _run(self, *words: str) -> str:
        ended = subprocess.run(
            [self._python, *words], env=self._environ, capture_output=True, text=True, check=False, timeout=120
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout


def test_the_stock_client_enqueues_a_batch_session_and_reads_it_and_its_output(door: BackendAiServer) -> None:
    told = StockClient(door)(
        """
        async def work(registry):
            sessions = registry.session
            command = "echo $WORD $BACKENDAI_SESSION_NAME $BACKENDAI_KERNEL_ID"
            request = batch("hello", command, environ={"WORD": "hi"}, tag="t")
            node = (await sessions.enqueue(request)).session
            ended = await until(sessions, node.id, "TERMINATED")
            logs = (await sessions.get_logs(node.id)).logs
            failing = (await sessions.enqueue(batch("fails", "exit 3"))).session
            failed = await until(sessions, failing.id, "TERMINATED")
            done([node.model_dump(), ended.model_dump(), logs, failed.lifecycle.result])
        main(work)
        """
    )
    node, ended, logs, failed = told
    assert (node["lifecycle"]["status"], node["metadata"]["name"], node["metadata"]["tag"]) == ("PENDING", "hello", "t")
    assert (ended["lifecycle"]["result"], logs, failed) == (
        "success",
        f"hi hello {kernel_id(node['id'], 0)}\n",
        "failure",
    )
    assert node["project_id"] == PROJECT
    assert ended["runtime"]["environ"] == {"entries": [{"key": "WORD", "value": "hi"}]}


def test_the_stock_client_searches_sessions_kernels_and_their_histories_and_renames_a_session(
    door: BackendAiServer,
) -> None:
    told = StockClient(door)(SEARCHES)
    statuses = ["SCHEDULED", "PREPARING", "PREPARED", "CREATING", "RUNNING", "TERMINATING", "TERMINATED"]
    steps = told.pop("steps")
    assert [status for status in statuses if status not in steps] == []
    assert told.pop("of_kernels")[-1] == "TERMINATED"
    assert told.pop("handlers") > 5
    assert told == {
        "renamed": ["renamed", "new"],
        "found": [["s2"], 2, True],
        "page": [["s3"], True, False],
        "project": ["s3"],
        "user": 3,
        "kernels": [["main1", "TERMINATED"], ["sub1", "TERMINATED"], ["sub2", "TERMINATED"]],
        "by_agent": [3, 6, 6],
        "every": 3,
        "all_kernels": 6,
    }


CALLS = """
import ast, importlib, inspect, pkgutil
from ai.backend.client.v2 import domains_v2

NAMES = {"domain_name": "default", "agent_id": "node", "access_key": "AKIA",
    "self._gql_path(v2=v2)": "/admin/gql/strawberry"}
SENDS = {"typed_request", "typed_request_no_content", "_request", "upload", "download", "ws_connect", "sse_connect"}

def text_of(node, constants):
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part, constants) for part in node.values)
    name = ast.unparse(node.value if isinstance(node, ast.FormattedValue) else node)
    return constants.get(name) or NAMES.get(name, "00000000-0000-4000-8000-000000000000")

calls = []
for info in pkgutil.iter_modules(domains_v2.__path__):
    module = importlib.import_module(f"{domains_v2.__name__}.{info.name}")
    tree = ast.parse(inspect.getsource(module))
    constants = {name: value for name, value in vars(module).items() if isinstance(value, str)}
    for method in ast.walk(tree):
        if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for node in ast.walk(method):
                if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in SENDS and len(node.args) > 1:
                    verb, path = (text_of(arg, constants) for arg in node.args[:2])
                    if path.startswith("/"):
                        calls.append([info.name, method.name, verb, path])
print(json.dumps(calls))
"""


def test_every_call_of_the_stock_client_is_answered_or_refused_for_a_reason(door: BackendAiServer) -> None:
    calls = StockClient(door)(CALLS)
    nouns = {noun for noun, *_ in calls}
    reasons = {noun: reason for reason, refused in WHY_NOT.items() for noun in refused}
    assert len(calls) > 350
    assert nouns - reasons.keys() - ANSWERED.keys() == set()
    answered: dict[str, set[str]] = {}
    for noun, name, verb, path in calls:
        answer = door.call(verb, path, None if verb in {"GET", "DELETE"} else {})
        refused = answer.status_code in {404, 405} and answer.json()["error_code"].startswith("api_access_")
        assert refused or answer.status_code < 500, (noun, name)
        if not refused:
            answered.setdefault(noun, set()).add(name)
        else:
            assert noun in reasons, (noun, name)
    assert answered == ANSWERED


RESOURCES = ["default", 1, ["default"], [True, "local/process:latest"]]
ENTRIES = """
from ai.backend.common.dto.manager.v2.domain.request import *
from ai.backend.common.dto.manager.v2.group.request import *
from ai.backend.common.dto.manager.v2.image.request import *
from ai.backend.common.dto.manager.v2.resource_group.request import *
from ai.backend.common.dto.manager.v2.user.request import *

async def work(registry):
    project = await registry.project.get(PROJECT)
    domain = await registry.domain.get("default")
    projects = await registry.project.admin_search(AdminSearchProjectsInput(
        filter={"name": {"equals": "default"}}, order=[{"field": "name"}], limit=1))
    domains = await registry.domain.admin_search(AdminSearchDomainsInput(
        filter={"NOT": [{"name": {"i_contains": "AUL"}}]}, first=1))
    users = await registry.user.admin_search(SearchUsersRequest(limit=5))
    user = (await registry.user.get(users.items[0].id)).user
    group = await registry.resource_group.get("default")
    groups = await registry.resource_group.search(AdminSearchResourceGroupsInput(
        filter={"name": {"equals": "default"}}))
    allowed = await registry.resource_group.get_allowed_resource_groups_for_project(PROJECT)
    images = await registry.image.admin_search(AdminSearchImagesInput(limit=5))
    done([project.basic_info.name, project.organization.domain_name, domain.lifecycle.is_default,
          [projects.total_count, domains.total_count], user.entity_id == users.items[0].id,
          [group.name, groups.total_count, allowed.items, [images.items[0].id == IMAGE, images.items[0].name]]])
main(work)
"""


@pytest.mark.slow  # its command takes two seconds to begin
def test_the_stock_client_reads_what_operators_write_and_users_and_its_command_reads_sessions(
    door: BackendAiServer,
) -> None:
    client = StockClient(door)
    assert client(ENTRIES) == ["default", "default", True, [1, 0], True, RESOURCES]
    key = door.call("POST", "/v2/sessions", body("named", "echo out")).json()["session"]["id"]
    until(door, key, "TERMINATED")
    assert json.loads(client.command("v2", "session", "get", key))["metadata"]["name"] == "named"
    assert client.command("v2", "session", "logs", key) == "out\n\n"
    assert json.loads(client.command("v2", "session", "terminate", key))["skipped"] == [key]


def body(name: str, command: str = "true", **more: Any) -> dict[str, object]:  # noqa: ANN401 - the fields of a request
    """Return a request for a batch session, as its client sends it."""
    entries = [{"resource_type": "cpu", "quantity": "0.1"}, {"resource_type": "mem", "quantity": "67108864"}]
    request: dict[str, object] = {
        "session_name": name,
        "session_type": "batch",
        "image_id": IMAGE,
        "project_id": PROJECT,
        "resource_entries": entries,
        "batch": {"startup_command": command},
    }
    return {name: value for name, value in {**request, **more}.items() if value is not None}


def read(server: BackendAiServer, key: str) -> Mapping[str, Any]:
    """Read a session."""
    session: Mapping[str, Any] = server.call("GET", f"/v2/sessions/{key}").json()
    return session


def until(server: BackendAiServer, key: str, *statuses: str) -> Mapping[str, Any]:
    """Wait until a session has one of these statuses."""
    wait_until(lambda: read(server, key)["lifecycle"]["status"] in statuses, f"{key} in {statuses}")
    return read(server, key)


BAD: Mapping[str, dict[str, Any]] = {
    "batch": {"batch": None},
    "batch.startup_command": {"batch": {"startup_command": ""}},
    "batch.batch_timeout": {"batch": {"startup_command": "true", "batch_timeout": -1}},
    "batch.starts_at": {"batch": {"startup_command": "true", "starts_at": "soon"}},
    "session_name": {"session_name": "x" * 65},
    "session_type": {"session_type": "inference", "retry_policy": {"max_retries": 1}},
    "interactive": {"session_type": "interactive"},
    "tier": {"tier": 101},
    "priority": {"priority": -1},
    "cluster_size": {"cluster_size": 0},
    "tag": {"tag": "x" * 65},
    "image_id": {"image_id": "python"},
    "resource_entries[0].quantity": {"resource_entries": [{"resource_type": "cpu", "quantity": "two"}]},
    "resource_entries[0].resource_type": {"resource_entries": [{"resource_type": "tpu", "quantity": "1"}]},
    "environ.BACKENDAI_SESSION_ID": {"environ": {"BACKENDAI_SESSION_ID": "x"}},
    "mounts": {"mounts": [{"vfolder_id": IMAGE}]},
    "retry_policy.max_retries": {"retry_policy": {"max_retries": 1001}},
    "retry_policy.retries": {"retry_policy": {"retries": 1}},
    "retry_policy": {"retry_policy": []},
    "unknown": {"max_retries": 1},
}


def test_what_is_wrong_with_a_request_is_told_and_nothing_is_stored(door: BackendAiServer) -> None:
    """RA-003."""
    for path, change in BAD.items():
        answer = door.call("POST", "/v2/sessions/enqueue", body("bad", **change))
        assert (answer.status_code, answer.json()["error_code"]) == (400, "api_parsing_invalid-parameters"), path
        if path not in {"batch", "interactive", "unknown"}:
            assert path in answer.json()["msg"], answer.json()
    number = json.dumps(body("bad", retry_policy={"retry_delay": "inf"})).replace('"inf"', "Infinity")
    assert door.call("POST", "/v2/sessions", content=number.encode()).status_code == 400
    for name, code in (("image_id", 404), ("project_id", 404), ("resource_group_id", 404), ("owner_id", 403)):
        request = body("bad", **{name: named_id("nothing", "x")})
        assert door.call("POST", "/v2/sessions", request).status_code == code, name
    with door.client() as client:
        assert [*client.jobs()] == []


def test_a_failing_session_is_retried_as_often_as_it_asks_for_and_its_chain_is_told_by_every_member(
    door: BackendAiServer,
) -> None:
    """RA-001, RA-004, RD-015."""
    policy = {"max_retries": 2, "retry_delay": 0.01, "jitter": "none"}
    answer = door.call("POST", "/v2/sessions", body("again", "exit 3", retry_policy=policy))
    assert answer.status_code == 201
    first = answer.json()["session"]
    assert (first["retry_count"], first["max_retries"], first["parent_session_id"]) == (0, 2, None)
    assert first["retry_policy"] == {**first["retry_policy"], **policy}
    wait_until(lambda: len(read(door, first["id"])["retry_chain"]) == 3, "three sessions")
    chain = read(door, first["id"])["retry_chain"]
    last = until(door, chain[-1], "TERMINATED")
    members = [read(door, key) for key in chain]
    assert [member["retry_chain"] for member in members] == [chain] * 3
    assert [member["parent_session_id"] for member in members] == [None, *chain[:2]]
    assert [member["retry_state"]["state"] for member in members] == ["retried", "retried", "exhausted"]
    assert [(member["retry_state"]["attempt"], member["retry_state"]["of"]) for member in members] == [
        (1, 3),
        (2, 3),
        (3, 3),
    ]
    assert {member["retry_cause"] for member in members} == {"kernel_nonzero_exit"}
    assert {member["metadata"]["name"] for member in members} == {"again"}
    root = members[0]["metadata"]["creation_id"]
    assert [member["metadata"]["creation_id"] for member in members[1:]] == [f"{root}:retry:1", f"{root}:retry:2"]
    attempts = door.call("GET", f"/v2/sessions/{last['id']}/attempts").json()
    assert [(item["id"], item["attempt"], item["exit_code"]) for item in attempts["items"]] == [
        (key, place, 3) for place, key in enumerate(chain, 1)
    ]


def test_a_policy_with_every_field_is_read_back_as_it_was_sent(door: BackendAiServer) -> None:
    """RV-011: the order of the causes does not matter."""
    policy = {
        "max_retries": 3,
        "retry_delay": 1.5,
        "backoff": "exponential",
        "backoff_multiplier": 0.5,
        "max_retry_delay": None,
        "jitter": "random",
        "jitter_ratio": 1.0,
        "eligible_causes": ["unknown", "oom_killed"],
        "emit_retry_events": False,
    }
    key = door.call("POST", "/v2/sessions", body("whole", retry_policy=policy)).json()["session"]["id"]
    assert read(door, key)["retry_policy"] == {**policy, "eligible_causes": ["oom_killed", "unknown"]}


def test_a_session_without_a_policy_has_the_fields_of_retries_with_their_defaults(door: BackendAiServer) -> None:
    """RA-002, RA-006, RA-010."""
    answer = door.call("POST", "/v2/sessions", body("plain"))
    assert answer.status_code == 201
    session = answer.json()["session"]
    fields = ("parent_session_id", "retry_count", "max_retries", "retry_cause", "retry_chain")
    assert [session[name] for name in fields] == [None, 0, 0, None, [session["id"]]]
    assert session["retry_policy"]["max_retries"] == 0
    attempts = door.call("GET", f"/v2/sessions/{session['id']}/attempts").json()
    assert ([item["id"] for item in attempts["items"]], attempts["total_count"]) == ([session["id"]], 1)


def test_a_chain_keeps_its_policy_when_the_default_is_changed_under_it(door: BackendAiServer, tmp_path: Path) -> None:
    """RM-009: another session that is created then has the new default."""
    flag = tmp_path / "go"
    waits = f"while [ ! -e {flag} ]; do sleep 0.05; done; exit 3"
    with door.client() as client:
        client.put_settings({"sessionRetryDefault": {"max_retries": 1, "retry_delay": 0.01}})
        key = door.call("POST", "/v2/sessions", body("before", waits)).json()["session"]["id"]
        until(door, key, "RUNNING")
        client.put_settings({"sessionRetryDefault": {"max_retries": 0}})
    after = door.call("POST", "/v2/sessions", body("after", "exit 3")).json()["session"]["id"]
    flag.touch()
    wait_until(lambda: len(read(door, key)["retry_chain"]) == 2, "the retry that the old default grants")
    until(door, after, "TERMINATED")
    assert (read(door, after)["max_retries"], len(read(door, after)["retry_chain"])) == (0, 1)


def test_ending_sessions_says_of_each_what_is_done_and_frees_its_name(door: BackendAiServer) -> None:
    held = door.call("POST", "/v2/sessions", body("place", session_type="interactive", batch=None)).json()
    key = held["session"]["id"]
    until(door, key, "RUNNING")
    taken = door.call("POST", "/v2/sessions", body("place"))
    assert (taken.status_code, taken.json()["error_code"]) == (409, "session_create_already-exists")
    waiting = door.call("POST", "/v2/sessions", body("later", dependencies=[key])).json()["session"]["id"]
    unknown = named_id("session", "none")
    keys = [key, waiting, unknown]
    ended = door.call("POST", "/v2/sessions/terminate", {"session_ids": keys}).json()
    assert ended == {"cancelled": [waiting], "terminating": [key], "force_terminated": [], "skipped": [unknown]}
    until(door, waiting, "CANCELLED")
    assert until(door, key, "TERMINATED")["lifecycle"]["result"] == "cancelled"
    assert door.call("POST", "/v2/sessions/terminate", {"session_ids": keys}).json()["skipped"] == keys
    assert door.call("POST", "/v2/sessions", body("place")).status_code == 201
    missing = door.call("GET", f"/v2/sessions/{unknown}")
    assert (missing.status_code, missing.json()["error_code"]) == (404, "session_read_not-found")
