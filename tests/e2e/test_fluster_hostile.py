"""Whatever comes over a socket to the doors of Fluster and Iris is answered, or refused as its sender's mistake."""

from __future__ import annotations

import gzip
import json
import random
from typing import TYPE_CHECKING, Any

import grpc
import httpx
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.api.connect.serving import JSON, PROTO, encode
from holdfast.api.fluster.calls import CALLS as FLUSTER
from holdfast.api.fluster.calls import PREFIX as FLUSTER_PATHS
from holdfast.api.iris.calls import CALLS as IRIS
from holdfast.api.iris.calls import PREFIX as IRIS_PATHS
from tests.e2e.fluster_stage import Connected, FlusterServer
from tests.property.test_fluster_requests import Sender

if TYPE_CHECKING:
    from collections.abc import Iterator

ALL = {**FLUSTER.methods, **IRIS.methods}
METHODS = {path: one for path, one in ALL.items() if path.startswith((FLUSTER_PATHS, IRIS_PATHS))}
SENT_AGAIN = {"internal", "unknown", "unavailable", "deadline_exceeded", "resource_exhausted", "data_loss"}
"""What makes clients send a call again, and what says that something broke here."""
TEXTS = (
    *(
        "",
        "{",
        "null",
        "[]",
        "1",
        '"x"',
        '{"": 1}',
        '{"jobId": "a\\u0000b"}',
        '{"jobId": "\\ud800"}',
        '{"jobId": null}',
    ),
    *('{"name": 1e999}', '{"resources": {"cpu": 99999999999999999999}}', '{"resources": {"cpu": 1e400}}'),
    *('{"retry": {"backoffMultiplier": "NaN"}}', '{"retry": {"maxRetriesFailure": -9223372036854775809}}'),
    *('{"unknown": {"x": [1]}}', "[" * 50_000, '{"resources":' * 2_000 + "1" + "}" * 2_000, '{"name":"a","name":"b"}'),
    *(
        '{"bundleBlob": "not base64!"}',
        '{"metadata": {"a": 1}}',
        "\ufeff{}",
        "{}{}",
        "\x00",
        '{"x": ' + "9" * 5_000 + "}",
    ),
)
KINDS = (PROTO, JSON, "application/json; charset=utf-16", "APPLICATION/PROTO", "text/plain", "", "application/grpc")
PACKED = ("identity", "gzip", "zstd", "", "br", "gzip, gzip", "GZIP")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlusterServer]:
    server = FlusterServer(tmp_path_factory.mktemp("door"))
    server.open()
    yield server
    server.clean_up()


def body(dice: random.Random, method: Any, kind: str) -> bytes:  # noqa: ANN401 - of either door
    """Make up what somebody sends: a message, well or badly formed, or none at all."""
    how = dice.randrange(5 if method.path in FLUSTER.methods else 2)
    if how == 0:
        return dice.randbytes(dice.randrange(300))
    if how == 1:
        return dice.choice(TEXTS).encode("utf-8", "surrogatepass")
    message = Sender(dice.randrange(1 << 32)).fill(method.request())
    whole = encode(message, JSON if "json" in kind else PROTO)
    if how == 2 and whole:
        return whole[: dice.randrange(len(whole))]
    if how == 3 and whole:
        at = dice.randrange(len(whole))
        return whole[:at] + bytes([dice.randrange(256)]) + whole[at + 1 :]
    return whole


def packed(dice: random.Random, whole: bytes, how: str) -> bytes:
    """Compress what is sent as is said, mostly."""
    if dice.random() < 0.2:
        return whole
    done = {"gzip": gzip.compress, "zstd": zstandard.ZstdCompressor().compress}.get(how.lower(), bytes)(whole)
    return done[: dice.randrange(len(done))] if done and dice.random() < 0.3 else done


@pytest.mark.slow
@given(st.sampled_from(sorted(METHODS)), st.integers(0, 1 << 32))
@settings(max_examples=100, deadline=None)
def test_whatever_is_posted_is_never_answered_so_that_it_is_sent_again(
    server: FlusterServer, path: str, seed: int
) -> None:
    dice = random.Random(seed)  # noqa: S311 - made up by a seed
    kind, how = (dice.choice(one) if dice.random() < 0.3 else one[dice.randrange(2)] for one in (KINDS, PACKED))
    headers = {"content-type": kind, "content-encoding": how, "accept-encoding": dice.choice(PACKED)}
    if dice.random() < 0.1:
        headers["connect-timeout-ms"] = dice.choice(("", "x", "-1", "1e3", "9" * 10))
    sent = packed(dice, body(dice, METHODS[path], kind), how)
    answer = httpx.post(f"{Connected(server).url}{path}", content=sent, headers=headers, timeout=60)
    if answer.status_code in {200, 415}:
        return
    told = json.loads(answer.content)
    assert told["code"] not in SENT_AGAIN, (told, headers, sent)
    assert told["message"]


@pytest.mark.slow
@given(st.sampled_from(sorted(FLUSTER.methods)), st.integers(0, 1 << 32))
@settings(max_examples=60, deadline=None)
def test_whatever_is_called_by_grpc_is_never_answered_so_that_it_is_sent_again(
    channel: grpc.Channel, path: str, seed: int
) -> None:
    dice = random.Random(seed)  # noqa: S311 - made up by a seed
    call: Any = channel.unary_unary(path)
    answered = call.future(body(dice, FLUSTER.methods[path], PROTO), timeout=60)
    assert answered.code().name.lower() not in SENT_AGAIN, answered.details()


@pytest.fixture(scope="module")
def channel(server: FlusterServer) -> Iterator[grpc.Channel]:
    told = server.address()["doors"]
    assert isinstance(told, dict)
    with grpc.insecure_channel(told["fluster-grpc"]) as channel:
        yield channel
