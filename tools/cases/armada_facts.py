"""Checks what Armada makes of facts: matchers, classification, counting, grown memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.dialects.armada.categories import read_error_categories
from holdfast.dialects.armada.policy import CONDITION_ALIASES, read_bare_policy
from holdfast.domain.classify import CompiledCategories, classify
from holdfast.domain.failure import ContainerResult, EndedBy, Failure, FailureCondition, PodEvent, RunOutcome
from holdfast.domain.policy.compiled import PolicySet
from holdfast.domain.policy.decide import decide
from holdfast.domain.policy.model import RetryHistory, RetrySettings
from holdfast.domain.record import evolve
from holdfast.domain.units import format_memory, parse_memory
from tools.cases.armada_pods import RunEnding, count_failures, grow_containers
from tools.cases.results import Mismatch, Skip, differences

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.errors import Problem
    from tools.cases.results import Case

_ENDED_BY = {
    "Preempted": EndedBy.PREEMPTION,
    "DeadlineExceeded": EndedBy.DEADLINE,
    "ExecutorLost": EndedBy.LOST,
    "NodeLost": EndedBy.LOST,
}
_INIT_SUFFIX = " (init container)"


def outcome_of(facts: Mapping[str, Any], node: str | None = None) -> RunOutcome:
    """Build the facts of a run from a case's failure."""
    reason = str(facts.get("podReason"))
    names = [*(facts.get("conditions") or ()), *([reason] if reason in set(FailureCondition) else [])]
    conditions = frozenset(CONDITION_ALIASES.get(name, name) for name in names)
    containers = tuple(
        ContainerResult(
            exit_code=one["exitCode"],
            name=one["name"],
            reason=one.get("reason", ""),
            message=one.get("terminationMessage", ""),
            init=one.get("isInit", False),
        )
        for one in facts.get("containers") or ()
    )
    events = tuple(PodEvent(one["type"], one["message"], one.get("reason", "")) for one in facts.get("podEvents") or ())
    return RunOutcome(
        containers=containers,
        conditions=conditions,
        ended_by=next((_ENDED_BY[name] for name in sorted(conditions) if name in _ENDED_BY), EndedBy.ITSELF),
        started="LaunchFailed" not in conditions,
        node=node,
        message=facts.get("podError") or facts.get("podMessage", ""),
        events=events,
    )


def failure_of(facts: Mapping[str, Any] | None, node: str | None = None) -> Failure | None:
    """Classify a case's failure; the category the case names counts as given by the executor."""
    if facts is None:
        return None
    failure = classify(outcome_of(facts, node))
    return evolve(failure, category=facts.get("category", ""), subcategory=facts.get("subcategory", ""))


def check_matcher(case: Case) -> list[Mismatch]:
    """Check whether a matcher holds: in a category when it is the shipped classifier's, else in a policy."""
    if not any(key.startswith("on") for key in case["policy"]):
        msg = f"matches {sorted(case['policy'])}, which no checker knows"
        raise Skip(msg)
    if case.get("status") in {"head", "post-snapshot"}:
        config = {"categories": [{"name": "matched", "rules": [case["policy"]]}]}
        matches = _classified(config, case["failure"])["category"] == "matched"
    else:
        matches = _rule_matches(case["policy"], case["failure"])
    return differences(case["expect"], {"matches": matches})


def _rule_matches(matcher: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    problems: list[Problem] = []
    value = {"name": "case", "defaultAction": "Fail", "rules": [{"action": "Retry", **matcher}]}
    policy = read_bare_policy(value, path="", problems=problems)
    if policy is None:
        raise AssertionError([str(problem) for problem in problems])
    compiled = PolicySet.compile([policy])
    return decide(compiled, failure_of(facts), RetryHistory("case"), RetrySettings(), draw=0.0).rule_index == 0


def check_classifier(case: Case) -> list[Mismatch]:
    """Check which category a failure gets, and what is done with its pod."""
    return differences(case["expect"], _classified(case["policy"]["errorCategories"], case["failure"]))


def _classified(config: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, object]:
    problems: list[Problem] = []
    compiled = read_error_categories(config, problems=problems)
    if compiled is None:
        raise AssertionError([str(problem) for problem in problems])
    categories = CompiledCategories.compile(
        compiled.categories,
        default_category=compiled.default_category,
        default_subcategory=compiled.default_subcategory,
    )
    outcome = outcome_of(facts)
    found = categories.match(classify(outcome), outcome)
    return {
        "category": found.category,
        "subcategory": found.subcategory,
        "podAction": found.pod_action,
        "hint": found.hint,
    }


def check_counter(case: Case) -> list[Mismatch]:
    """Check which runs use up Armada's budget."""
    return differences(case["expect"], {"failures": count_failures(_ending(run) for run in case["history"]["runs"])})


def _ending(words: str) -> RunEnding:
    said = set(words.split("+"))
    if unknown := said - {"failed", "preempted", "returned", "succeeded", "expired", "cancelled"}:
        msg = f"no checker knows a run that is {' and '.join(sorted(unknown))}"
        raise Skip(msg)
    failed = bool(said & {"failed", "expired"})
    return RunEnding(failed=failed, preempted="preempted" in said, returned="returned" in said)


def check_mutation(case: Case) -> list[Mismatch]:
    """Check how grown memory is spread over a pod's containers."""
    mutations = case["policy"].get("mutations")
    if mutations is None:
        msg = "how mutations of several retries combine needs Armada's front door, not built yet"
        raise Skip(msg)
    static = mutations.get("memoryStatic")
    sizes = {name: None if memory is None else parse_memory(memory) for name, memory in case["failure"]["containers"]}
    grown = grow_containers(
        {name: size for name, size in sizes.items() if not name.endswith(_INIT_SUFFIX)},
        {name.removesuffix(_INIT_SUFFIX): size for name, size in sizes.items() if name.endswith(_INIT_SUFFIX)},
        factor=mutations.get("memoryFactor"),
        static=None if static is None else parse_memory(static),
    )
    expected = {name: parse_memory(memory) for name, memory in case["expect"]["memory"].items()}
    return [] if grown == expected else [Mismatch("memory", case["expect"]["memory"], _readable(grown))]


def _readable(memory: Mapping[str, int]) -> dict[str, str]:
    return {name: format_memory(size) for name, size in memory.items()}
