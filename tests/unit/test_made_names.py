"""Names that are made up for new Kubernetes objects which ask for one."""

from __future__ import annotations

import re
from typing import Any

import pytest

from holdfast.app.time import SortableIds
from holdfast.dialects.documents import Document
from holdfast.service.manifests.made_names import with_names


def kube_job(**metadata: object) -> dict[str, Any]:
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {}}


def names(*values: dict[str, Any], key: str | None = None) -> list[str]:
    found = with_names([Document(value) for value in values], SortableIds(), key)
    return [one.value["metadata"]["name"] for one in found]


def test_each_gets_a_name_of_its_own_that_begins_as_asked_and_is_no_longer_than_a_name_may_be() -> None:
    made = names(*[kube_job(generateName="pi-")] * 100)
    assert len({*made}) == 100
    assert all(re.fullmatch(r"pi-[0-9a-z]{5}", name) for name in made)
    [long] = names(kube_job(generateName="x" * 100))
    assert re.fullmatch(r"x{58}[0-9a-z]{5}", long)


def test_what_is_sent_again_with_its_key_gets_the_names_it_had() -> None:
    sent = [kube_job(generateName="pi-")] * 2
    made = names(*sent, key="k")
    assert made == names(*sent, key="k")
    assert len({*made, *names(*sent, key="l")}) == 4
    [many] = with_names([Document({"items": sent})], SortableIds(), "k")
    [again] = with_names([Document({"items": sent})], SortableIds(), "k")
    assert many.value == again.value
    assert len({item["metadata"]["name"] for item in many.value["items"]}) == 2


@pytest.mark.parametrize(
    "value",
    [
        kube_job(generateName="pi-", name="mine"),
        kube_job(generateName=["pi-"]),
        kube_job(generateName=""),
        kube_job(),
        {**kube_job(generateName="pi-"), "kind": ["Job"]},
        {**kube_job(generateName="pi-"), "apiVersion": "holdfast.dev/v1"},
        {**kube_job(), "metadata": "pi-"},
        {"items": [kube_job(name="mine"), "pi-"]},
    ],
)
def test_what_has_a_name_or_cannot_have_one_made_up_stays_as_it_is(value: dict[str, Any]) -> None:
    assert with_names([Document(value)], SortableIds()) == [Document(value)]
