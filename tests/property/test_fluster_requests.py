"""Whatever is sent to Fluster's door is answered, or refused as wrong, and never so that it is sent again."""

from __future__ import annotations

import random
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.api.budget import MemoryBudget
from holdfast.api.connect.calls import Rpc
from holdfast.api.connect.refusals import Code, Rejected
from holdfast.api.connect.serving import JSON, LARGEST_MESSAGE, PROTO, Setup, decode, encode
from holdfast.api.fluster.calls import CALLS
from holdfast.api.fluster.serving import FlusterDoor, FlusterSettings
from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Caller
from holdfast.errors import HoldfastError
from holdfast.service.operations.backend import Backend
from tests.integration.conftest import Counting, NoLogs
from tests.unit.conftest import Lab

if TYPE_CHECKING:
    from collections.abc import Iterator

WHO = Principal("lab", roles=(Role.ADMIN,))
TEXTS: tuple[str, ...] = (
    *("", "a", "a/b", "a/b/c", "/", "//", "../x", "a" * 1024, "\x00", "é☃", "\U0001f642", " ", "%00", "fluster/a"),
    *("512m", "8g", "-1", "1e400", "nan", "9" * 40, "auto", "H100", "http", "(", "(a+)+$", "file:///x", "gs://b/c"),
)
BYTES = (b"", b"\xff\x00", b"#!/bin/sh\ntrue\n", b"#!\xff", b"\x80\x04.", b"PK\x03\x04")
NUMBERS = {
    FieldDescriptor.CPPTYPE_INT32: (0, 1, 2, -1, 300, 2**31 - 1, -(2**31)),
    FieldDescriptor.CPPTYPE_INT64: (0, 1, 1000, -1, 2**63 - 1, -(2**63)),
    FieldDescriptor.CPPTYPE_DOUBLE: (0.0, 1.0, 2.0, -1.0, 0.5, 1e308, float("nan"), float("inf"), float("-inf")),
    FieldDescriptor.CPPTYPE_BOOL: (False, True),
}
SENT_AGAIN = {Code.INTERNAL, Code.UNKNOWN, Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.RESOURCE_EXHAUSTED}
"""What makes clients send a call again."""


class Sender:
    """Makes up messages."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)  # noqa: S311 - made up by a seed
        self.often = self.dice.choice((0.2, 0.5, 0.9))

    def _value(self, field: FieldDescriptor) -> Any:  # noqa: ANN401 - of any field
        if field.type == FieldDescriptor.TYPE_BYTES:
            return self.dice.choice(BYTES)
        if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
            return self.dice.choice(TEXTS)
        if field.enum_type is not None:
            return self.dice.choice([*(one.number for one in field.enum_type.values)])
        return self.dice.choice(NUMBERS[field.cpp_type])

    def fill(self, message: Any) -> Any:  # noqa: ANN401 - of any kind
        """Fill a message with anything."""
        for field in message.DESCRIPTOR.fields:
            if self.dice.random() > self.often:
                continue
            part, kind = getattr(message, field.name), field.message_type
            if kind is not None and kind.GetOptions().map_entry:
                part.update({self.dice.choice(TEXTS): self.dice.choice(TEXTS) for _ in range(2)})
            elif kind is not None:
                part.SetInParent()
                self.fill(part)
            elif field.is_repeated:
                part.extend(self._value(field) for _ in range(self.dice.randint(0, 3)))
            else:
                setattr(message, field.name, self._value(field))
        return message


@pytest.fixture(scope="module")
def door() -> Iterator[FlusterDoor]:
    """One for all: what a message leaves behind must harm no later one."""
    lab = Lab()
    backend = Backend(lab.store, lab.clock, Counting(), NoLogs(), WHO)
    door = opened(backend)
    yield door
    door.close()


def opened(backend: Backend) -> FlusterDoor:
    async def caller(_: object) -> Caller:
        raise AssertionError

    return FlusterDoor(Setup(backend, caller, ThreadPoolExecutor(8), MemoryBudget()), FlusterSettings("here:1", 60.0))


@given(st.sampled_from(sorted(CALLS.methods)), st.integers(0, 2**32), st.sampled_from([PROTO, JSON]))
@settings(max_examples=800, deadline=None)
def test_no_message_is_answered_so_that_it_is_sent_again(door: FlusterDoor, path: str, seed: int, kind: str) -> None:
    method = CALLS.methods[path]
    if method.call is None:
        return
    share = MemoryBudget().share()
    share.body = encode(Sender(seed).fill(method.request()), kind)
    sent = decode(method.request, share, LARGEST_MESSAGE, kind=kind)
    refused = None
    try:
        found = method.call(Rpc(door.setup.backend, Caller(WHO, 0.0), door), sent)
        found = found.result(timeout=60) if isinstance(found, Future) else found
        assert found is None or (isinstance(found, Message) and encode(found, kind) is not None)
    except (Rejected, HoldfastError) as error:
        refused = error if isinstance(error, Rejected) else Rejected.of(error)
    assert refused is None or (refused.code not in SENT_AGAIN and refused.as_json()["message"]), refused


@given(st.binary(max_size=200), st.sampled_from(sorted(CALLS.methods)), st.sampled_from([PROTO, JSON]))
@settings(max_examples=300, deadline=None)
def test_bytes_that_are_no_message_are_refused_as_what_they_are(body: bytes, path: str, kind: str) -> None:
    refused, share = None, MemoryBudget().share()
    share.body = body
    try:
        decode(CALLS.methods[path].request, share, LARGEST_MESSAGE, kind=kind)
    except Rejected as error:
        refused = error
    assert refused is None or (refused.code is Code.INVALID_ARGUMENT and refused.message.encode())
