"""The work queue: everything once, urgent ones first, then the oldest; and the time that was asked for last counts."""

from __future__ import annotations

from holdfast.controller.work_queue import BURST_SHARE, WorkQueue

ALL = 1 << 30


def filled(*keys: str) -> WorkQueue:
    queue = WorkQueue()
    for key in keys:
        queue.add("job", key)
    return queue


def test_what_happens_twice_is_reconciled_once() -> None:
    queue = filled("a", "b", "a")
    assert queue.take("job", least=ALL, most=ALL) == ["a", "b"]
    assert queue.take("job", least=ALL, most=ALL) == []
    assert not queue.has_more()


def test_of_a_burst_a_part_is_taken_and_never_less_than_the_least_nor_more_than_the_most() -> None:
    keys = [f"{number:04}" for number in range(800)]
    assert filled(*keys).take("job", least=16, most=500) == keys[: 800 // BURST_SHARE]
    assert filled(*keys).take("job", least=16, most=50) == keys[:50]
    assert filled(*keys[:40]).take("job", least=16, most=50) == keys[:16]


def test_the_rest_of_a_burst_waits_in_order_and_urgent_ones_go_first() -> None:
    queue = filled(*"abcdef")
    assert queue.take("job", least=2, most=2) == ["a", "b"]
    queue.add("job", "x", urgent=True)
    queue.add("job", "e", urgent=True)
    assert queue.take("job", least=3, most=3) == ["x", "e", "c"]
    assert queue.take("job", least=9, most=9) == ["d", "f"]


def test_what_came_about_since_is_told_from_what_waits() -> None:
    queue = filled(*"abc")
    assert queue.take("job", least=1, most=1) == ["a"]
    queue.add("job", "d")
    queue.defer("job", "e")
    assert queue.take_new("job") == ["d"]
    assert queue.has_more()
    assert queue.take("job", least=ALL, most=ALL) == ["b", "c", "e"]


def test_a_kind_is_not_asked_for_what_is_another_kinds() -> None:
    queue = filled("a")
    queue.add("set", "s")
    assert queue.take("set", least=ALL, most=ALL) == ["s"]
    assert queue.take("job", least=ALL, most=ALL) == ["a"]


def test_what_was_just_reconciled_can_be_taken_out() -> None:
    queue = filled("a", "b")
    queue.add("job", "a", urgent=True)
    queue.discard("job", "a")
    assert queue.take("job", least=ALL, most=ALL) == ["b"]


def test_the_time_asked_for_last_is_the_one_that_counts() -> None:
    queue = WorkQueue()
    for when in (5.0, 9.0, 3.0, 7.0):
        queue.wake_at("job", "a", when)
    queue.wake_at("job", "b", 8.0)
    queue.wake_at("job", "c", 1.0)
    queue.wake_at("job", "c", None)
    assert queue.next_due() == 7.0
    queue.wake_due(7.0)
    assert queue.take("job", least=ALL, most=ALL) == ["a"]
    assert queue.next_due() == 8.0
    queue.forget("b")
    assert queue.next_due() is None
    queue.wake_due(100.0)
    assert not queue.has_more()


def test_what_only_looks_different_waits_a_second_unless_it_is_due_before() -> None:
    queue = WorkQueue()
    queue.wake_due(100.0)
    queue.wake_at("job", "b", 100.5)
    for key in ("a", "b"):
        queue.linger("job", key)
    assert not queue.has_more()
    assert queue.next_due() == 100.5
    queue.wake_due(100.5)
    assert queue.take("job", least=ALL, most=ALL) == ["b"]
    assert queue.next_due() == 101.0
    queue.wake_due(101.0)
    assert queue.take("job", least=ALL, most=ALL) == ["a"]
