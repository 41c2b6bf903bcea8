"""Over REST everything that operators write says who first did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.domain.terms.entries import (
    CATEGORY,
    DOMAIN,
    ENTRIES,
    IMAGE,
    KEYPAIR,
    NOTIFIER,
    POLICY,
    QUEUE,
    RESOURCE_GROUP,
    EntryInfo,
)
from holdfast.errors import Forbidden
from tests.integration.test_rights_of_people import people

if TYPE_CHECKING:
    from tests.integration.test_rights_of_people import People

__all__ = ["people"]
SPECS: dict[EntryInfo, tuple[dict[str, Any], dict[str, Any]]] = {
    POLICY: ({"retryLimit": 1, "rules": []}, {"retryLimit": 2}),
    QUEUE: ({"weight": 2}, {"weight": 3}),
    CATEGORY: ({"rules": [{"onLog": {"pattern": "x"}}]}, {"precedence": 2}),
    NOTIFIER: ({"type": "webhook", "url": "https://example.org"}, {"timeout": 3.0}),
    DOMAIN: ({"description": "a"}, {"description": "b"}),
    RESOURCE_GROUP: ({"nodeSelector": {"gpu": "a100"}}, {"active": False}),
    IMAGE: ({"reference": "python:3.11"}, {"env": {"A": "b"}}),
}
"""The spec of an entry of each kind that operators write, and what is changed in it."""


def _manifest(info: EntryInfo, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "holdfast.dev/v1", "kind": info.manifest, "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize("info", [info for info in ENTRIES.values() if not info.guarded], ids=lambda info: info.noun)
def test_what_somebody_wrote_stays_theirs_when_another_changes_it(people: People, info: EntryInfo) -> None:
    spec, change = SPECS[info]
    ops, lab = people.ops.entries(info), people.lab_client.entries(info)
    manifest = _manifest(info, "one", spec)
    made = ops.create(manifest)
    changed = lab.put("one", {**manifest, "spec": {**spec, **change}})
    (listed,) = (view for view in lab.list() if view.name == "one")
    assert changed.spec == listed.spec == lab.get("one").spec == {**made.spec, **change}
    assert [view.submitted_by for view in (made, changed, lab.get("one"), listed)] == ["ops"] * 4


def test_what_exists_without_being_written_is_nobodys(people: People) -> None:
    assert people.lab_client.queues.get("default").submitted_by == ""


def test_keypairs_are_written_by_admins_seen_by_operators_and_say_when_they_were_created(people: People) -> None:
    lab, name = people.lab_client.entries(KEYPAIR), "AKIAIOSFODNN7EXAMPLE"
    manifest = _manifest(KEYPAIR, name, {"owner": "ann"})
    with pytest.raises(Forbidden, match="role admin"):
        people.ops.entries(KEYPAIR).create(manifest)
    created = lab.create(manifest).model_dump()
    assert created["spec"] == {"owner": "ann", "admin": False, "active": True}
    people.lab.pass_s(60)
    changed = lab.put(name, _manifest(KEYPAIR, name, {"owner": "ann", "active": False})).model_dump()
    assert created["created_at"] == changed["created_at"] is not None
    assert people.ops.entries(KEYPAIR).get(name).spec["active"] is False
    with pytest.raises(Forbidden, match="role admin"):
        people.ops.entries(KEYPAIR).delete(name)
    with pytest.raises(Forbidden, match="role operator"):
        people.ann.entries(KEYPAIR).list()
