"""What a client sends is JSON, or refused before it is sent."""

from __future__ import annotations

import json

import pytest

from holdfast.client.connection import written
from holdfast.errors import InvalidRequest


@pytest.mark.parametrize("text", ["", "é ☃ 🦊", "\x00\x1b\u202e", '"\\'])
def test_any_text_is_sent_as_it_is(text: str) -> None:
    assert json.loads(written({"reason": text})) == {"reason": text}


def test_what_is_not_utf_8_is_refused_with_its_place_and_without_its_value() -> None:
    env = {"TOKEN": "private\udcff", "\udcfe": "x", "GOOD": "é"}
    with pytest.raises(InvalidRequest) as raised:
        written({"items": [{"command": ["echo", "bad \udc9b"]}, {"spec": {"workingDir": "/\udcff", "env": env}}]})
    assert [(problem.path, problem.message) for problem in raised.value.problems] == [
        ("items[0].command[1]", "is not UTF-8 text"),
        ("items[1].spec.workingDir", "is not UTF-8 text"),
        ("items[1].spec.env.TOKEN", "is not UTF-8 text"),
        ("items[1].spec.env.\udcfe", "is not UTF-8 text"),
    ]
    assert "private" not in str(raised.value)
