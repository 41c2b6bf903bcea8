"""The failure catalogue: each entry against lines that really were printed, and beside an operator's own categories."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Caller
from holdfast.domain.category import CategoryRule, FailureCategory
from holdfast.domain.classify import CompiledCategories, classify
from holdfast.domain.evidence import LogPatterns, log_patterns_of, with_evidence
from holdfast.domain.failure import ContainerResult, EndedBy, RunOutcome
from holdfast.domain.failure_catalogue import BUILT_IN, LAST, builtin_beside
from holdfast.domain.job import JobState
from holdfast.domain.policy.explain import failure_lines
from holdfast.domain.policy.model import Action, RetryPolicy, Rule
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.errors import AlreadyExists, Conflict, NotFound
from holdfast.service.operations.catalogue import Categories
from tests.unit.conftest import Lab, job_named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.failure import Failure

BY = Caller(Principal("me", roles=(Role.ADMIN,)), 0.0)

LINES = json.loads((Path(__file__).parent.parent / "data" / "failure_lines.json").read_text())
ENTRIES = {f"{category.name}/{rule.subcategory}" for category in BUILT_IN for rule in category.rules}
BY_CONDITION = {"memory/limit", "stall/no-output", "stall/no-progress", "stall/idle-device"}
PATTERNS = LogPatterns(log_patterns_of((), BUILT_IN))
EARLIER = "Retrying: ConnectionResetError: [Errno 104] Connection reset by peer\nepoch 3\n"
"""What was overcome."""


def judged(text: str, *own: FailureCategory, **facts: object) -> Failure:
    outcome = RunOutcome((ContainerResult(1, reason="Error"),), log=text, **facts)  # type: ignore[arg-type]
    built_in = builtin_beside(own)
    patterns = LogPatterns(log_patterns_of((), [*own, *built_in]))
    return classify(with_evidence(outcome, patterns), categories=CompiledCategories.compile(own, built_in=built_in))


def kind(failure: Failure) -> str:
    return f"{failure.category}/{failure.subcategory}"


@pytest.mark.parametrize("known", LINES, ids=lambda known: f"{known['failure']}: {known['line'][:40]}")
def test_a_line_that_really_was_printed_is_told(known: dict[str, str]) -> None:
    assert kind(judged(f"{EARLIER}{known['line']}\n")) == known["failure"]


def test_every_entry_has_a_real_line_with_its_source_a_hint_and_a_suggestion() -> None:
    assert {known["failure"] for known in LINES} == ENTRIES - BY_CONDITION
    assert [known for known in LINES if not known["source"]] == []
    rules = [rule for category in BUILT_IN for rule in category.rules]
    assert all(rule.hint and rule.suggests and len(rule.hint) <= 120 for rule in rules)


def test_the_line_that_says_what_went_wrong_counts_more_than_what_was_printed_before() -> None:
    assert kind(judged(f"NCCL WARN Call to recv failed\n{EARLIER}AssertionError: no such key\n")) == "program/assertion"
    assert kind(judged(f"{EARLIER}giving up\n")) == "network/reset"
    assert kind(judged("epoch 3\n")) == "/"


def test_a_condition_is_told_and_what_was_printed_on_a_place_that_failed_is_not() -> None:
    assert kind(judged("", conditions=frozenset({"OOMKilled"}), ended_by=EndedBy.MEMORY)) == "memory/limit"
    stalled = {"ended_by": EndedBy.STALL, "message": "no output for 10m"}
    assert kind(judged("epoch 3\n", **stalled)) == "stall/no-output"
    assert kind(judged("[E] Watchdog caught collective operation timeout\n", **stalled)) == "collective/timeout"
    assert kind(judged(EARLIER, ended_by=EndedBy.LOST)) == "/"


def test_the_catalogue_is_searched_in_linear_time() -> None:
    text = "".join(known["line"] for known in LINES)
    hostile = (text * 100)[: 64 << 10]
    began = time.perf_counter()
    PATTERNS.found_in(hostile)
    assert time.perf_counter() - began < 1.0


OWN = FailureCategory("gpu", (CategoryRule(log="CUDA", subcategory="mine"),), precedence=LAST, hint="ask Ann")


def test_an_operators_category_comes_first_and_replaces_one_of_its_name() -> None:
    failure = judged("RuntimeError: CUDA out of memory\n", OWN)
    assert (kind(failure), failure.hint, failure.suggestion) == ("gpu/mine", "ask Ann", "")
    assert kind(judged("uncorrectable ECC error\n", OWN)) == "/"
    mine = FailureCategory("mine", (CategoryRule(log="out of memory"),), precedence=LAST)
    assert kind(judged("RuntimeError: CUDA out of memory\n", mine)) == "mine/"


def test_the_catalogue_is_listed_beside_own_categories_and_cannot_be_deleted(lab: Lab) -> None:
    categories = Categories(lab.store)
    assert names(categories.list(BY)) == names(BUILT_IN)
    assert categories.get(BY, "gpu").rules[0].suggests is Action.FAIL
    with pytest.raises(Conflict, match="'gpu' is built in"):
        categories.delete(BY, "gpu")
    with pytest.raises(NotFound):
        categories.put(BY, OWN, create=False)
    categories.put(BY, OWN, create=True)
    with pytest.raises(AlreadyExists):
        categories.put(BY, OWN, create=True)
    assert names(categories.list(BY)) == ["gpu", *(name for name in names(BUILT_IN) if name != "gpu")]
    assert categories.get(BY, "gpu") == OWN
    categories.delete(BY, "gpu")
    assert names(categories.list(BY)) == names(BUILT_IN)


def names(categories: Sequence[FailureCategory]) -> list[str]:
    return [category.name for category in categories]


OUT_OF_MEMORY = SimulatedRun(
    duration_s=1.0, outcome=RunOutcome((ContainerResult(1, reason="Error"),), log="RuntimeError: CUDA out of memory.\n")
)


def test_the_catalogue_explains_and_changes_no_decision(lab: Lab) -> None:
    job = lab.submit(job_named("train"), OUT_OF_MEMORY)
    lab.pass_s(5)
    [attempt] = lab.attempts(job)
    assert lab.job(job).state is JobState.FAILED
    assert lab.job(job).reason.startswith(
        "exit code 1: RuntimeError: CUDA out of memory.; no retry policy applies; hint: "
    )
    _, classified, hint = failure_lines(attempt.failure, 1)
    assert classified == "Classified as kernel_nonzero_exit, condition AppError, category gpu/out-of-memory."
    assert hint.startswith("Hint: The memory of the GPU is too small: ")
    assert hint.endswith(" Suggested action: Fail.")


def test_a_rule_matches_an_entry_of_the_catalogue(lab: Lab) -> None:
    rule = Rule(Action.HOLD, "gpu", categories=frozenset({"gpu"}), subcategories=frozenset({"out-of-memory"}))
    job = lab.submit(job_named("train", RetryPolicy("p", (rule,))), OUT_OF_MEMORY)
    lab.pass_s(5)
    assert lab.job(job).state is JobState.HELD
