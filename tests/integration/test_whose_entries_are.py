"""Over REST everything that operators write says who first did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.integration.test_rights_of_people import people

if TYPE_CHECKING:
    from tests.integration.test_rights_of_people import People

__all__ = ["people"]
SPECS: dict[str, dict[str, Any]] = {
    "RetryPolicy": {"retryLimit": 1, "rules": []},
    "Queue": {"weight": 2},
    "FailureCategory": {"rules": [{"onLog": {"pattern": "x"}}]},
    "Notifier": {"type": "webhook", "url": "https://example.org"},
}


def _manifest(kind: str) -> dict[str, Any]:
    return {"apiVersion": "holdfast.dev/v1", "kind": kind, "metadata": {"name": "one"}, "spec": SPECS[kind]}


def test_what_somebody_wrote_stays_theirs_when_another_changes_it(people: People) -> None:
    ops, lab = people.ops, people.lab_client
    made = [
        ops.policies.create(_manifest("RetryPolicy")),
        ops.queues.create(_manifest("Queue")),
        ops.categories.create(_manifest("FailureCategory")),
        ops.notifiers.create(_manifest("Notifier")),
    ]
    changed = [
        lab.policies.put("one", {**_manifest("RetryPolicy"), "spec": {"retryLimit": 2, "rules": []}}),
        lab.queues.put("one", {**_manifest("Queue"), "spec": {"weight": 3}}),
        lab.categories.put(
            "one", {**_manifest("FailureCategory"), "spec": {**SPECS["FailureCategory"], "precedence": 2}}
        ),
        lab.notifiers.put("one", {**_manifest("Notifier"), "spec": {**SPECS["Notifier"], "timeout": "3s"}}),
    ]
    read = [lab.policies.get("one"), lab.queues.get("one"), lab.categories.get("one"), lab.notifiers.get("one")]
    listed = [
        *(one for one in lab.policies.list() if one.name == "one"),
        *(one for one in lab.queues.list() if one.name == "one"),
        *(one for one in lab.categories.list() if one.name == "one"),
        *(one for one in lab.notifiers.list() if one.name == "one"),
    ]
    assert len(listed) == len(SPECS)
    shown = [one.model_dump(by_alias=True)["submitted_by"] for one in (*made, *changed, *read, *listed)]
    assert shown == ["ops"] * 4 * len(SPECS)
    assert lab.queues.get("default").submitted_by == ""
