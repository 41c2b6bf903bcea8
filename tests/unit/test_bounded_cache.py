"""Answers are remembered, boundedly."""

from __future__ import annotations

from holdfast.controller.policy_catalog import BoundedCache


def test_an_answer_is_worked_out_once_while_it_is_remembered() -> None:
    answers: BoundedCache[str] = BoundedCache(2)
    assert answers.answer("a", lambda: "first") == "first"
    assert answers.answer("b", lambda: "other") == "other"
    assert answers.answer("a", lambda: "second") == "first"


def test_no_more_than_the_most_are_ever_kept() -> None:
    answers: BoundedCache[str] = BoundedCache(3)
    sizes = []
    for question in range(10):
        answers.answer(question, lambda: "answer")
        sizes.append(len(answers))
    assert sizes == [1, 2, 3, 1, 2, 3, 1, 2, 3, 1]


def test_what_may_have_changed_is_worked_out_anew() -> None:
    answers: BoundedCache[str] = BoundedCache(3)
    answers.answer("ruleset", lambda: "old")
    answers.forget()
    assert answers.answer("ruleset", lambda: "new") == "new"
