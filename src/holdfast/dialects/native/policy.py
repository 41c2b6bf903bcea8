"""Reads retry policies and the manifests around them, and warns of what is dubious in them.

The native policy is a superset of the ``spec`` of Armada's design document, which is accepted as it stands.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from holdfast.dialects.native.envelope import close_envelope, open_envelope
from holdfast.dialects.native.matchers import (
    never_matched,
    read_conditions,
    read_exit_codes,
    read_names,
    read_pattern,
    read_signals,
)
from holdfast.dialects.reading import LONGEST_NAME, Fields, shown
from holdfast.domain.failure import LOST, NEVER_RETRIED, Cause, FailureCondition
from holdfast.domain.policy.identity import name_rules
from holdfast.domain.policy.model import (
    Action,
    AntiAffinity,
    Backoff,
    JitterMode,
    MemoryGrowth,
    Mutation,
    RetryPolicy,
    Rule,
)
from holdfast.domain.record import Struct
from holdfast.domain.sessions.policy import partial
from holdfast.domain.terms.settings import UnknownEnd
from holdfast.domain.units import parse_memory
from holdfast.errors import InvalidPolicy, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


MOST_RULES = 1000
HIGHEST_LIMIT = 1_000_000_000
HIGHEST_MULTIPLIER = 1000.0
HIGHEST_GROWTH = 1000.0
SESSION_RETRY = "sessionRetry"
_DEFAULT_BACKOFF = Backoff()


class _DefaultAction(StrEnum):
    """What may happen if no rule matches."""

    FAIL = Action.FAIL
    RETRY = Action.RETRY
    IGNORE = Action.IGNORE
    HOLD = Action.HOLD


class RuleDialect(Struct, frozen=True):
    """How a dialect differs from the native one in the rules it accepts."""

    condition_aliases: tuple[tuple[str, str], ...] = ()
    """Further names for conditions."""


NATIVE = RuleDialect()


def read_policy(value: Mapping[str, Any], *, path: str, name: str, problems: list[Problem]) -> RetryPolicy | None:
    """Read a policy's ``spec`` at a field path; ``None`` if anything is wrong."""
    before = len(problems)
    fields = Fields(value, path, problems)
    policy = read_policy_fields(fields, name, NATIVE)
    fields.finish()
    return policy if len(problems) == before else None


def read_policy_fields(fields: Fields, name: str, dialect: RuleDialect) -> RetryPolicy:
    """Read the fields of a policy's spec; the caller finishes the reader."""
    rules = [_read_rule(part, dialect) for part in fields.mappings("rules", most=MOST_RULES)]
    _check_rule_names(rules, fields)
    return RetryPolicy(
        name=name,
        rules=name_rules(rules),
        retry_limit=fields.integer("retryLimit", low=0, high=HIGHEST_LIMIT),
        default_action=Action(fields.choice("defaultAction", _DefaultAction) or Action.FAIL),
        backoff=read_backoff(fields, "backoff"),
        anti_affinity=_read_anti_affinity(fields) or AntiAffinity.NONE,
        on_unknown_end=fields.choice("onUnknownEnd", UnknownEnd) if dialect is NATIVE else None,
    )


def _check_rule_names(rules: Sequence[Rule], fields: Fields) -> None:
    seen: dict[str, int] = {}
    for i, rule in enumerate(rules):
        if not rule.name:
            continue
        if rule.name == "default":
            fields.problem(f"rules[{i}].name", "'default' is reserved for the default action's counter")
        if (first := seen.setdefault(rule.name, i)) != i:
            hint = "counters follow rule names, so each rule needs its own"
            fields.problem(f"rules[{i}].name", f"{rule.name!r} is also the name of rules[{first}]", hint=hint)


def _read_rule(fields: Fields, dialect: RuleDialect) -> Rule:
    action = fields.choice("action", Action, required=True) or Action.FAIL
    rule = Rule(
        action=action,
        name=fields.name("name") or "",
        exit_codes=read_exit_codes(fields),
        conditions=read_conditions(fields, aliases=dict(dialect.condition_aliases)),
        termination_message=read_pattern(fields, "onTerminationMessage"),
        log=read_pattern(fields, "onLog"),
        categories=_read_categories(fields),
        subcategories=read_names(fields, "onSubcategory"),
        causes=_read_causes(fields),
        signals=read_signals(fields),
        container_name=fields.text("containerName", longest=LONGEST_NAME),
        include_init_containers=fields.flag("includeInitContainers"),
        ran_shorter_than_s=fields.duration("ranShorterThan"),
        ran_longer_than_s=fields.duration("ranLongerThan"),
        retry_limit=fields.integer("retryLimit", low=0, high=HIGHEST_LIMIT),
        backoff=read_backoff(fields, "backoff"),
        anti_affinity=_read_anti_affinity(fields),
        mutate=_read_mutation(fields),
        hold_reason=fields.text("reason") or "",
    )
    if rule.hold_reason and action is not Action.HOLD:
        fields.problem("reason", "is shown to the person a Hold waits for; this rule's action is " + action)
    _check_rule(rule, fields)
    fields.finish()
    return rule


