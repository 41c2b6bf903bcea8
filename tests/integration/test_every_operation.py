"""Every operation as every role over HTTP: what the table of rights refuses is refused, and nothing else for that."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from holdfast.api.http.endpoints.endpoint import groups
from holdfast.api.http.serving.app import create_app
from holdfast.api.http.serving.gates import Entrance
from holdfast.domain.access.grants import Right
from holdfast.domain.access.people import ROLES, Role
from holdfast.domain.access.tokens import BELOW_IT
from holdfast.domain.audit import Subject
from holdfast.domain.job import JobState, Run
from holdfast.domain.lifecycle import RunStatus
from holdfast.domain.record import evolve
from holdfast.domain.rights import TABLE, WORK, Reach
from holdfast.domain.terms.entries import CATEGORY, ENTRIES, IMAGE, KEYPAIR, NOTIFIER, POLICY, EntryInfo
from holdfast.ports.store import Changes
from holdfast.service.access.book import FRESH_S
from holdfast.service.access.tokens import RunTokens
from holdfast.storage.sql import open_store
from tests.contract.test_client_api import served
from tests.integration.conftest import Counting, NoLogs
from tests.integration.test_api_tokens import ACCOUNTS, LAB, OWN
from tests.unit.conftest import VirtualClock
from tests.unit.jobset_lab import group, manifest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holdfast.domain.terms.kinds import SubjectName


OPEN = {"GET /healthz", "GET /readyz", "GET /api/v1/version", "GET /api/v1/me"}
"""What everybody who is let in may ask."""
NAME = "X" * 20
"""A name that also is an access key; other entries are named alike in small letters."""
JOB = {"name": "train", "command": ["true"]}
KUBE = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "x"},
    "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "m", "command": ["true"]}]}}},
}
SPECS: dict[EntryInfo, dict[str, Any]] = {
    CATEGORY: {"rules": [{"onLog": {"pattern": "x"}}]},
    IMAGE: {"reference": "python:3.11"},
    KEYPAIR: {"owner": "ann"},
    NOTIFIER: {"type": "webhook", "url": "https://example.org"},
    POLICY: {"rules": []},
}


def name_for(plural: str) -> str:
    """Return the name in addresses and manifests of a kind."""
    return NAME if plural == KEYPAIR.plural else NAME.lower()


BODIES: dict[str, dict[str, Any]] = {
    "/api/v1/jobs": JOB,
    "/api/v1/jobs/{ref}": KUBE,
    "/api/v1/jobs/states": {"ids": []},
    "/api/v1/jobs/reprioritize": {"priority": 1, "ids": []},
    "/api/v1/jobs/cancel": {"ids": []},
    "/api/v1/jobs/preempt": {"ids": []},
    "/api/v1/jobs/{ref}/reprioritize": {"priority": 1},
    "/api/v1/blobs": {"data": "eA=="},
    "/api/v1/secrets": {"value": "s"},
    "/api/v1/dry-run": JOB,
    "/api/v1/arrays": {**JOB, "array": {"indices": "0-1"}},
    "/api/v1/arrays/{ref}": {**JOB, "name": "x", "array": {"indices": "0-1"}},
    "/api/v1/arrays/{ref}/rerun": {"failed": True},
    "/api/v1/jobsets": manifest("x", replicatedJobs=[group("w", 1)]),
    "/api/v1/jobsets/{ref}": manifest("x", replicatedJobs=[group("w", 1)]),
    "/api/v1/settings": {},
    "/api/v1/tokens": {"name": "t"},
    **{
        f"/api/v1/{info.plural}{end}": {
            "apiVersion": "holdfast.dev/v1",
            "kind": info.manifest,
            "metadata": {"name": name_for(info.plural)},
            "spec": SPECS.get(info, {}),
        }
        for info in ENTRIES.values()
        for end in ("", "/{name}")
    },
}
KINDS = {
    "nodes": Subject.NODE,
    "devices": Subject.DEVICE,
    "arrays": Subject.ARRAY,
    "jobsets": Subject.JOB_SET,
    **{info.plural: info.subject for info in ENTRIES.values()},
    "settings": Subject.SETTINGS,
    "notifications": Subject.NOTIFICATION,
    "audit": Subject.AUDIT,
    "tokens": Subject.TOKEN,
    "metrics": Subject.SERVER,
}
"""By the first word of an address; all else is about jobs."""


def asked(method: str, path: str) -> tuple[Right, SubjectName]:
    """Say which right a call takes, from its address alone."""
    words = path.removeprefix("/api/v1").strip("/").split("/")
    kind, last = KINDS.get(words[0], Subject.JOB), words[-1]
    if last == "logs":
        return Right.LOGS, kind
    if method == "GET" or last == "states":
        return Right.WATCH, kind
    work = kind in {Subject.JOB, Subject.ARRAY, Subject.JOB_SET}
    if last in {"preempt", "reprioritize"}:
        return Right(last), kind if work else Subject.JOB
    if work and (method == "DELETE" or last == "cancel"):
        return Right.CANCEL, kind
    if work and (last == "rerun" or (len(words) < 3 and (method, kind) != ("PUT", Subject.ARRAY))):
        return Right.SUBMIT, kind
    return Right.CHANGE, kind


OF_A_JOB = "job's own token"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, httpx.Client]]:
    """One server, and a client of each role, and of a job's own token."""
    path: Path = tmp_path_factory.mktemp("rights") / "holdfast.db"
    clock = VirtualClock()
    with ExitStack() as stack:
        store = open_store(path)
        stack.callback(store.close)
        entrance = Entrance(LAB, OWN, account=ACCOUNTS.get)
        app = create_app(store=store, clock=clock, ids=Counting(), logs=NoLogs(), entrance=entrance)
        url = stack.enter_context(served(app))

        def client(token: str) -> httpx.Client:
            headers = {"Authorization": f"Bearer {token}"}
            return stack.enter_context(httpx.Client(base_url=url, headers=headers, timeout=60))

        admin = client(OWN)
        job_id = admin.post("/api/v1/jobs", json={**JOB, "name": "acts", "identity": True}).json()["id"]
        tokens, uid = RunTokens(b"key"), f"{job_id}-1-0-1"
        [job] = store.jobs_by_id([job_id])
        run = Run(uid, job_id, 1, 0, RunStatus.RUNNING, token_digest=tokens.digest(uid))
        running = evolve(job, state=JobState.RUNNING, attempt=1)
        store.commit(Changes(jobs={job_id: running}, runs={uid: run}))
        made = {role: admin.post("/api/v1/tokens", json={"name": role, "role": role}).json()["token"] for role in ROLES}
        clock.time += FRESH_S
        yield {**{role: client(token) for role, token in made.items()}, OF_A_JOB: client(tokens.token(uid))}


