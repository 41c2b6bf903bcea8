"""Fluster's door by gRPC: the same calls, callers and refusals as by Connect."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from holdfast.api.fluster.calls import CALLS, CONTROLLER
from holdfast.app.entrance import doors
from holdfast.app.settings import Settings
from holdfast.errors import InvalidSetting
from tests.e2e.fluster_stage import Connected, FlusterServer, cluster, launch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.protobuf.message import Message


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
        method.path, request_serializer=method.sent.SerializeToString, response_deserializer=method.answered.FromString
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


def test_other_machines_do_not_reach_it() -> None:
    for place in ("0.0.0.0:50052", "[::]:0", "10.1.2.3:1"):
        with pytest.raises(InvalidSetting, match="can be reached by other machines"):
            doors.place_of_fluster(Settings(fluster_listen=place))
    for place in ("localhost", "here:1", "127.0.0.1:70000"):
        with pytest.raises(InvalidSetting, match="is not an address and a port"):
            doors.place_of_fluster(Settings(fluster_listen=place))
    assert doors.place_of_fluster(Settings(fluster_listen="[::1]:0")) == ("::1", 0)
