"""Nothing of what callers send is read but into a share of the budget that all doors have together."""

from __future__ import annotations

import ast
from pathlib import Path

API = Path(__file__).resolve().parents[2] / "src" / "holdfast" / "api"
READING = {"receive", "stream", "body", "json", "form", "read"}
"""What is called to have more of a request: by ASGI, by the framework and by gRPC."""
COUNTED = {
    ("budget.py", "read_body"): "takes a share",
    ("http/serving/gates.py", "counted"): "takes a share",
    ("http/serving/routing.py", "_read_text"): "behind the gate that takes a share",
    ("http/serving/browser.py", "_typed"): "reads a form, of which it keeps a few bytes",
    ("http/serving/streams.py", "_until_gone"): "keeps nothing",
    ("armada/gateway.py", "_until_gone"): "keeps nothing",
    ("connect/arrivals.py", "message"): "keeps room before it reads",
    ("connect/grpc_serving.py", "read"): "called through arrivals, with room kept",
}
TAKING = {"read_body": "share.take(", "counted": "share.take(", "message": "self._make_room(share)"}


def functions() -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    found = []
    for path in sorted(API.rglob("*.py")):
        tree = ast.parse(path.read_text())
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        found += [(str(path.relative_to(API)), node) for node in ast.walk(tree) if isinstance(node, kinds)]
    return found


def reads(function: ast.AST) -> bool:
    """Whether something in a function waits for more of a request."""
    for node in ast.walk(function):
        awaited = node.value if isinstance(node, ast.Await) else node.iter if isinstance(node, ast.AsyncFor) else node
        if isinstance(awaited, ast.Call):
            called = awaited.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in READING and awaited is not node:
                return True
    return False


def test_a_door_that_reads_takes_its_share_first() -> None:
    readers = {(place, one.name) for place, one in functions() if reads(one)}
    inner = {
        (place, one.name) for place, one in functions() for part in ast.walk(one) if part is not one and named(part)
    }
    outer = readers & inner
    assert readers - outer - set(COUNTED) == set(), "read it by budget.read_body, or arrivals.Arrivals"
    assert set(COUNTED) - readers == set(), "it reads nothing any more: take it from the list"


def named(part: ast.AST) -> bool:
    """Whether a function has a function in it that is listed itself."""
    return isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)) and part.name in {name for _, name in COUNTED}


def test_what_counts_bodies_does_so() -> None:
    texts = {(place, one.name): ast.unparse(one) for place, one in functions()}
    for (place, name), why in COUNTED.items():
        assert TAKING.get(name, "") in texts[place, name], why


def test_a_door_that_reads_past_the_budget_is_noticed() -> None:
    past = "async def body(receive):\n    return (await receive())['body']\n"
    assert reads(ast.parse(past))
    assert not reads(ast.parse("async def body(share):\n    return share.body\n"))