def _check_rule(rule: Rule, fields: Fields) -> None:
    shorter, longer = rule.ran_shorter_than_s, rule.ran_longer_than_s
    if shorter is not None and longer is not None and longer >= shorter:
        fields.problem("ranLongerThan", "together with ranShorterThan nothing can match")
    if shorter == 0:
        fields.problem("ranShorterThan", "nothing runs shorter than 0s")


def _read_categories(fields: Fields) -> frozenset[str] | None:
    both = fields.has("onCategory") and fields.has("onFailureCategory")
    short, other = read_names(fields, "onCategory"), read_names(fields, "onFailureCategory")
    if both:
        fields.problem("onFailureCategory", "is the same as onCategory; set one of them")
    return short or other


def _read_causes(fields: Fields) -> frozenset[str] | None:
    names = read_names(fields, "onCauses")
    allowed = [cause.value for cause in Cause if cause not in NEVER_RETRIED]
    for name in sorted(names or ()):
        if name in NEVER_RETRIED:
            fields.problem("onCauses", f"{name!r} is never retried, whatever a policy says", allowed=allowed)
        elif name not in allowed:
            fields.problem("onCauses", f"unknown cause {shown(name)}", allowed=allowed)
    return names


UNCAPPED = "none"
"""The value of ``maxDelay`` for a delay that grows without end."""


def read_backoff(fields: Fields, name: str) -> Backoff | None:
    """Read a back-off; missing fields have the defaults of ``domain.policy.model.Backoff``."""
    part = fields.nested(name)
    if part is None:
        return None
    initial = part.duration("initialDelay")
    uncapped = part.raw("maxDelay") == UNCAPPED
    longest = None if uncapped else part.duration("maxDelay")
    multiplier = part.number("multiplier", low=1.0, high=HIGHEST_MULTIPLIER)
    jitter = part.choice("jitter", JitterMode)
    ratio = part.number("jitterRatio", low=0.0, high=1.0)
    part.finish()
    if initial is not None and longest is not None and initial > longest:
        part.problem("maxDelay", "is shorter than initialDelay")
    d = _DEFAULT_BACKOFF
    return Backoff(
        initial_s=d.initial_s if initial is None else initial,
        max_s=_longest(longest, initial, uncapped=uncapped),
        multiplier=d.multiplier if multiplier is None else multiplier,
        jitter=d.jitter if jitter is None else jitter,
        jitter_ratio=d.jitter_ratio if ratio is None else ratio,
    )


def _longest(longest: float | None, initial: float | None, *, uncapped: bool) -> float | None:
    if uncapped or longest is not None:
        return longest
    return max(_DEFAULT_BACKOFF.max_s or 0.0, initial or 0.0)


def _read_anti_affinity(fields: Fields) -> AntiAffinity | None:
    part = fields.nested("antiAffinity")
    if part is None:
        return None
    mode = part.choice("mode", AntiAffinity, required=True)
    part.finish()
    return mode


def _read_mutation(fields: Fields) -> Mutation | None:
    part = fields.nested("mutate")
    if part is None:
        return None
    avoid, memory = False, None
    if affinity := part.nested("affinity"):
        avoid = affinity.flag("avoidSameNode")
        affinity.finish()
    if resources := part.nested("resources"):
        memory = _read_growth(resources)
        resources.finish()
    part.finish()
    return Mutation(memory, avoid) if memory or avoid else None


def _read_growth(resources: Fields) -> MemoryGrowth | None:
    part = resources.nested("memory")
    if part is None:
        return None
    factor = part.number("factor", low=-HIGHEST_GROWTH, high=HIGHEST_GROWTH)
    static = _read_static(part)
    longest = part.memory("max")
    part.finish()
    has_both = part.has("factor") and part.has("static")
    if has_both or not (part.has("factor") or part.has("static")):
        part.problem("", f"set exactly one of static and factor{', not both' if has_both else ''}")
        return None
    if factor is not None and factor <= 1:
        part.problem("factor", f"{factor:g} must be greater than 1.0")
    return MemoryGrowth(factor, static, longest)


