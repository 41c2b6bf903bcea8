"""Checks what Armada's scheduler does with a failed run: a job read by the door, policies composed, a decision.

Upstream's scheduler tells its own log of it; what of that a decision must show is looked for in the decision.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from holdfast.api.armada.translation import final_reason, run_error
from holdfast.compiled.codec import dump_entry, dump_spec
from holdfast.controller.policy_catalog import PolicyCatalog
from holdfast.dialects.armada.configuration import read_configuration
from holdfast.dialects.armada.items import CARDINALITY, GANG
from holdfast.dialects.armada.jobs import read_items
from holdfast.domain.classify import NO_CATEGORIES
from holdfast.domain.failure import LOST, ContainerResult
from holdfast.domain.job import Job, Queue, Resources
from holdfast.domain.placement.fit import Place, Shape
from holdfast.domain.policy.builtin import INFRASTRUCTURE, NO_RETRY
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.decide import decide
from holdfast.domain.policy.model import RetryHistory
from holdfast.domain.units import parse_memory
from holdfast.domain.workloads.judge import Judgement, Ruleset, decide_retry
from tools.cases.armada_facts import failure_of
from tools.cases.armada_input import read_case_policies
from tools.cases.results import Mismatch, Skip, differences
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.failure import Failure
    from holdfast.domain.policy.compiled import PolicySet
    from holdfast.domain.policy.model import Decision
    from holdfast.errors import Problem
    from tools.cases.results import Case

_BUILT_IN = frozenset({None, INFRASTRUCTURE.name})
_FINAL = frozenset({DecisionCode.POLICY_LIMIT, DecisionCode.GLOBAL_LIMIT})
_CALL = re.compile(r"(JobErrors|JobRunErrors|JobRequeued|JobFailedEvent)(?:\((.*)\))?")
_UNCHANGED = "JobErrors with the original error, unchanged"
_EXPECTED = {
    *("action", "reason", "decision", "matchedRule", "fallback", "events", "publicEvent", "run", "job"),
    *("category", "subcategory", "messagePrefix", "messageContains"),
    *("memory", "memoryBytes", "recorded", "nodeAntiAffinity"),
}
_AMOUNTS = {"cpu": "1", "memory": "1Gi"}
_CONTAINER: dict[str, Any] = {
    "name": "main",
    "image": "none",
    "command": ["true"],
    "resources": {"requests": _AMOUNTS, "limits": _AMOUNTS},
}


def check_scheduler(case: Case) -> list[Mismatch]:
    """Judge a case's failed run, and compare every part of what is decided."""
    expect = case["expect"]
    if unknown := expect.keys() - _EXPECTED:
        msg = f"expects {', '.join(sorted(unknown))}, which no checker knows"
        raise Skip(msg)
    failure = failure_of(case["failure"], node=_tried(case)[-1])
    decision = _decided(case, failure)
    got: dict[str, object] = {
        "action": _action(expect, decision),
        "reason": decision.reason,
        "decision": decision.code.value,
        "matchedRule": decision.rule_index,
        "run": "failed",
        "job": "queued" if decision.grants_retry else "failed",
        "category": "" if failure is None else failure.category,
        "subcategory": "" if failure is None else failure.subcategory,
        "nodeAntiAffinity": [*decision.avoid_nodes],
    }
    wrong = differences({key: value for key, value in expect.items() if key in got}, got)
    return [*wrong, *_memory(case, decision), *_events(expect, decision), *_told(expect, decision, failure)]


def _tried(case: Case) -> tuple[str, ...]:
    return tuple(map(str, (case["history"] or {}).get("attemptedNodes") or ["testNode"]))


def _places(case: Case) -> list[Place]:
    """Return the nodes of a case: those it was tried on, and, unless it says otherwise, one more."""
    more = () if (case["history"] or {}).get("fitsAnyNode") is False else ("another",)
    return [Place(("case", name), Resources(1 << 40, 1 << 60)) for name in (*_tried(case), *more)]


def _action(expect: Mapping[str, Any], decision: Decision) -> str:
    """Return what was decided; what no policy of the user's decides is undecided to upstream."""
    if expect.get("action") == "Undecided" and decision.policy in _BUILT_IN:
        failed = not decision.grants_retry
        return "Undecided" if failed or "job fails" not in str(expect.get("fallback")) else decision.action.value
    return "Retry" if decision.grants_retry else decision.action.value


def _decided(case: Case, failure: Failure | None) -> Decision:
    scheduler = case["policy"].get("scheduler") or {}
    store = MemoryStore()
    problems: list[Problem] = []
    for policy in read_case_policies(case, problems):
        store.put_entry(policy)
    if problems:
        raise AssertionError([str(problem) for problem in problems])
    store.put_configured(read_configuration({"scheduling": {"retryPolicy": scheduler}}, file="case", problems=problems))
    if problems:
        raise AssertionError([str(problem) for problem in problems])
    policies = _compiled(case, store)
    history, settings = _history(case, policies), store.catalogue().settings
    if failure is None:
        return decide(policies, failure, history, settings)
    ruleset = Ruleset(policies, NO_CATEGORIES, settings, _places(case))
    return decide_retry(failure, history, Judgement(ruleset), Shape())


