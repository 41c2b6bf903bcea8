"""What doors have accepted takes no more memory than there is for all of them, whatever it becomes when it is read."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
import zstandard
from fastapi import FastAPI, Request

from holdfast.api.budget import AbandonedError, MemoryBudget, TooLargeError, read_body
from holdfast.api.connect.arrivals import Arrivals
from holdfast.api.connect.compression import GZIP, ZSTD, decompress
from holdfast.api.connect.refusals import Code, Rejected
from holdfast.api.entries import FIELD, NODE, VALUE, read_message, weight_of_json, weight_of_message, weight_of_yaml
from holdfast.api.http.serving.errors import install
from holdfast.api.http.serving.gates import SizeGate
from holdfast.api.iris._generated import controller
from holdfast.errors import InvalidRequest, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.api.budget import MemoryShare

LAUNCH: Any = controller.Controller.LaunchJobRequest
LARGE = 1_000_000
PACKERS: dict[str, Callable[[bytes], bytes]] = {GZIP: gzip.compress, ZSTD: zstandard.ZstdCompressor().compress}


def sent(budget: MemoryBudget, body: bytes) -> MemoryShare:
    share = budget.share()
    share.take(len(body))
    share.body = bytearray(body)
    return share


def test_a_share_is_given_back_when_the_last_who_works_with_it_is_through() -> None:
    budget, body = MemoryBudget(100), bytearray(b"sent")
    with budget.share() as share:
        share.take(40)
        share.body = body
        with share:
            pass
        assert (budget.used, bytes(share.body)) == (40, b"sent")
    assert (budget.used, bytes(share.body), bytes(body)) == (0, b"", b"")
    with pytest.raises(AbandonedError), share:
        pass


def test_what_does_not_fit_beside_others_is_refused_for_now_and_what_never_does_for_good() -> None:
    budget = MemoryBudget(100)
    with budget.share() as one, budget.share() as other:
        for _ in range(2):
            one.take(40)
        with pytest.raises(Unavailable):
            other.take(21)
        other.take(20)
        with pytest.raises(InvalidRequest):
            one.take(21)
        with pytest.raises(InvalidRequest):
            other.take(51)
        assert (budget.used, budget.refused) == (100, 1)
    assert budget.used == 0


def test_threads_lose_no_byte_of_the_count() -> None:
    budget = MemoryBudget(1_000)

    def work() -> None:
        for _ in range(2_000):
            with budget.share() as share:
                share.take(7)
                share.give_back(3)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert budget.used == 0


@pytest.mark.parametrize(
    ("size", "largest", "announced", "error"),
    [(30, 20, "", TooLargeError), (1, 20, "21", TooLargeError), (60, 90, "", Unavailable), (30, 90, "", None)],
)
def test_a_body_is_read_as_far_as_it_may_go(
    size: int, largest: int, announced: str, error: type[Exception] | None
) -> None:
    budget, pieces = MemoryBudget(100), [b"x"] * size

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": pieces.pop(), "more_body": bool(pieces)}

    with budget.share() as other, budget.share() as share:
        other.take(50)
        if error is None:
            asyncio.run(read_body(receive, share, largest, announced))
            assert (share.body, budget.used) == (b"x" * size, 50 + size)
        else:
            with pytest.raises(error):
                asyncio.run(read_body(receive, share, largest, announced))
            assert not announced or len(pieces) == size, "nothing is read of what says that it is too large"


@pytest.mark.parametrize("name", PACKERS)
def test_what_a_body_becomes_counts_while_it_is_decompressed(name: str) -> None:
    budget, packed = MemoryBudget(8 * LARGE), PACKERS[name](bytes(LARGE))
    with sent(budget, packed) as share:
        decompress(name, share, LARGE)
        assert (share.body, budget.used) == (bytes(LARGE), LARGE)
    with sent(budget, packed) as share, pytest.raises(Rejected) as raised:
        decompress(name, share, LARGE - 1)
    assert raised.value.code is Code.INVALID_ARGUMENT
    with budget.share() as other, sent(budget, packed) as share:
        for _ in range(2):
            other.take(4 * LARGE - LARGE // 4)
        with pytest.raises(Unavailable):
            decompress(name, share, LARGE)
    assert budget.used == 0


@pytest.mark.parametrize("name", PACKERS)
def test_a_body_of_many_parts_that_hold_nothing_is_refused_before_all_are_opened(name: str) -> None:
    pack = PACKERS[name]
    with sent(MemoryBudget(), pack(b"some") * 1_000) as share:
        decompress(name, share, LARGE)
        assert share.body == b"some" * 1_000
    with sent(MemoryBudget(), pack(b"") * 1_001) as share, pytest.raises(Rejected, match="more parts"):
        decompress(name, share, LARGE)
    for broken in (pack(b"some")[:-1], pack(b"some") + b"x"):
        with sent(MemoryBudget(), broken) as share, pytest.raises(Rejected) as raised:
            decompress(name, share, LARGE)
        assert raised.value.code is Code.INVALID_ARGUMENT


def test_fields_are_counted_before_they_become_objects() -> None:
    tag = bytes([LAUNCH.DESCRIPTOR.fields_by_name["constraints"].number << 3 | 2])
    empty, budget = tag + b"\x00", MemoryBudget()
    with sent(budget, empty * LARGE) as share, pytest.raises(InvalidRequest, match="too large"):
        read_message(LAUNCH, share)
    with sent(budget, empty * 10_000) as share:
        assert len(read_message(LAUNCH, share).constraints) == 10_000  # type: ignore[attr-defined]
        assert budget.used == 20_000 + 10_000 * FIELD, "in place of the body"
    assert budget.used == 0


def test_fields_are_counted_wherever_they_are_and_bytes_are_not_taken_for_fields() -> None:
    inside = LAUNCH(name="x" * 300, bundle_blob=bytes(50_000))
    inside.entrypoint.run_command.argv.extend(["a", "b", "c"])
    inside.constraints.add(key="k").value.string_value = "v"
    body = inside.SerializeToString()
    fields = 2 + 1 + 1 + 3 + 1 + 1 + 1 + 1
    assert weight_of_message(LAUNCH.DESCRIPTOR, body, LARGE * FIELD) == len(body) + fields * FIELD
    assert weight_of_message(LAUNCH.DESCRIPTOR, b"\n\x01x", LARGE) >= FIELD, "a small one counts without a look"


@pytest.mark.parametrize(
    "body", [b"\xff" * LARGE, b"\x08" + b"\xff" * LARGE, b"\n" + b"\xff" * 9 + b"\x01", b"\x0b" * 5_000, bytes(5_000)]
)
def test_what_is_no_message_is_counted_to_its_end_and_left_to_the_decoder(body: bytes) -> None:
    assert weight_of_message(LAUNCH.DESCRIPTOR, body, LARGE * FIELD) <= len(body) * (FIELD + 1)


def test_text_counts_by_its_values() -> None:
    assert weight_of_json(json.dumps([[], {}, 1]).encode()) == 5 * VALUE
    assert weight_of_yaml(b"a: 1\nb: [1, 2]\nc:\n- - x\n") == 8 * NODE


def posted(app: SizeGate, body: bytes, kind: str) -> int:
    messages = [{"type": "http.request", "body": body}]
    answers: list[Any] = []

    async def receive() -> Any:  # noqa: ANN401 - as ASGI has it
        return messages.pop()

    async def send(message: Any) -> None:  # noqa: ANN401
        answers.append(message)

    headers = [(b"content-type", kind.encode())]
    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": headers}
    asyncio.run(app(scope, receive, send))
    status: int = answers[0]["status"]
    return status


def test_rest_refuses_what_does_not_fit_and_what_has_more_values_than_ever_do() -> None:
    budget, inner = MemoryBudget(1_000 * VALUE), FastAPI()
    install(inner)

    @inner.post("/")
    async def take(request: Request) -> str:
        return (await request.body()).decode()

    app = SizeGate(inner, budget=budget, largest=LARGE)
    assert posted(app, b"[" + b"1," * 400 + b"1]", "application/json") == 200
    assert posted(app, b"[" + b"1," * 600 + b"1]", "application/json") == 413
    assert posted(app, b"- 1\n" * 300, "application/yaml") == 413
    assert posted(app, b"x" * (LARGE + 1), "application/json") == 413
    with budget.share() as other:
        other.take(500 * VALUE)
        other.take(400 * VALUE)
        assert posted(app, b"[" + b"1," * 400 + b"1]", "application/json") == 503
    assert budget.used == 0


def test_room_is_kept_for_a_message_that_is_on_its_way_and_who_sends_none_gives_way() -> None:
    budget, came = MemoryBudget(100), list[str]()
    arrivals = Arrivals(largest=50, request_s=60.0)

    async def call(name: str, body: asyncio.Future[bytes | None]) -> None:
        with budget.share() as share:
            try:
                await arrivals.message(share, lambda: asyncio.wait_for(body, None))
            except TimeoutError:
                came.append(f"{name} gave way")
            else:
                came.append(f"{name} {len(share.body)} of {budget.used}")

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        idle = [asyncio.create_task(call(name, loop.create_future())) for name in ("first", "second")]
        await asyncio.sleep(0)  # both begin, and wait for their messages
        assert budget.used == 100
        ready = loop.create_future()
        ready.set_result(b"x" * 10)
        await call("third", ready)
        assert idle[0].done()
        idle[1].cancel()
        await asyncio.gather(*idle, return_exceptions=True)

    asyncio.run(scene())
    assert (came, budget.used) == (["first gave way", "third 10 of 60"], 0)