def _read_static(part: Fields) -> int | None:
    value = part.raw("static")
    if value is None:
        return None
    text = value.removeprefix("-") if isinstance(value, str) else value
    negative = text != value
    try:
        size = parse_memory(text)
    except ValueError as error:
        part.problem("static", f"invalid static quantity: {error}")
        return None
    if negative or size <= 0:
        part.problem("static", f"{shown(value)} must be positive")
        return None
    return size


def policy_warnings(policy: RetryPolicy, path: str, on_unknown_end: UnknownEnd | None = None) -> list[Problem]:
    """List what is legal but dubious: unreachable rules, unused settings, impossible matches.

    Args:
        policy: The policy.
        path: Its field path.
        on_unknown_end: The setting of its job or array, which takes precedence over the policy.
    """
    warnings = [*_unused_limit(policy, path), *_voiding(policy, path, on_unknown_end or policy.on_unknown_end)]
    blocker: str | None = None
    for i, rule in enumerate(policy.rules):
        where = f"{path}.rules[{i}]" if path else f"rules[{i}]"
        if blocker is not None:
            message = f"rule {rule.name!r} is never reached: {blocker!r} before it matches every failure"
            warnings.append(Problem(where, message, hint="move it up, or remove it"))
        elif rule.matches_all:
            blocker = rule.name
        warnings += never_matched(rule.exit_codes, rule.container_name, where, rule.conditions)
        if rule.action is not Action.RETRY and (rule.retry_limit is not None):
            warnings.append(Problem(f"{where}.retryLimit", f"has no effect: the action is {rule.action}"))
        if rule.action in {Action.FAIL, Action.HOLD} and (rule.backoff or rule.mutate):
            warnings.append(Problem(where, f"backoff and mutate have no effect: the action is {rule.action}"))
    return warnings


def _unused_limit(policy: RetryPolicy, path: str) -> list[Problem]:
    if not policy.retry_limit or Action.RETRY in {policy.default_action, *(rule.action for rule in policy.rules)}:
        return []
    message = "has no effect: no rule's action is Retry, and neither is defaultAction"
    hint = "defaultAction: Retry retries what no rule matches"
    return [Problem(f"{path}.retryLimit" if path else "retryLimit", message, hint=hint)]


def _voiding(policy: RetryPolicy, path: str, says: UnknownEnd | None) -> list[Problem]:
    """Find the first rule that retries a job whose ``onUnknownEnd`` forbids that."""
    if says in {None, UnknownEnd.RETRY}:
        return []
    for i, rule in enumerate(policy.rules):
        names = rule.conditions or frozenset()
        if rule.exit_codes is not None or rule.signals is not None or rule.termination_message is not None:
            continue  # Nothing is known of such an end.
        if rule.matches_all or FailureCondition.END_UNKNOWN in names:
            return []  # A rule that does not mention unknown ends comes later; one that names them is intended.
        by_cause = Cause.AGENT_TRANSIENT in (rule.causes or ())
        if (names & LOST or (by_cause and not names)) and rule.action in {Action.RETRY, Action.IGNORE}:
            where = f"{path}.rules[{i}]" if path else f"rules[{i}]"
            message = f"comes before onUnknownEnd: {says}: a job is run again, whoever knows how it ended"
            return [Problem(where, message, hint="put a rule with onConditions: [EndUnknown] before it")]
    return []


def read_policy_manifest(
    value: Mapping[str, Any], *, path: str, problems: list[Problem], warnings: list[Problem] | None = None
) -> RetryPolicy | None:
    """Read a retry policy; ``None`` when anything was wrong."""
    before = len(problems)
    opened = open_envelope(Fields(value, path, problems))
    policy = read_policy_fields(opened.spec, opened.name or "", NATIVE) if opened.spec is not None else None
    close_envelope(opened)
    if warnings is not None and policy is not None:
        warnings.extend(policy_warnings(policy, f"{path}.spec" if path else "spec"))
    return policy if len(problems) == before else None


def read_session_retry(fields: Fields, name: str = SESSION_RETRY) -> dict[str, Any]:
    """Read some fields of a retry policy of sessions; one that is null is not the same as one left out."""
    value = fields.raw(name)
    if value is None:
        return {}
    try:
        return partial(value, fields.at(name))
    except InvalidPolicy as error:
        fields.problems.extend(error.problems)
        return {}
