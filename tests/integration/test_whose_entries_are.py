"""Over REST everything that operators write says who first did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.domain.terms.entries import CATEGORY, DOMAIN, ENTRIES, NOTIFIER, POLICY, QUEUE, EntryInfo
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
}
"""The spec of an entry of each kind, and what is changed in it."""


@pytest.mark.parametrize("info", ENTRIES.values(), ids=lambda info: info.noun)
def test_what_somebody_wrote_stays_theirs_when_another_changes_it(people: People, info: EntryInfo) -> None:
    spec, change = SPECS[info]
    ops, lab = people.ops.entries(info), people.lab_client.entries(info)
    manifest = {"apiVersion": "holdfast.dev/v1", "kind": info.manifest, "metadata": {"name": "one"}, "spec": spec}
    made = ops.create(manifest)
    changed = lab.put("one", {**manifest, "spec": {**spec, **change}})
    (listed,) = (view for view in lab.list() if view.name == "one")
    assert changed.spec == listed.spec == lab.get("one").spec == {**made.spec, **change}
    assert [view.submitted_by for view in (made, changed, lab.get("one"), listed)] == ["ops"] * 4


def test_what_exists_without_being_written_is_nobodys(people: People) -> None:
    assert people.lab_client.queues.get("default").submitted_by == ""
