"""Fluster's door by gRPC: the same calls, callers and refusals as by Connect."""

from __future__ import annotations

import json
import socket
import sys
from contextlib import suppress
from queue import SimpleQueue as Never
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from holdfast.api.connect._generated import error_details, status
from holdfast.api.connect.serving import LARGEST_MESSAGE
from holdfast.api.fluster.calls import CALLS, CONTROLLER
from holdfast.app.entrance import doors
from holdfast.app.settings import Settings
from holdfast.errors import InvalidSetting
from tests.e2e.fluster_stage import Connected, FlusterServer, cluster, fluster, launch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.protobuf.message import Message

__all__ = ["fluster"]
LIMITED = (
    "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200));from holdfast.cli.main import main; main()"
)
TRUE = "#!/bin/sh\ntrue\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlusterServer]:
    server = FlusterServer(tmp_path_factory.mktemp("door"))
    server.open()
    yield server
    server.clean_up()


@pytest.fixture
def channel(server: FlusterServer) -> Iterator[grpc.Channel]:
    told = json.loads((server.data / "server.json").read_text())["doors"]
    with grpc.insecure_channel(told["fluster-grpc"]) as channel:
        yield channel


def ask(channel: grpc.Channel, name: str, sent: Message, **metadata: str) -> Any:  # noqa: ANN401 - its own type
    method = CALLS.methods[f"/{CONTROLLER}/{name}"]
    call: Any = channel.unary_unary(
        method.path,
        request_serializer=method.request.SerializeToString,
        response_deserializer=method.response.FromString,
    )
    return call(sent, timeout=30, metadata=tuple(metadata.items()))


def refused(channel: grpc.Channel, name: str, sent: Message, **metadata: str) -> tuple[str, str]:
    with pytest.raises(grpc.RpcError) as raised:
        ask(channel, name, sent, **metadata)
    error: Any = raised.value
    return error.code().name, error.details()


def test_a_job_is_launched_by_grpc_and_looked_at_by_connect(server: FlusterServer, channel: grpc.Channel) -> None:
    sent = launch("by grpc/one", "#!/bin/sh\necho hello\n")
    assert [ask(channel, "LaunchJob", sent).job_id for _ in range(2)] == ["by grpc/one"] * 2
    assert Connected(server).ended("by grpc/one").state == cluster.JOB_STATE_SUCCEEDED
    asked = cluster.Controller.GetJobStatusRequest(job_id="by grpc/one")
    assert ask(channel, "GetJobStatus", asked).job == Connected(server).status("by grpc/one")


def test_refusals_are_those_of_connect_cut_to_what_headers_have_room_for(channel: grpc.Channel) -> None:
    code, told = refused(channel, "LaunchJob", cluster.Controller.LaunchJobRequest())
    assert code == "INVALID_ARGUMENT"
    assert "name: " in told
    assert "serialized_entrypoint: " in told
    assert refused(channel, "RegisterWorker", cluster.Controller.RegisterWorkerRequest())[0] == "UNIMPLEMENTED"
    for text in ("x" * 100_000, "\u65e5" * 50_000, "%" * 50_000):
        code, told = refused(channel, "GetJobStatus", cluster.Controller.GetJobStatusRequest(job_id=text))
        assert (code, told.endswith("...")) == ("NOT_FOUND", True)
    told_of = refused(channel, "ListJobs", cluster.Controller.ListJobsRequest(), authorization="Bearer guess")
    assert told_of[0] == "UNAUTHENTICATED"
    call: Any = channel.unary_unary(f"/{CONTROLLER}/GetJobStatus")
    with pytest.raises(grpc.RpcError) as raised:
        call(b"\xff\xff\xff", timeout=30)
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def violations(channel: grpc.Channel, name: str, sent: Message) -> dict[str, str]:
    """Return what stands beside a refusal, by the paths of fields."""
    with pytest.raises(grpc.RpcError) as raised:
        ask(channel, name, sent)
    error: Any = raised.value
    beside = dict(error.trailing_metadata())
    assert sum(len(key) + len(value) for key, value in beside.items()) + len(error.details()) < 8_000
    whole, request = status.Status.FromString(beside["grpc-status-details-bin"]), error_details.BadRequest()
    assert (whole.code, whole.message) == (error.code().value[0], error.details())
    assert whole.details[0].Unpack(request)
    return {one.field: one.description for one in request.field_violations}