def _compiled(case: Case, store: MemoryStore) -> PolicySet:
    """Compose the policies of the case's job, which the door reads; a queue may name some that are gone."""
    queue = case["policy"].get("queue") or {"name": "q"}
    name = str(queue.get("name", "q"))
    body = dump_entry(Queue(name, retry_policies=tuple(queue.get("retryPolicies") or ())))
    store.put_entry(Queue(name))
    with store._database.writing() as connection:  # noqa: SLF001 - past the rule that they exist
        connection.exec_driver_sql("UPDATE entries SET body = ? WHERE name = ?", (body, name))
    job = case["policy"].get("job") or {}
    gang = job.get("gang") or {}
    annotations = {**(job.get("annotations") or {})}
    if gang:
        annotations |= {GANG: "gang", CARDINALITY: str(gang.get("cardinality", 1))}
    item = {"namespace": "default", "annotations": annotations, "podSpec": {"containers": [_CONTAINER]}}
    (read,) = read_items(name, "cases", [item])
    if read.problems:
        raise AssertionError([str(problem) for problem in read.problems])
    return PolicyCatalog(store).compiled(Job("job", "job", name, 0, 0.0, dump_spec(read.spec)), read.spec)


def _history(case: Case, policies: PolicySet) -> RetryHistory:
    given = case["history"] or {}
    used = max(0, given.get("failures", 1) - 1)
    memory = given.get("memoryBytes") or (parse_memory(given["memory"]) if "memory" in given else 0)
    counters = {rule.counter: used for rule in (*policies.rules, policies.default)}
    counted = tuple(counters.items())
    return RetryHistory("case", attempt=used + 1, counters=counted, total=used, memory=memory, tried=_tried(case))


def _memory(case: Case, decision: Decision) -> list[Mismatch]:
    expect, before = case["expect"], case["history"] or {}
    wanted = expect.get("memoryBytes") or (parse_memory(expect["memory"]) if "memory" in expect else None)
    if wanted is None:
        return []
    held = before.get("memoryBytes") or parse_memory(before["memory"])
    got = held if decision.memory is None else decision.memory
    return [] if got == wanted else [Mismatch("memory", wanted, got)]


def _events(expect: Mapping[str, Any], decision: Decision) -> list[Mismatch]:
    """Check what upstream's events say of the decision; of the events themselves the door's tests are about."""
    found = []
    for event in (*(expect.get("events") or ()), *([expect["publicEvent"]] if "publicEvent" in expect else ())):
        if event == _UNCHANGED:
            if decision.policy not in {None, NO_RETRY.name}:
                found.append(Mismatch("events", event, f"decided by {decision.policy}"))
            continue
        match = _CALL.fullmatch(event)
        if match is None:
            msg = f"no checker knows the event {event!r}"
            raise Skip(msg)
        said = filter(None, (match[2] or "").split(", "))
        wrong = [word for word in said if not _says(match[1], word, decision)]
        found += [Mismatch("events", event, f"{word} is not what was decided: {decision.reason}") for word in wrong]
        if match[1] == "JobRequeued" and not decision.grants_retry:
            found.append(Mismatch("events", event, decision.reason))
    return found


def _says(event: str, word: str, decision: Decision) -> bool:
    """Whether a decision agrees with one word about an event; a run's own error is always terminal for the run."""
    retried = decision.grants_retry
    if event == "JobRunErrors":
        return True
    name, _, value = word.partition("=")
    if name == "retryPolicyName":
        return decision.policy == value
    if word in {"terminal=true", "retryable=false"}:
        return not retried
    if word in {"terminal=false", "retryable=true", "updateSequenceNumber+1"}:
        return retried
    if word == "MaxRunsExceeded":
        return decision.code in _FINAL
    if word == "LeaseExpired":
        return True
    msg = f"no checker knows {word!r} of an event"
    raise Skip(msg)


def _told(expect: Mapping[str, Any], decision: Decision, failure: Failure | None) -> list[Mismatch]:
    """Check what the last event of a job that a policy ended says."""
    prefix, parts = expect.get("messagePrefix"), expect.get("messageContains") or ()
    if prefix is None and not parts:
        return []
    container = failure.containers[0] if failure is not None and failure.containers else ContainerResult(None)
    message = "" if failure is None else failure.message
    lost = failure is not None and not LOST.isdisjoint(failure.conditions)
    error = run_error(message, container.exit_code, container.name)
    told = final_reason(decision.reason, error, lost=lost)
    words = (*parts, *([] if prefix is None else [prefix]))
    return [Mismatch("message", word, told) for word in words if word not in told]
