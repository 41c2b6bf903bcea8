"""Of jobs of a bulk that are written alike one is read, and everything else as if it stood alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.service.manifests.reading import bulk_items, documents_of
from holdfast.service.manifests.text import Format, Text
from holdfast.service.submit import WrittenJob

PLAIN: dict[str, Any] = {"name": "plain", "command": ["true"]}


def read(*items: object) -> list[Any]:
    found = bulk_items(documents_of(Text(json.dumps({"items": items}), Format.JSON)))
    assert found is not None
    return found


def test_jobs_that_are_written_alike_share_what_was_read() -> None:
    first, other, again = read(PLAIN, {**PLAIN, "name": "other"}, {**PLAIN})
    assert again.spec is first.spec
    assert [one.spec.name for one in (first, other)] == ["plain", "other"]


def test_jobs_of_one_name_share_what_was_read_whatever_comes_between_them() -> None:
    others = [{**PLAIN, "command": ["echo", str(number % 3)]} for number in range(6)]
    found = read(PLAIN, *others, {"command": ["true"]}, {"command": ["true"]}, PLAIN, {**PLAIN, "name": 5})
    assert [found.index(one) for one in found[:4]] == [0, 1, 2, 3]
    assert [one.spec is found[at + 1].spec for at, one in enumerate(found[4:7])] == [True] * 3
    assert found[8].spec is found[7].spec
    assert found[9].spec is found[0].spec
    assert found[10].error is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"priority": 1}, {"priority": True}),
        ({"env": {"A": "1"}}, {"env": {"A": 1}}),
        ({"env": {"A": "x"}}, {"env": {"A": "X"}}),
        ({"labels": {"a": "'b'"}}, {"labels": {"a": '"b"'}}),
        ({"resources": {"cpu": 1}}, {"resources": {"cpu": "1m"}}),
    ],
)
def test_jobs_that_are_nearly_alike_are_each_what_they_are(one: dict[str, Any], other: dict[str, Any]) -> None:
    alone = [read({**PLAIN, **fields})[0] for fields in (one, other)]
    for found, expected in zip(read({**PLAIN, **one}, {**PLAIN, **other}), alone, strict=True):
        assert isinstance(found, WrittenJob)
        assert (found.spec, str(found.error)) == (expected.spec, str(expected.error))


def test_of_items_that_are_wrong_alike_each_has_its_own_problem() -> None:
    first, second = read({"name": "no command"}, {"name": "no command"})
    assert first.error is not None
    assert second.error is not None
    assert first.error is not second.error
