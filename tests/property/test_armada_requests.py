"""Whatever is sent to Armada's door is answered or refused as something wrong with it, never as a fault of ours."""

from __future__ import annotations

import random
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.api.armada import jobs, nodes, policies, queues, submissions
from holdfast.api.armada._generated.pool import PROTOCOL
from holdfast.api.armada.calls import CALLS
from holdfast.api.connect.calls import Rpc
from holdfast.api.connect.refusals import Code, Rejected
from holdfast.api.connect.trailers import trailers
from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Caller
from holdfast.errors import HoldfastError
from holdfast.service.operations.backend import Backend
from tests.integration.conftest import Counting, NoLogs
from tests.unit.conftest import Lab

ANSWERING = (jobs, nodes, policies, queues, submissions)
"""Modules that register calls."""
WHO = Principal("lab", roles=(Role.ADMIN,))
TEXTS: tuple[str, ...] = (
    *("", "a", "ml", "s", "default", "q" * 1100, "\x00", "é☃", "1Gi", "-1", "1e400", "100m", "nan", "0", "2", "a/b"),
    *("armada-default", "../x", "{JobId}", "$(X)", "Retry", "[", "true"),
)
KEYS = ("x", "", *(f"armadaproject.io/{name}" for name in ("retry-policy", "gangId", "gangCardinality", "failFast")))
RESOURCES = ("cpu", "memory", "gpu", "")
NUMBERS = {
    FieldDescriptor.CPPTYPE_INT32: (0, 1, -1, 2**31 - 1, -(2**31)),
    FieldDescriptor.CPPTYPE_INT64: (0, 1, -1, 2**63 - 1, -(2**63)),
    FieldDescriptor.CPPTYPE_UINT32: (0, 1, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 1, 2**64 - 1),
    FieldDescriptor.CPPTYPE_DOUBLE: (0.0, 1.0, -1.0, 0.5, 1e308, float("nan"), float("inf"), float("-inf")),
    FieldDescriptor.CPPTYPE_BOOL: (False, True),
}
OF_PODS = {"containers", "resources", "requests", "limits", "name", "args", "command", "string"}
"""Fields of Kubernetes that are mostly there; it has hundreds."""
DEEPEST = 8
FAULTS = {Code.INTERNAL, Code.UNKNOWN}


class Sender:
    """Makes up messages."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)  # noqa: S311 - made up by a seed

    def made_up(self, kind: str) -> Message:
        message: Message = PROTOCOL.message(kind)()
        self._fill(message, 0)
        return message

    def _value(self, field: FieldDescriptor) -> Any:  # noqa: ANN401 - of any field
        if field.type == FieldDescriptor.TYPE_BYTES:
            return self.dice.choice((b"", b"\xff\x00"))
        if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
            return self.dice.choice(TEXTS)
        if field.enum_type is not None:
            return self.dice.choice([*(one.number for one in field.enum_type.values), 77])
        return self.dice.choice(NUMBERS[field.cpp_type])

    def _fill(self, message: Any, depth: int) -> None:  # noqa: ANN401 - of any kind
        of_pods = message.DESCRIPTOR.full_name.startswith("k8s")
        for field in message.DESCRIPTOR.fields:
            often = (0.8 if field.name in OF_PODS else 0.15) if of_pods else (0.75, 0.75, 0.5, 0.5)[min(depth, 3)]
            if depth > DEEPEST or self.dice.random() > often:
                continue
            part, kind = getattr(message, field.name), field.message_type
            if kind is not None and kind.GetOptions().map_entry:
                self._fill_map(part, kind.fields[1], depth)
            elif kind is not None and field.is_repeated:
                for _ in range(self.dice.randint(0, 2)):
                    self._fill(part.add(), depth + 1)
            elif kind is not None:
                part.SetInParent()
                self._fill(part, depth + 1)
            elif field.is_repeated:
                part.extend(self._value(field) for _ in range(self.dice.randint(0, 3)))
            else:
                setattr(message, field.name, self._value(field))

    def _fill_map(self, part: Any, value: FieldDescriptor, depth: int) -> None:  # noqa: ANN401 - a map of anything
        for _ in range(self.dice.randint(0, 2)):
            if value.message_type is None:
                part[self.dice.choice(KEYS)] = self._value(value)
            else:
                self._fill(part[self.dice.choice(RESOURCES)], depth + 1)


@pytest.fixture(scope="module")
def backend() -> Backend:
    """One for all: what a message leaves behind must harm no later one."""
    lab = Lab()
    return Backend(lab.store, lab.clock, Counting(), NoLogs(), WHO)


@given(st.sampled_from(sorted(path for path, method in CALLS.methods.items() if method.call)), st.integers(0, 2**32))
@settings(max_examples=1500, deadline=None)
def test_no_message_is_answered_with_a_fault_of_ours(backend: Backend, path: str, seed: int) -> None:
    method = CALLS.methods[path]
    assert method.call is not None
    sent = Sender(seed).made_up(str(method.request.DESCRIPTOR.full_name))
    try:
        found: Any = method.call(Rpc(backend, Caller(WHO, 0.0)), sent)
        for one in (found,) if found is None or isinstance(found, Message) else found:
            assert one is None or one.SerializeToString() is not None
    except (Rejected, HoldfastError) as error:
        refused = error if isinstance(error, Rejected) else Rejected.of(error)
        assert refused.code not in FAULTS, refused.message
        assert bool(trailers(refused)) is bool(refused.problems)
