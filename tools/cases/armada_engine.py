"""Checks Armada's engine and design cases: read the policies, compile them, decide, compare."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from holdfast.dialects.armada.jobs import policies_of
from holdfast.dialects.native.catalogue import read_settings
from holdfast.domain.job import Run
from holdfast.domain.lifecycle import RUN_ACTIVE, RunStatus
from holdfast.domain.policy.compiled import PolicySet, effective_policies
from holdfast.domain.policy.decide import decide, retry_at
from holdfast.domain.policy.model import RetryHistory
from holdfast.domain.units import parse_duration
from tools.cases.armada_facts import failure_of
from tools.cases.armada_input import read_case_policies
from tools.cases.armada_pods import pod_name
from tools.cases.controller_world import NOW, ready_at
from tools.cases.results import Mismatch, Skip, differences

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.policy.model import Decision, RetryPolicy
    from holdfast.errors import Problem
    from tools.cases.results import Case

_DESIGN_BACKOFF = {"initialDelay": "0s", "maxDelay": "10m", "multiplier": 2.0}
"""The design document's ``defaultBackoff``."""
_MEMORY = 1 << 30
_EXPECTED = {
    *("action", "reason", "decision", "matchedRule", "policy", "mutation"),
    *("effectiveLimit", "delaySeconds", "avoidNodes"),
}


def check_engine(case: Case) -> list[Mismatch]:
    """Decide a case's failure and compare every part of the decision."""
    if unknown := case["expect"].keys() - _EXPECTED:
        msg = f"expects {', '.join(sorted(unknown))}, which no checker knows"
        raise Skip(msg)
    problems: list[Problem] = []
    policies = read_case_policies(case, problems)
    if problems:
        return [Mismatch("policies", "readable", [str(problem) for problem in problems])]
    decision = _decided(case, policies)
    return differences(case["expect"], _described(case, decision))


def _decided(case: Case, policies: Sequence[RetryPolicy]) -> Decision:
    scheduler = case["policy"].get("scheduler") or {}
    operator = {key: scheduler[key] for key in ("globalMaxRetries", "defaultBackoff") if key in scheduler}
    settings, _, _ = read_settings({"defaultBackoff": _DESIGN_BACKOFF, **operator})
    history = _history(case.get("history") or {}, policies, case)
    nodes = (case.get("history") or {}).get("failedNodes") or ["the-node"]
    failure = failure_of(case["failure"], node=nodes[-1])
    return decide(PolicySet.compile(policies), failure, history, settings, draw=0.0, explain=True)


def _history(history: Mapping[str, Any], policies: Sequence[RetryPolicy], case: Case) -> RetryHistory:
    """Turn a case's counts into counters of retries granted before this failure (research, section 2)."""
    if "byRule" in history:
        counters = {_counter(name, policies): count for name, count in history["byRule"].items()}
        return _with(counters, history.get("total", sum(counters.values())))
    used = history.get("retriesUsed", max(0, history.get("failures", 1) - 1))
    if "preemptions" in history and "Preempted" in (case["failure"] or {}).get("conditions", ()):
        used = max(0, history["preemptions"] - 1)
    total = max(0, history["totalRuns"] - 1) if "totalRuns" in history else used
    return _with({name: used for policy in policies for name in _counters_of(policy)}, total)


def _with(counters: Mapping[str, int], total: int) -> RetryHistory:
    return RetryHistory("case", attempt=total + 1, counters=tuple(counters.items()), total=total, memory=_MEMORY)


def _counters_of(policy: RetryPolicy) -> list[str]:
    return [f"{policy.name}/{name}" for name in (*(rule.name for rule in policy.rules), "default")]


def _counter(name: str, policies: Sequence[RetryPolicy]) -> str:
    policy_name, _, place = name.rpartition("/")
    policy = next(policy for policy in policies if policy.name == policy_name)
    return f"{policy_name}/{policy.rules[int(place)].name if place.isdigit() else place}"


