"""Programs of one family find each other by their own tokens, and nobody else's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.fluster import Entrypoint, FlusterClient, cluster_pb2
from tests.e2e.fluster_stage import Connected, FlusterServer, fluster, launch
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["fluster"]
TRUE = "#!/bin/sh\ntrue\n"
SMALL = cluster_pb2.ResourceSpec(cpu=0, memory="256m")
PROGRAMS = """
def serves():
    import http.server
    from holdfast.fluster import fluster_ctx

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"pong")

    port = fluster_ctx().get_port("http")
    with http.server.HTTPServer(("127.0.0.1", port), Answers) as server:
        fluster_ctx().registry.register("model", f"127.0.0.1:{port}")
        server.serve_forever()


def asks(gate):
    import os, time, urllib.request
    from holdfast.fluster import ClusterError, fluster_ctx

    context = fluster_ctx()
    while (found := context.resolver.resolve("model")).is_empty:
        time.sleep(0.05)
    refused = []
    for call in (context.client.status, context.client.terminate):
        try:
            call("top/mid/server")
        except ClusterError as error:
            refused.append(error.code)
    key = found.first().actor_id
    try:
        context.registry.unregister(key)
    except ClusterError as error:
        refused.append(error.code)
    while not os.path.exists(gate):
        time.sleep(0.05)
    with urllib.request.urlopen(found.first().url) as answer:
        return answer.read().decode(), refused, sorted(one.name for one in context.client.list_endpoints(""))


def middle(gate):
    from holdfast.fluster import Entrypoint, cluster_pb2, fluster_ctx

    client, small = fluster_ctx().client, cluster_pb2.ResourceSpec(cpu=0, memory="256m")
    client.submit(Entrypoint.from_callable(serves), "server", small, ports=["http"])
    asking = client.submit(Entrypoint.from_callable(asks, gate), "asking", small)
    client.wait(asking, timeout=120)
    return client.result(asking)


def top(gate):
    from holdfast.fluster import Entrypoint, cluster_pb2, fluster_ctx

    client, small = fluster_ctx().client, cluster_pb2.ResourceSpec(cpu=0, memory="256m")
    middling = client.submit(Entrypoint.from_callable(middle, gate), "mid", small)
    client.wait(middling, timeout=120)
    return client.result(middling)


def beside():
    from holdfast.fluster import FlusterContext, JobId, fluster_ctx, fluster_ctx_scope

    fluster_ctx().registry.register("own", "127.0.0.1:1")
    client = fluster_ctx().client
    with fluster_ctx_scope(FlusterContext(JobId("top/beside"))):
        return client.resolver().resolve("model").is_empty, [one.name for one in client.list_endpoints("")]


"""


def called(name: str, **named: object) -> Entrypoint:
    """Call one of the programs, which are pickled by value as those of a notebook are."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(PROGRAMS, space)  # noqa: S102 - of a test
    function: Callable[..., object] = space[name]
    return Entrypoint.from_callable(function, **named)


@pytest.mark.slow
def test_a_child_finds_what_its_sibling_serves_by_its_own_token_and_may_do_nothing_to_it_nor_does_who_is_beside(
    fluster: FlusterServer, tmp_path: Path
) -> None:
    fluster.open()
    gate = tmp_path / "gate"
    with FlusterClient.remote(str(fluster.address()["url"])) as client:
        top = client.submit(called("top", gate=str(gate)), "top", SMALL)
        wait_until(lambda: client.list_endpoints("top/"), "a server")
        beside = client.submit(called("beside"), "beside", SMALL)
        assert client.wait(beside, timeout=120).state == cluster_pb2.JOB_STATE_SUCCEEDED
        assert client.result(beside) == (True, ["beside/own"])
        gate.touch()
        ended = client.wait(top, timeout=120)
        assert ended.state == cluster_pb2.JOB_STATE_SUCCEEDED, ended.error
        assert client.result(top) == ("pong", ["not_found"] * 3, ["top/model"])


def test_the_own_token_of_a_job_takes_no_name_that_is_not_below_it(fluster: FlusterServer, tmp_path: Path) -> None:
    door, shown = fluster.open(), tmp_path / "token"
    door(
        "LaunchJob",
        launch("a", f'#!/bin/sh\nprintf %s "$HOLDFAST_TOKEN" > {shown}.new; mv {shown}.new {shown}\nsleep 1000\n'),
    )
    wait_until(shown.exists, "its token is written")
    own = Connected(fluster, shown.read_text())
    refused = own.refused("LaunchJob", launch("shared", TRUE))
    assert (refused.code, "name it a/shared" in refused.message) == ("permission_denied", True)
    assert own.refused("LaunchJob", launch("b/shared", TRUE)).code == "permission_denied"
    assert own("LaunchJob", launch("a/shared", TRUE)).job_id == "a/shared"
    assert door("LaunchJob", launch("shared", TRUE)).job_id == "shared"