CALLS = [f"{one.method} {one.path}" for each in groups() for one in each if f"{one.method} {one.path}" not in OPEN]


def request_of(call: str) -> tuple[str, str, str | None]:
    """Return the method, the address and the body that a call is tried with."""
    method, path = call.split()
    name = name_for(path.removeprefix("/api/v1/").partition("/")[0])
    address = path.replace("{ref}", "x").replace("{name}", name).replace("{number}", "1").replace("{index}", "0")
    return method, address, None if method in {"GET", "DELETE"} else json.dumps(BODIES.get(path, {}))


def require_as_the_table_says(call: str, role: Role, status: int, text: str) -> None:
    """Compare an answer with the table: refused for that, or for nothing that has to do with rights."""
    right, kind = asked(*call.split())
    how_far = TABLE[kind][right][ROLES.index(role)]
    refused = status == 403 and json.loads(text)["code"] == "forbidden"
    assert status != 401
    assert refused is (how_far is Reach.NONE), f"{role} {right} {kind}: {status} {text}"


@pytest.mark.parametrize("call", CALLS)
def test_each_call_is_refused_to_the_roles_the_table_says(call: str, server: dict[str, httpx.Client]) -> None:
    method, address, body = request_of(call)
    for role in ROLES:
        answer = server[role].request(
            method, address, content=body, headers={"Content-Type": "application/json"} if body else {}
        )
        require_as_the_table_says(call, role, answer.status_code, answer.text)


@pytest.mark.parametrize("call", CALLS)
def test_the_token_of_a_job_is_for_submitting_reading_and_cancelling_work(
    call: str, server: dict[str, httpx.Client]
) -> None:
    method, address, body = request_of(call)
    right, kind = asked(*call.split())
    headers = {"Content-Type": "application/json"} if body else {}
    answer = server[OF_A_JOB].request(method, address, content=body, headers=headers)
    assert answer.status_code != 401
    if kind not in WORK or right not in BELOW_IT:
        assert answer.json()["code"] == "forbidden", answer.text
        assert "with this token: its scope is submit,watch,logs,cancel@job:group=acts/" in answer.json()["detail"]


@pytest.mark.parametrize("call", CALLS)
def test_each_refusal_says_which_right_is_missing_and_who_can_give_it_and_is_audited(
    call: str, server: dict[str, httpx.Client]
) -> None:
    method, address, body = request_of(call)
    right, kind = asked(*call.split())
    refused = [role for role, how_far in zip(ROLES, TABLE[kind][right], strict=True) if how_far is Reach.NONE]
    for role in refused:
        headers = {"Content-Type": "application/json"} if body else {}
        told = server[role].request(method, address, content=body, headers=headers).json()
        assert f"may not {right} " in told["detail"], told
        assert f"whose role here is {role}" in told["detail"], told
        assert told["hint"].startswith("an admin can grant it: holdfast update settings --access "), told
    audit = server[Role.ADMIN].get("/api/v1/audit", params={"limit": 1000}).json()["items"]
    told_of = {one["detail"] for one in audit if (one["kind"], one["outcome"]) == (kind, "forbidden")}
    for role in refused:
        assert any(f"role here is {role}, may not {right} " in detail for detail in told_of), (role, told_of)