def _described(case: Case, decision: Decision) -> dict[str, object]:
    """Describe a decision the way the case describes what it expects."""
    expect = case["expect"]
    composed = isinstance(expect.get("matchedRule"), str)
    matched = f"{decision.policy}/{decision.rule_index}" if composed else decision.rule_index
    own = [limit.limit for limit in decision.limits if limit.name != "globalMaxRetries"]
    return {
        "action": "Retry" if decision.grants_retry else decision.action.value,
        "reason": expect.get("reason") if str(expect.get("reason")) in decision.reason else decision.reason,
        "decision": decision.code.value,
        "matchedRule": matched,
        "policy": decision.policy,
        "mutation": expect.get("mutation") if _mutates_alike(case, decision) else _mutation(case, decision),
        "effectiveLimit": own[0] if own else None,
        "delaySeconds": _delay(case.get("history") or {}, decision),
        "avoidNodes": [decision.avoid_node] if decision.avoid_node else [*decision.avoid_nodes],
    }


def _delay(history: Mapping[str, Any], decision: Decision) -> float:
    grace = history.get("terminationGracePeriodSeconds", 0)
    confirmed = history.get("terminationConfirmedAfter", grace)
    return retry_at(0.0, decision.delay_s, confirmed_stopped_at=float(confirmed), grace_s=float(grace))


def _mutation(case: Case, decision: Decision) -> object:
    """Return the mutation of the deciding rule as the case wrote it, when the decision carries it out."""
    if decision.memory is None and not decision.avoid_nodes:
        return None
    for policy in case["policy"]["policies"]:
        if policy["name"] == decision.policy and decision.rule_index is not None:
            return policy["rules"][decision.rule_index].get("mutate")
    return None


def _mutates_alike(case: Case, decision: Decision) -> bool:
    """Whether the mutation carried out is the expected one, however deep the case nests it."""
    return _leaves(case["expect"].get("mutation")) == _leaves(_mutation(case, decision))


def _leaves(value: object, name: str = "") -> set[tuple[str, str]]:
    """Collect the settings of a mutation, told apart by their last word: ``memoryFactor`` is ``factor``."""
    if isinstance(value, dict):
        return {leaf for key, item in value.items() for leaf in _leaves(item, key)}
    return set() if value in (None, False) else {(name.lower().removeprefix("memory"), str(value))}


def check_design(case: Case) -> list[Mismatch]:
    """Check a case of the design document: a decision, a composition, a name, a generation."""
    expect, policy = case["expect"], case["policy"] or {}
    if "policies" in policy:
        return check_engine(case)
    if "effectivePolicies" in expect:
        return differences(expect, {"effectivePolicies": _composed(policy)})
    if "podName" in expect:
        return differences(expect, {"podName": pod_name("<jobId>", case["history"]["runIndex"])})
    if members := (case["history"] or {}).get("members"):
        return differences(expect, _generations(members))
    if "scheduling" in expect and "retryAfter" in (case["history"] or {}).get("job", {}):
        return _check_due(str(case["history"]["job"]["retryAfter"]), str(expect["scheduling"]))
    msg = "is about Armada's scheduler, not built yet"
    raise Skip(msg)


def _check_due(retry_after: str, expect: str) -> list[Mismatch]:
    """Check that a job is not pending until its retry is due, and is from that instant on."""
    due = re.fullmatch(r"now ?\+ ?(\S+)", retry_after)
    if due is None or "until retryAfter <= now" not in expect:
        msg = "its prose names no time that a checker knows"
        raise Skip(msg)
    at = NOW + parse_duration(due[1])
    got = ready_at(at, [NOW, at - 0.001, at, at + 1])
    expected = [False, False, True, True]
    return [] if got == expected else [Mismatch("pending before, at and after retryAfter", expected, got)]


def _composed(policy: Mapping[str, Any]) -> list[str]:
    annotations = policy.get("job", {}).get("annotations") or {}
    queue = policy.get("queue", {}).get("retryPolicies") or ()
    default = policy.get("scheduler", {}).get("defaultPolicyName")
    return list(effective_policies(queue, policies_of(annotations), default))


def _generations(members: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """Count a gang's active runs by attempt: a generation is an attempt here."""
    runs = [Run(f"g-{m['attempts']}-{i}-1", "g", m["attempts"], i, RunStatus.RUNNING) for i, m in enumerate(members)]
    numbers = {run.attempt for run in runs}
    return {
        f"activeInGeneration{n}": sum(run.attempt == n and run.status in RUN_ACTIVE for run in runs) for n in numbers
    }
