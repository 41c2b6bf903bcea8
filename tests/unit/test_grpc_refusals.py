"""What a refusal by gRPC says where headers have room for so much and no more."""

from __future__ import annotations

import pytest

from holdfast.api.connect._generated import error_details, status
from holdfast.api.connect.refusals import Code, Rejected
from holdfast.api.connect.trailers import DETAILS, cut, trailers
from holdfast.errors import Problem

ROOM = 8_192
"""Bytes of headers that clients take."""


def sent(rejected: Rejected) -> tuple[str, list[tuple[str, str]], int]:
    """Return the sentence, the violations, and how much all of it takes in headers."""
    [(name, details)] = trailers(rejected)
    assert name == DETAILS
    whole, request = status.Status.FromString(details), error_details.BadRequest()
    for part in whole.details:
        part.Unpack(request)
    sentence = cut(rejected.message)
    size = sum(1 if 32 <= one <= 126 and one != 37 else 3 for one in sentence.encode())
    violations = [(one.field, one.description) for one in request.field_violations]
    return sentence, violations, size + len(details) * 4 // 3


def test_a_refusal_that_has_room_is_sent_whole() -> None:
    problems = [Problem(f"items[{n}].x", "is wrong", hint="say y") for n in range(10)]
    told, violations, size = sent(Rejected(Code.INVALID_ARGUMENT, "no", problems))
    assert told == "no"
    assert violations == [(f"items[{n}].x", "is wrong; say y") for n in range(10)]
    assert size < ROOM


@pytest.mark.parametrize("message", ["x" * 1_000_000, "\u65e5" * 9_000, "%" * 9_000, "\U0001f642" * 3_000, "no"])
@pytest.mark.parametrize("problem", ["wrong", "w" * 100_000, "\u65e5" * 9_000])
def test_what_is_too_long_for_headers_is_cut_and_counted(message: str, problem: str) -> None:
    problems = [Problem(f"items[{n}].{problem}", problem, hint="h" * 100) for n in range(3_000)]
    told, violations, size = sent(Rejected(Code.INVALID_ARGUMENT, message, problems))
    assert size < ROOM - 500, "there are other headers"
    assert message.startswith(told.removesuffix("..."))
    assert len(violations) > 1
    assert violations[-1] == ("", f"and {3_001 - len(violations)} more")


def test_a_few_long_messages_are_too_long_for_headers_as_many_long_paths_are() -> None:
    problems = [Problem(f"items[{n}].x", "w" * 1_000) for n in range(9)]
    _, violations, size = sent(Rejected(Code.INVALID_ARGUMENT, "no", problems))
    assert size < ROOM - 500
    assert violations[0] == ("items[0].x", "w" * 200)
    assert len(violations) == 9