def test_everything_that_is_wrong_stands_beside_the_sentence_as_far_as_headers_have_room(
    channel: grpc.Channel,
) -> None:
    wrong = cluster.Controller.LaunchJobRequest(scheduling_timeout_seconds=-1)
    wrong.retry.max_retries_failure = -1
    found = violations(channel, "LaunchJob", wrong)
    paths = {"name", "serialized_entrypoint", "scheduling_timeout_seconds", "retry.max_retries_failure"}
    assert {*found} == paths
    assert found["scheduling_timeout_seconds"].startswith("-1 is out of range; allowed: 0 to ")
    wrong.environment.pip_packages.extend(f"-{'x' * 50} {at}" for at in range(200))
    found = violations(channel, "LaunchJob", wrong)
    assert found.pop("").startswith("and ")
    assert 5 < len(found) < 100


def test_what_is_too_large_is_its_senders_mistake(channel: grpc.Channel) -> None:
    sent = launch("large", TRUE)
    sent.bundle_blob = bytes(LARGEST_MESSAGE)
    code, told = refused(channel, "LaunchJob", sent)
    assert (code, "larger than the 67,108,864 bytes" in told) == ("INVALID_ARGUMENT", True)


HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
"""How a connection of gRPC begins: its preface, and settings that set nothing."""


def test_who_hangs_or_holds_connections_keeps_nobody_else_from_being_answered(fluster: FlusterServer) -> None:
    """Of 200 files, REST keeps some, however many connections others hold."""
    fluster.environ = {**fluster.environ, "HOLDFAST_REQUEST_TIMEOUT": "1s"}
    fluster.words = (sys.executable, "-c", LIMITED, *fluster.words[3:])
    door = fluster.open()
    told = json.loads((fluster.data / "server.json").read_text())["doors"]
    host, _, port = str(told["fluster-grpc"]).rpartition(":")
    idle = [socket.create_connection((host, int(port)), timeout=10) for _ in range(300)]
    try:
        for at, one in enumerate(idle):
            with suppress(OSError):
                one.sendall((b"GET / HTTP/1.1\r\n\r\n", HELLO, HELLO, HELLO)[at % 4])
        for one in idle:
            with suppress(ConnectionError):
                one.recv(1)  # each is let in or turned away; who waited outside would wait for ever
        door("LaunchJob", launch("meanwhile", TRUE))
        assert door.ended("meanwhile").state == cluster.JOB_STATE_SUCCEEDED
    finally:
        for one in idle:
            one.close()
    with grpc.insecure_channel(told["fluster-grpc"]) as channel:
        method = CALLS.methods[f"/{CONTROLLER}/ListWorkers"]
        silent: Any = channel.stream_stream(method.path)(iter(Never().get, None))
        assert ask(channel, "ListJobs", cluster.Controller.ListJobsRequest()).jobs[0].job_id == "meanwhile"
        assert silent.code() is grpc.StatusCode.CANCELLED, "nobody waits for ever for a message"


def test_other_machines_do_not_reach_it() -> None:
    for place in ("0.0.0.0:50052", "[::]:0", "10.1.2.3:1"):
        with pytest.raises(InvalidSetting, match="can be reached by other machines"):
            doors.place_of_fluster(Settings(fluster_listen=place))
    for place in ("localhost", "here:1", "127.0.0.1:70000"):
        with pytest.raises(InvalidSetting, match="is not an address and a port"):
            doors.place_of_fluster(Settings(fluster_listen=place))
    assert doors.place_of_fluster(Settings(fluster_listen="[::1]:0")) == ("::1", 0)
