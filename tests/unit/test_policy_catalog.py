"""The catalogue in force: what is compiled when, and how much of it is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.controller.bounded_cache import BoundedCache
from holdfast.controller.policy_catalog import PolicyCatalog
from holdfast.domain.job import JobState
from holdfast.domain.policy.compiled import PolicySet
from holdfast.domain.policy.decide import reason_beyond_rule
from holdfast.domain.policy.model import Action, RetryPolicy
from holdfast.domain.record import evolve
from holdfast.service.explain import Explainer
from tests.unit.conftest import exits, job_named, retrying

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.unit.conftest import Lab


def test_no_more_than_the_most_are_ever_kept() -> None:
    answers: BoundedCache[str] = BoundedCache(3)
    sizes = []
    for question in range(10):
        assert answers.keep(question, "answer") == answers.get(question) == "answer"
        sizes.append(len(answers))
    assert sizes == [1, 2, 3, 1, 2, 3, 1, 2, 3, 1]


def test_the_policies_of_a_job_are_compiled_when_it_starts_and_once_for_all_that_have_the_same(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[Sequence[RetryPolicy]] = []
    compile_ = PolicySet.compile

    def counted(policies: Sequence[RetryPolicy], **rest: Any) -> PolicySet:  # noqa: ANN401 - passed on
        compiled.append(policies)
        return compile_(policies, **rest)

    monkeypatch.setattr(PolicySet, "compile", counted)
    jobs = [lab.submit(job_named(name, retrying(1)), exits(3, after_s=5.0)) for name in ("a", "b")]
    other = lab.submit(job_named("c", retrying(2)), exits(3, after_s=5.0))
    lab.pass_s(2.0)
    assert [lab.job(job).state for job in (*jobs, other)] == [JobState.RUNNING] * 3
    assert compiled == [[retrying(1)], [retrying(2)]]
    lab.pass_s(30.0)
    assert [lab.job(job).attempt for job in (*jobs, other)] == [2, 2, 3]
    assert len(compiled) == 2


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (("gone",), "no retry policy applies; retry policy 'gone' does not exist"),
        (("gone", "lost"), "no retry policy applies; retry policies 'gone', 'lost' do not exist"),
        (("gone", "strict"), "no rule matched, using default action; retry policy 'gone' does not exist"),
    ],
)
def test_a_decision_names_the_policies_of_its_job_that_do_not_exist(
    lab: Lab, names: tuple[str, ...], reason: str
) -> None:
    lab.store.put_entry(RetryPolicy("strict", default_action=Action.FAIL))
    job = lab.submit(evolve(job_named("a"), retry_policies=names), exits(3))
    lab.pass_s(5.0)
    [attempt] = lab.store.attempts(job)
    assert attempt.decision is not None
    assert attempt.decision.reason == reason
    assert lab.job(job).reason.endswith("; " + reason_beyond_rule(reason))
    assert reason_beyond_rule(reason) in " ".join(Explainer(lab.store).why(job).summary)


def test_a_decision_about_a_pod_names_the_policies_of_its_job_that_do_not_exist(lab: Lab) -> None:
    policies = PolicyCatalog(lab.store).named(("gone",))
    assert policies.default.reason == "no retry policy applies; retry policy 'gone' does not exist"
