"""What a client sends is JSON, or refused before it is sent."""

from __future__ import annotations

import json

import pytest

from holdfast.client.connection import written
from holdfast.errors import InvalidRequest


@pytest.mark.parametrize("text", ["", "é ☃ 🦊", "\x00\x1b\u202e", '"\\'])
def test_any_text_is_sent_as_it_is(text: str) -> None:
    assert json.loads(written({"reason": text})) == {"reason": text}


def test_what_is_no_text_is_refused_with_what_stands_before_it() -> None:
    with pytest.raises(InvalidRequest) as raised:
        written({"reason": "bad \udc9b"})
    [problem] = raised.value.problems
    assert "bad " in problem.message
    assert problem.hint == "write it as UTF-8"
