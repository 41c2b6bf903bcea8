"""GraphQL by Backend.AI's door: sessions and their chains, lists, mutations, refusals and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphql import get_introspection_query

from holdfast.domain.sessions.model import named_id
from tests.e2e.backendai_stage import BackendAiServer, door
from tests.e2e.server import wait_until
from tests.e2e.test_backendai_sessions import IMAGE, PROJECT, StockClient, body, read, until

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["door"]
PATH = "/admin/gql/strawberry"
CHAIN = """
    query ($id: UUID!) { sessionV2(id: $id) { entityId parentSession { entityId } retryCount maxRetries
        retryPolicy { maxRetries } retryCause retryState { state attempt of } retryChain { entityId retryCount } } }
"""
ENQUEUE = """
    mutation ($input: EnqueueSessionInput!) { enqueueSession(input: $input) { warnings session { entityId
        metadata { name sessionType } lifecycle { status result } maxRetries
        retryPolicy { maxRetries retryDelay backoff jitter eligibleCauses maxRetryDelay } } } }
"""


def ask(server: BackendAiServer, query: str, path: str = PATH, **variables: Any) -> Mapping[str, Any]:  # noqa: ANN401
    """Ask, and return the whole answer."""
    answer = server.call("POST", path, {"query": query, "variables": variables})
    assert answer.status_code == 200, answer.text
    told: Mapping[str, Any] = answer.json()
    return told


def data(server: BackendAiServer, query: str, **variables: Any) -> Mapping[str, Any]:  # noqa: ANN401 - as above
    """Ask for what has no errors."""
    told = ask(server, query, **variables)
    assert "errors" not in told, told
    values: Mapping[str, Any] = told["data"]
    return values


def refusal(server: BackendAiServer, query: str, **variables: Any) -> tuple[str, Sequence[Mapping[str, Any]]]:  # noqa: ANN401
    """Ask for what is refused; return its code and the problems."""
    told = ask(server, query, **variables)
    (error,) = told["errors"]
    assert told["data"] is None, told
    return error["extensions"]["code"], error["extensions"].get("errors", ())


def request(name: str, command: str = "true", **more: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of a request
    """Return the input for a batch session."""
    return {
        "sessionName": name,
        "sessionType": "BATCH",
        "imageId": IMAGE,
        "projectId": PROJECT,
        "resourceEntries": [
            {"resourceType": "cpu", "quantity": "0.1"},
            {"resourceType": "mem", "quantity": "67108864"},
        ],
        "batch": {"startupCommand": command},
        **more,
    }


def test_a_chain_is_told_by_every_member_oldest_first(door: BackendAiServer) -> None:
    """RG-001, RG-002."""
    policy = {"maxRetries": 1, "retryDelay": 0.01, "jitter": "NONE"}
    created = data(door, ENQUEUE, input=request("again", "exit 3", retryPolicy=policy))["enqueueSession"]
    first = created["session"]
    assert created["warnings"] == []
    assert first["metadata"] == {"name": "again", "sessionType": "BATCH"}
    assert first["lifecycle"] == {"status": "PENDING", "result": "UNDEFINED"}
    assert first["retryPolicy"] == {**first["retryPolicy"], **policy, "backoff": "FIXED", "maxRetryDelay": 3600}
    key = first["entityId"]
    wait_until(lambda: len(read(door, key)["retry_chain"]) == 2, "two sessions")
    second = read(door, key)["retry_chain"][1]
    until(door, second, "TERMINATED")
    chain = [{"entityId": key, "retryCount": 0}, {"entityId": second, "retryCount": 1}]
    shared = {
        "maxRetries": 1,
        "retryPolicy": {"maxRetries": 1},
        "retryCause": "KERNEL_NONZERO_EXIT",
        "retryChain": chain,
    }
    assert data(door, CHAIN, id=key)["sessionV2"] == {
        **shared,
        "entityId": key,
        "parentSession": None,
        "retryCount": 0,
        "retryState": {"state": "RETRIED", "attempt": 1, "of": 2},
    }
    assert data(door, CHAIN, id=second)["sessionV2"] == {
        **shared,
        "entityId": second,
        "parentSession": {"entityId": key},
        "retryCount": 1,
        "retryState": {"state": "EXHAUSTED", "attempt": 2, "of": 2},
    }


def test_a_session_that_is_not_retried_is_a_chain_of_its_own(door: BackendAiServer) -> None:
    """RG-002."""
    key = door.call("POST", "/v2/sessions", body("alone")).json()["session"]["id"]
    until(door, key, "TERMINATED")
    told = data(door, CHAIN, id=key)["sessionV2"]
    assert (told["parentSession"], told["retryCause"], told["retryState"]["state"]) == (None, None, "NONE")
    assert told["retryChain"] == [{"entityId": key, "retryCount": 0}]
    assert ask(door, CHAIN, "/admin/gql", id=key)["data"]["sessionV2"] == told


BAD: Mapping[str, dict[str, Any]] = {
    "batch": {"batch": None},
    "tier": {"tier": 101},
    "sessionType": {"sessionType": "INFERENCE"},
    "retryPolicy.maxRetries": {"retryPolicy": {"maxRetries": 1001}},
    "retryPolicy.retryDelay": {"retryPolicy": {"retryDelay": -1}},
    "retryPolicy.backoff": {"retryPolicy": {"backoff": "LINEAR"}},
    "retryPolicy.eligibleCauses": {"retryPolicy": {"eligibleCauses": ["USER_CANCELLED"]}},
    "retryPolicy.retries": {"retryPolicy": {"retries": 1}},
}


def test_what_is_wrong_with_an_input_is_told_and_nothing_is_stored(door: BackendAiServer) -> None:
    """RG-003."""
    for path, change in BAD.items():
        code, problems = refusal(door, ENQUEUE, input=request("bad", **change))
        assert (code, bool(problems)) == ("api_parsing_invalid-parameters", True), path
        if path.startswith("retryPolicy.max") or path == "tier":
            assert [problem["path"] for problem in problems] == [path]
    fields = f'sessionName: "\\u0000", sessionType: BATCH, imageId: "{IMAGE}", projectId: "{PROJECT}"'
    inline = f'{{{fields}, resourceEntries: [], batch: {{startupCommand: "true"}}}}'
    code, problems = refusal(door, f"mutation {{ enqueueSession(input: {inline}) {{ warnings }} }}")
    assert (code, "NUL" in problems[0]["message"]) == ("api_parsing_invalid-parameters", True)
    unknown = request("bad", imageId=named_id("nothing", "x"))
    assert refusal(door, ENQUEUE, input=unknown)[0] == "session_create_not-found"
    assert data(door, "{ adminSessionsV2 { count } }") == {"adminSessionsV2": {"count": 0}}
    assert refusal(door, CHAIN, id=named_id("session", "none"))[0] == "session_read_not-found"
    listed = "query ($id: UUID!) { projectSessionsV2(scope: {projectId: $id}) { count } }"
    assert refusal(door, listed, id=named_id("nothing", "x"))[0] == "session_search_not-found"


def test_sessions_are_listed_by_filter_order_and_page_and_ended(door: BackendAiServer) -> None:
    keys = {}
    for name in ("a", "b", "c"):
        held = request(name, sessionType="INTERACTIVE", tag="t" if name != "a" else "u")
        del held["batch"]
        keys[name] = data(door, ENQUEUE, input=held)["enqueueSession"]["session"]["entityId"]
    listed = """
        query ($filter: SessionV2Filter, $first: Int, $after: String, $last: Int, $before: String, $id: UUID!) {
            adminSessionsV2(filter: $filter, orderBy: [{field: NAME, direction: ASC}], first: $first, after: $after,
                last: $last, before: $before) { ...page }
            projectSessionsV2(scope: {projectId: $id}, filter: $filter, orderBy: {field: NAME, direction: DESC}) {
                ...page } }
        fragment page on SessionV2Connection { count edges { cursor node { entityId metadata { name } } }
            pageInfo { hasNextPage hasPreviousPage startCursor endCursor } }
    """

    def names(page: Mapping[str, Any]) -> list[str]:
        return [edge["node"]["metadata"]["name"] for edge in page["edges"]]

    every = data(door, listed, id=PROJECT, first=2)
    page = every["adminSessionsV2"]
    assert (names(page), page["count"], names(every["projectSessionsV2"])) == (["a", "b"], 3, ["c", "b", "a"])
    information = page["pageInfo"]
    assert (information["hasNextPage"], information["hasPreviousPage"]) == (True, False)
    assert (information["startCursor"], information["endCursor"]) == tuple(edge["cursor"] for edge in page["edges"])
    after = data(door, listed, id=PROJECT, first=2, after=information["endCursor"])["adminSessionsV2"]
    assert (names(after), after["pageInfo"]["hasPreviousPage"]) == (["c"], True)
    before = data(door, listed, id=PROJECT, last=1, before=information["endCursor"])["adminSessionsV2"]
    assert names(before) == ["a"]
    where = {"tag": {"equals": "t"}, "NOT": [{"name": {"in": ["b"]}}], "status": {"notIn": ["ERROR"]}}
    assert names(data(door, listed, id=PROJECT, filter=where)["adminSessionsV2"]) == ["c"]
    both = "{ adminSessionsV2(first: 1, limit: 1) { count } }"
    for wrong in (both, "{ adminSessionsV2(first: 0) { count } }", '{ adminSessionsV2(after: "x") { count } }'):
        assert refusal(door, wrong)[0] == "api_parsing_invalid-parameters"
    end = """mutation ($input: TerminateSessionsV2Input!) { terminateSessionsV2(input: $input) {
        cancelled terminating forceTerminated skipped } }"""
    unknown = named_id("session", "none")
    told = data(door, end, input={"sessionIds": [*keys.values(), unknown]})["terminateSessionsV2"]
    assert {*told["cancelled"], *told["terminating"]} == {*keys.values()}
    assert (told["forceTerminated"], told["skipped"]) == ([], [unknown])


def test_what_asks_for_too_much_is_refused_before_it_is_answered(door: BackendAiServer) -> None:
    def deep(levels: int) -> str:
        return "{ sessionV2(id: $id) " + "{ parentSession " * levels + "{ entityId" + " }" * (levels + 2)

    key = door.call("POST", "/v2/sessions", body("any")).json()["session"]["id"]
    asked = "query ($id: UUID!) "
    assert data(door, asked + deep(8), id=key)["sessionV2"]["parentSession"] is None
    lists = "{ adminSessionsV2(first: 1000) { edges { node { retryChain { entityId } } } } }"
    doubled = "".join(f"fragment f{n} on Query {{ ...f{n + 1} ...f{n + 1} }} " for n in range(40))
    aliases = " ".join(f"a{n}: adminSessionsV2(first: 1000) {{ edges {{ cursor }} }}" for n in range(80))
    circular = "{ ...f } fragment f on Query { ...f }"
    in_part = "query ($id: UUID!) { sessionV2(id: $id) { ...f } } fragment f on SessionV2 "
    for query in (
        asked + deep(9),
        in_part + deep(9).partition(") ")[2],
        lists,
        "{ ...f0 } " + doubled + "fragment f40 on Query { adminSessionsV2 { count } }",
        f"{{ {aliases} }}",
        "{ " + "__typename " * 1000 + "}",
        "{ a" * 20_000,
        "{ adminSessionsV2(filter: {" + "AND: [{" * 300 + "}]" * 300 + "}) { count } }",
        circular,
        "{ ...{" + "...{" * 300 + "__typename" + "}" * 302,
        "",
        "{",
        "{ nothing }",
        "mutation { retrySession(id: 1) { id } }",
        "subscription { sessionV2 }",
        "fragment f on Query { __typename }",
    ):
        told = ask(door, query, id=key)
        codes = {error["extensions"]["code"] for error in told.get("errors", ())}
        assert (codes, told["data"]) == ({"api_parsing_invalid-parameters"}, None), (query[:100], told)
    for wrong in ({}, {"query": 1}, {"query": "x" * 65_537}, {"query": "{}", "variables": []}):
        assert door.call("POST", PATH, wrong).status_code == 400
    chosen = {"query": "query a { __typename } query b { b: __typename }", "operationName": "b"}
    assert door.call("POST", PATH, chosen).json() == {"data": {"b": "Query"}}


def test_clients_can_ask_for_the_schema(door: BackendAiServer) -> None:
    told = data(door, get_introspection_query())
    names = {kind["name"] for kind in told["__schema"]["types"]}
    assert {"SessionV2", "SessionV2Filter", "EnqueueSessionInput"} <= names
    mutations = next(kind for kind in told["__schema"]["types"] if kind["name"] == "Mutation")
    assert {field["name"] for field in mutations["fields"]} == {"enqueueSession", "terminateSessionsV2"}


def test_the_stock_client_asks_for_a_retried_session_and_its_chain(door: BackendAiServer) -> None:
    told = StockClient(door)(
        """
        async def work(registry):
            enqueue = "mutation ($input: EnqueueSessionInput!) "
            enqueue += "{ enqueueSession(input: $input) { session { entityId } } }"
            policy = {"maxRetries": 1, "retryDelay": 0.01}
            cpu, memory = {"resourceType": "cpu", "quantity": "0.1"}, {"resourceType": "mem", "quantity": "1g"}
            request = {"sessionName": "again", "sessionType": "BATCH", "imageId": str(IMAGE), "projectId": str(PROJECT),
                "resourceEntries": [cpu, memory], "batch": {"startupCommand": "exit 3"}, "retryPolicy": policy}
            refused = await registry.gql.query(enqueue, {"input": request}, v2=True)
            memory["quantity"] = "67108864"
            created = await registry.gql.query(enqueue, {"input": request}, v2=True)
            key = created["data"]["enqueueSession"]["session"]["entityId"]
            chain = "query ($id: UUID!) { sessionV2(id: $id) { retryChain { entityId retryState { state } } } }"
            for _ in range(600):
                read = (await registry.gql.query(chain, {"id": key}, v2=True))["data"]["sessionV2"]["retryChain"]
                if [member["retryState"]["state"] for member in read] == ["RETRIED", "EXHAUSTED"]:
                    break
                await asyncio.sleep(0.05)
            done([refused["errors"][0]["extensions"]["code"], key, read])
        main(work)
        """
    )
    code, key, chain = told
    assert code == "api_parsing_invalid-parameters"
    assert [member["retryState"]["state"] for member in chain] == ["RETRIED", "EXHAUSTED"]
    assert chain[0]["entityId"] == key
