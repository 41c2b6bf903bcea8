"""Reads a set's failurePolicy: upstream's fields and messages, and for native manifests further fields.

Stricter than upstream: refuses patterns that are not RE2, negative limits, and unreachable rules.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.dialects.jobset.values import one_of, or_default, whole
from holdfast.dialects.jobset.wording import shown
from holdfast.dialects.native.policy import read_backoff
from holdfast.dialects.reading import regex_error
from holdfast.domain.policy.model import SetAction, SetRule
from holdfast.domain.record import Struct
from holdfast.domain.workloads.jobset.model import FailurePolicy, RestartStrategy
from holdfast.domain.workloads.kubejob.reconcile import FAILURE_REASONS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from holdfast.dialects.jobset.wording import ManifestNotes
    from holdfast.dialects.reading import Fields

MOST_RULES = 1000
MOST_ITEMS = 1000
LONGEST_RULE_NAME = 128
DEFAULT_RULE_NAME = "failurePolicyRule"
_COUNTED = frozenset({SetAction.RESTART_JOB_SET, SetAction.RESTART_JOB, SetAction.RESTART_GROUP})
_RULE_NAME = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")


class RuleContext(Struct, frozen=True):
    """The parts of the manifest that rules refer to."""

    replicated_jobs: Collection[str]
    declared_reasons: Collection[str] = ()
    """Failure reasons that pod failure policies of its templates can produce."""
    extended: bool = False
    """Whether fields beyond upstream's are read."""


def read_failure_policy(spec: Fields, notes: ManifestNotes, around: RuleContext) -> FailurePolicy | None:
    """Read ``failurePolicy``."""
    part = spec.nested("failurePolicy")
    if part is None:
        return None
    limit = or_default(whole(part, "maxRestarts"), 0)
    if limit < 0:
        hint = "write 0, or leave it out, for no restarts"
        message = f"Invalid value: {limit}: must be greater than or equal to 0"
        notes.forgivable(part.at("maxRestarts"), message, hint=hint)
    readers = part.mappings("rules", most=MOST_RULES)
    rules = [_read_rule(rule, notes, index, around) for index, rule in enumerate(readers)]
    _check_unique([rule.name for rule in rules], part, notes)
    _warn_of_unreachable(rules, part, notes)
    _warn_of_no_budget(rules, limit, part, notes)
    policy = FailurePolicy(
        max_restarts=limit,
        strategy=one_of(part, notes, "restartStrategy", RestartStrategy) or RestartStrategy.RECREATE,
        rules=tuple(rules),
        backoff=read_backoff(part, "backoff") if around.extended else None,
        window_s=part.duration("window") if around.extended else None,
        reset_after_s=part.duration("resetAfter") if around.extended else None,
        on_certain=part.flag("onCertain") if around.extended else False,
    )
    part.finish()
    return policy


def _warn_of_no_budget(rules: Sequence[SetRule], limit: int, part: Fields, notes: ManifestNotes) -> None:
    for place, rule in enumerate(rules):
        if limit == 0 and rule.action in _COUNTED:
            message = "never restarts anything: maxRestarts is 0, and the set fails instead"
            notes.warn(f"{part.at('rules')}[{place}].action", message, hint="write how often in maxRestarts")


def _read_rule(fields: Fields, notes: ManifestNotes, index: int, around: RuleContext) -> SetRule:
    if fields.raw("action") is None:
        fields.problem("action", "is required", allowed=list(SetAction))
    rule = SetRule(
        action=one_of(fields, notes, "action", SetAction) or SetAction.FAIL_JOB_SET,
        name=_read_name(fields, notes, index),
        reasons=_read_reasons(fields, notes, around),
        messages=_read_patterns(fields, notes),
        replicated_jobs=_read_targets(fields, notes, around),
        limit=fields.integer("limit", low=0, high=10**9) if around.extended else None,
        backoff=read_backoff(fields, "backoff") if around.extended else None,
    )
    fields.finish()
    return rule


