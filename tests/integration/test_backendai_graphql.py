"""GraphQL by Backend.AI's door in one process: how often it asks the database, and whatever may be asked of it."""

from __future__ import annotations

import json
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    get_named_type,
)
from sqlalchemy import event
from sqlalchemy.engine import Engine

from holdfast.api.backendai.graphql.endpoint import PATH
from holdfast.api.backendai.graphql.schema import SCHEMA
from holdfast.api.backendai.serving import BackendAiDoor, DoorSetup
from holdfast.api.budget import MemoryBudget
from holdfast.compiled.codec import dump_spec
from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Caller
from holdfast.domain.job import Job
from holdfast.domain.sessions.model import SessionSpec, named_id
from holdfast.domain.sessions.records import first_session
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import HoldfastError, NotLeader
from holdfast.ports.store import Changes, Submission
from holdfast.service.operations.backend import Backend
from holdfast.storage.sql import open_store
from tests import databases
from tests.asgi import asking
from tests.contract.test_store_sessions import retry_of
from tests.integration.conftest import Counting, NoLogs
from tests.unit.conftest import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx
    from graphql import GraphQLField
    from starlette.types import Scope

    from holdfast.domain.sessions.model import Session
    from holdfast.ports.store import Store

ANN = Principal("ann", roles=(Role.ADMIN,))
CHAIN = 100
EVERYTHING = """
    fragment all on SessionV2 { id entityId imageIds domainName userId projectId replicaId retryCount maxRetries
        retryCause metadata { creationId name sessionType accessKey clusterMode clusterSize tier priority jobPriority
        isPreemptible tag } resource { resourceGroupName allocation { requested { entries { resourceType quantity } }
        used { entries { quantity } } allocated { entries { quantity } } } } lifecycle { status result createdAt
        terminatedAt startsAt batchTimeout statusInfo } runtime { environ { entries { key value } } bootstrapScript
        startupCommand callbackUrl } network { useHostNetwork networkType networkId } retryPolicy { maxRetries
        retryDelay backoff backoffMultiplier maxRetryDelay jitter jitterRatio eligibleCauses emitRetryEvents }
        retryState { state attempt of nextAttemptAt nextSessionId } parentSession { entityId } }
"""


