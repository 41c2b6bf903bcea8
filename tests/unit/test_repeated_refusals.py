"""A client that asks again and again for what it may not see does not fill the audit log."""

from __future__ import annotations

from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Act, Caller, Subject
from holdfast.domain.rights import Refusal
from holdfast.service.access.asking import forbidden
from holdfast.service.refusals import MOST_NAMES, TOLD_EVERY_S
from tools.memory_store import MemoryStore

REFUSED = Refusal("ben may not logs this: it belongs to somebody else", "an admin can grant it")


def poll(store: MemoryStore, at: float, name: str = "j1", who: str = "ben") -> None:
    caller = Caller(Principal(who, roles=(Role.USER,)), at)
    error = forbidden(store, caller, Act.READ, Subject.JOB, name, REFUSED)
    assert error.message == REFUSED.message


def written(store: MemoryStore) -> list[tuple[str, str, float]]:
    return [(one.entry.caller.actor, one.entry.name, one.entry.caller.at) for one in store.audit(limit=10_000)]


def test_the_same_refusal_is_one_entry_a_minute_with_its_count_and_the_last_time() -> None:
    store = MemoryStore()
    for tick in range(1200):
        poll(store, tick / 10)
    assert written(store) == [("ben", "j1", 0.0), ("ben", "j1", 59.9), ("ben", "j1", 60.0)]
    second = store.audit(limit=9)[1].entry
    assert second.detail == f"{REFUSED.message} (599 more within a minute, this is the last)"
    assert second.outcome == "forbidden"
    poll(store, 1000.0, who="ann")
    told = written(store)
    assert told[3:] == [("ben", "j1", 119.9), ("ann", "j1", 1000.0)], "what was counted is told when anybody is refused"


def test_each_caller_and_each_name_has_entries_of_its_own_up_to_a_number() -> None:
    store = MemoryStore()
    for number in range(10 * MOST_NAMES):
        poll(store, 1.0, f"j{number}")
    poll(store, 1.0, "j0", "ann")
    names = [name for who, name, _ in written(store) if who == "ben"]
    assert names == [f"j{number}" for number in range(MOST_NAMES + 1)]
    assert ("ann", "j0", 1.0) in written(store)
    poll(store, 1.0 + TOLD_EVERY_S, "j0")
    details = [one.entry.detail for one in store.audit(limit=10_000)]
    assert f"{REFUSED.message} ({9 * MOST_NAMES - 1} more within a minute, this is the last)" in details


def test_a_clock_that_is_set_back_keeps_no_refusal_from_being_told() -> None:
    store = MemoryStore()
    poll(store, 1000.0)
    poll(store, 10.0)
    assert written(store) == [("ben", "j1", 1000.0), ("ben", "j1", 10.0)]