def _read_name(fields: Fields, notes: ManifestNotes, index: int) -> str:
    value = fields.raw("name")
    if value is None:
        return f"{DEFAULT_RULE_NAME}{index}"
    name, path = str(value), fields.at("name")
    if not 1 <= len(name) <= LONGEST_RULE_NAME:
        length = f"invalid failure policy rule name of length {len(name)}"
        bounds = f"at least 1 characters long and at most {LONGEST_RULE_NAME} characters long"
        notes.error(path, f"{length}, the rule name must be {bounds}")
    if not _RULE_NAME.fullmatch(name):
        notes.error(
            path,
            f"invalid failure policy rule name '{name}', a failure policy rule name must start with an alphabetic "
            "character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an "
            "alphanumeric character or '_'",
        )
    return name


def _listed(fields: Fields, notes: ManifestNotes, name: str) -> list[str]:
    values = fields.texts(name, most=MOST_ITEMS) or []
    for place, value in enumerate(values):
        if value in values[:place]:
            notes.warn(f"{fields.at(name)}[{place}]", f"{shown(value)} is listed twice")
    return values


def _read_reasons(fields: Fields, notes: ManifestNotes, around: RuleContext) -> frozenset[str]:
    reasons = _listed(fields, notes, "onJobFailureReasons")
    for place, reason in enumerate(reasons):
        if reason not in FAILURE_REASONS and reason not in around.declared_reasons:
            reasons_known = ", ".join([*FAILURE_REASONS, *sorted(set(around.declared_reasons) - set(FAILURE_REASONS))])
            notes.error(
                f"{fields.at('onJobFailureReasons')}[{place}]",
                f"invalid job failure reason '{reason}' in failure policy is not a recognized job failure reason",
                hint=f"one of {reasons_known}; a podFailurePolicy's setConditionReason declares more",
            )
    return frozenset(reasons)


def _read_patterns(fields: Fields, notes: ManifestNotes) -> tuple[str, ...]:
    patterns = _listed(fields, notes, "onJobFailureMessagePatterns")
    for place, pattern in enumerate(patterns):
        if wrong := regex_error(pattern):
            path = f"{fields.at('onJobFailureMessagePatterns')}[{place}]"
            message = f"Invalid value: {shown(pattern)}: is not RE2: {wrong}"
            notes.forgivable(path, message, hint="as it is, it never matches")
    return tuple(dict.fromkeys(patterns))


def _read_targets(fields: Fields, notes: ManifestNotes, around: RuleContext) -> frozenset[str]:
    targets = _listed(fields, notes, "targetReplicatedJobs")
    for place, name in enumerate(targets):
        if name not in around.replicated_jobs:
            message = f"invalid replicatedJob name '{name}' in failure policy does not appear in .spec.ReplicatedJobs"
            notes.forgivable(f"{fields.at('targetReplicatedJobs')}[{place}]", message)
    return frozenset(targets)


def _check_unique(names: Sequence[str], part: Fields, notes: ManifestNotes) -> None:
    for name in dict.fromkeys(names):
        places = [place for place, other in enumerate(names) if other == name]
        if len(places) > 1:
            indices = " ".join(map(str, places))
            message = f"rule names are not unique, rules with indices [{indices}] all have the same name '{name}'"
            notes.error(part.at("rules"), message)


def _warn_of_unreachable(rules: Sequence[SetRule], part: Fields, notes: ManifestNotes) -> None:
    for place, rule in enumerate(rules):
        earlier = next((i for i in range(place) if _covers(rules[i], rule)), None)
        if earlier is not None:
            message = f"is never reached: rules[{earlier}] matches everything it does"
            notes.warn(f"{part.at('rules')}[{place}]", message, hint="put the narrower rule first")


def _covers(wide: SetRule, narrow: SetRule) -> bool:
    """Whether a rule matches every failure another one does."""
    return (
        _wider(wide.reasons, narrow.reasons)
        and _wider(wide.replicated_jobs, narrow.replicated_jobs)
        and _wider(frozenset(wide.messages), frozenset(narrow.messages))
    )


def _wider(wide: frozenset[str], narrow: frozenset[str]) -> bool:
    return not wide or (bool(narrow) and narrow <= wide)