class Lab:
    """A door, the database behind it, and whether it may write."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.refusal: HoldfastError | None = None

    async def caller(self, _: Scope) -> Caller:
        return Caller(ANN, 0.0, "", "")

    def ask(self, client: httpx.Client, query: str, **variables: Any) -> dict[str, Any]:  # noqa: ANN401 - of a query
        answer = client.post(PATH, json={"query": query, "variables": variables})
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    store = open_store(f"sqlite:///{databases.migrated(tmp_path / 'h.db')}")
    yield Lab(store)
    store.close()


@pytest.fixture
def client(lab: Lab) -> Iterator[httpx.Client]:
    backend = Backend(lab.store, VirtualClock(), Counting(), NoLogs(), ANN)
    with ThreadPoolExecutor(2) as threads:
        door = BackendAiDoor(DoorSetup(backend, lab.caller, threads, MemoryBudget(), lambda: lab.refusal))
        with asking(door.answer) as client:
            yield client
        door.launches.close()


def statements(work: Any) -> tuple[int, Any]:  # noqa: ANN401 - what the work returns
    """Return how many statements some work takes, and its result."""
    count = 0

    def note(*_: object) -> None:
        nonlocal count
        count += 1

    event.listen(Engine, "before_cursor_execute", note)
    try:
        return (result := work()) and (count, result)
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def retried(store: Store, name: str, count: int) -> list[Session]:
    """Store a chain of so many sessions."""
    session = SessionSpec(image="py", request={"startup_command": "true"})
    spec = JobSpec(name, ("true",), env={"A": "b"}, session=session)
    job = Job(name, name, "default", 0, 100.0, dump_spec(spec), submitted_by="ann")
    chain = [first_session(job, session, name=name)]
    store.submit(Submission([job], sessions=chain))
    while len(chain) < count:
        chain.append(retry_of(chain[-1]))
    store.commit(Changes(sessions={session.id: session for session in chain}))
    return chain


def test_a_chain_and_a_list_of_chains_take_as_many_statements_as_one_session(lab: Lab, client: httpx.Client) -> None:
    one = retried(lab.store, "one", 1)[0]
    chain = retried(lab.store, "more", CHAIN)
    query = f"query ($id: UUID!) {{ sessionV2(id: $id) {{ ...all retryChain {{ ...all }} }} }} {EVERYTHING}"
    listed = "query ($first: Int) { adminSessionsV2(first: $first) { edges { node { ...all } } } }" + EVERYTHING
    lab.ask(client, query, id=one.id)  # what is read once is read
    few, _ = statements(lambda: lab.ask(client, query, id=one.id))
    count, told = statements(lambda: lab.ask(client, query, id=chain[70].id))
    assert "errors" not in told
    keys = [member["entityId"] for member in told["data"]["sessionV2"]["retryChain"]]
    assert keys == [session.id for session in chain]
    assert [member["parentSession"] for member in told["data"]["sessionV2"]["retryChain"]] == [
        None,
        *({"entityId": key} for key in keys[:-1]),
    ]
    assert 0 < count == few <= 6
    for number in range(20):
        retried(lab.store, f"other{number}", 5)
    few, _ = statements(lambda: lab.ask(client, listed, first=1))
    count, told = statements(lambda: lab.ask(client, listed, first=CHAIN))
    assert len(told["data"]["adminSessionsV2"]["edges"]) == CHAIN
    assert 0 < count == few


def test_a_server_that_may_not_write_still_answers_queries(lab: Lab, client: httpx.Client) -> None:
    lab.refusal = NotLeader()
    end = "mutation { terminateSessionsV2(input: {sessionIds: []}) { skipped } }"
    (error,) = lab.ask(client, end)["errors"]
    assert error["extensions"]["code"] == "session_terminate_unavailable"
    assert lab.ask(client, "{ adminSessionsV2 { count } }") == {"data": {"adminSessionsV2": {"count": 0}}}


def test_without_the_library_a_query_is_refused_and_told_what_to_install(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "holdfast.api.backendai.graphql.execution", None)
    answer = client.post(PATH, json={"query": "{ adminSessionsV2 { count } }"})
    assert (answer.status_code, answer.json()["error_code"]) == (503, "graphql_read_unavailable")
    assert "holdfast-scheduler[backendai]" in answer.json()["msg"]


class Queries:
    """Makes queries of the schema at random, some of them wrong."""

    def __init__(self, seed: int, keys: list[str]) -> None:
        self.dice = random.Random(seed)  # noqa: S311 - the same in every run
        self.keys = keys

    def document(self) -> str:
        """Return a query or a mutation."""
        schema = SCHEMA._schema  # noqa: SLF001 - its only public form is text
        kind = schema.mutation_type if self.dice.random() < 0.2 else schema.query_type
        assert kind is not None
        text = ("mutation " if kind is schema.mutation_type else "query ") + self.selection(kind, 0)
        if self.dice.random() < 0.1:
            place = self.dice.randrange(len(text))
            text = text[:place] + self.dice.choice("{}()[]!:$@\\\"'\0\ud7ff#") + text[place + 1 :]
        return text

    def selection(self, kind: GraphQLObjectType, depth: int) -> str:
        """Return some of the fields of a type."""
        fields = [*kind.fields.items()]
        chosen = self.dice.sample(fields, min(len(fields), 1 + int(self.dice.random() * (4 - depth / 3))))
        parts = [self.field(f"f{number}: {name}", field, depth) for number, (name, field) in enumerate(chosen)]
        return f"{{ {' '.join(part for part in parts if part) or '__typename'} }}"

    def field(self, name: str, field: GraphQLField, depth: int) -> str:
        """Return a field with arguments, and what is asked of it."""
        arguments = [
            f"{key}: {self.value(argument.type, 0)}"
            for key, argument in field.args.items()
            if isinstance(argument.type, GraphQLNonNull) or self.dice.random() < 0.2
        ]
        kind = get_named_type(field.type)
        inner = ""
        if isinstance(kind, GraphQLObjectType):
            if depth > 8:
                return ""
            inner = self.selection(kind, depth + 1)
        return f"{name}{'(' + ', '.join(arguments) + ')' if arguments else ''} {inner}"

    def value(self, kind: Any, depth: int) -> str:  # noqa: ANN401 - a type
        """Return a value of a type, or something like it."""
        if isinstance(kind, GraphQLNonNull):
            return self.value(kind.of_type, depth)
        if isinstance(kind, GraphQLList):
            return f"[{', '.join(self.value(kind.of_type, depth) for _ in range(self.dice.randrange(3)))}]"
        if isinstance(kind, GraphQLInputObjectType):
            fields = [
                f"{name}: {self.value(field.type, depth + 1)}"
                for name, field in kind.fields.items()
                if isinstance(field.type, GraphQLNonNull) or self.dice.random() < 0.4 / (1 + depth)
            ]
            return f"{{{', '.join(fields)}}}"
        if isinstance(kind, GraphQLEnumType):
            return str(self.dice.choice([*kind.values]))
        words = self.words(str(kind))
        return self.dice.choice(words[:2] if self.dice.random() < 0.8 else words)

    def words(self, kind: str) -> list[str]:
        """Return values of a scalar, some of which are too large or of another type."""
        numbers = ["1", "7", "0", "-1", str(2**31 - 1), str(2**40), "1.5", "1e400", "null"]
        texts = [json.dumps(word) for word in ("a", "0.5", "", "%_", "é\U0010ffff", "x" * 5000, "2026-01-01T00:00:00Z")]
        plain = {
            "Int": numbers,
            "Float": numbers,
            "Boolean": ["true", "false", "null"],
            "UUID": [json.dumps(key) for key in (*self.keys, "not one")],
            "DateTime": ['"2026-01-01T00:00:00"', '"9999-12-31T23:59:59-23:59"', '"0001-01-01T00:00:00+23:59"', '"x"'],
            "JSON": ["{}", '{A: "b"}', "[1]", '"x"', "1e400"],
        }
        return plain.get(kind, [*texts, '"\\u0000"', '"Y3Vyc29yOnYxOg"', '"Y3Vyc29yOnYxOgA"', "null"])


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_asked_is_answered_or_refused(lab: Lab, client: httpx.Client, seed: int) -> None:
    queries = Queries(seed, [retried(lab.store, "some", 3)[1].id, named_id("project", "default")])
    answered = 0
    for _ in range(75):
        query = queries.document()
        answer = client.post(PATH, json={"query": query})
        assert answer.status_code in {200, 400}, (query, answer.text)
        told = answer.json()
        codes = {error["extensions"]["code"] for error in told.get("errors", ())}
        assert not any(code.endswith(("internal-error", "unavailable")) for code in codes), (query, told)
        answered += not codes and "data" in told
    assert answered > 5
