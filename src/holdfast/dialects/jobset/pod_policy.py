"""Reads a Job's podFailurePolicy and successPolicy."""

from __future__ import annotations

from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING

from holdfast.dialects.jobset.values import count, one_of, qualified_name
from holdfast.dialects.jobset.wording import bracketed
from holdfast.domain.policy.model import ContainerScope, ExitCodeOperator, ExitCodes
from holdfast.domain.workloads.kubejob.indexes import parse_indexes
from holdfast.domain.workloads.kubejob.model import PodAction, PodRule, SuccessRule

if TYPE_CHECKING:
    from collections.abc import Collection

    from holdfast.dialects.jobset.wording import ManifestNotes
    from holdfast.dialects.reading import Fields

MOST_RULES = 20
MOST_VALUES = 255
MOST_PATTERNS = 20
LONGEST_INDEXES = 64 * 1024
_READ_AT_MOST = 100_000
"""The most items of any list here; longer lists are refused unread."""


class _ConditionStatus(StrEnum):
    FALSE = "False"
    TRUE = "True"
    UNKNOWN = "Unknown"


def read_failure_rules(
    fields: Fields, notes: ManifestNotes, *, containers: Collection[str], per_index: bool
) -> tuple[PodRule, ...] | None:
    """Read ``podFailurePolicy``.

    Args:
        fields: The Job's spec.
        notes: Where to add problems and warnings.
        containers: Names of the template's containers and init containers.
        per_index: Whether the Job has a ``backoffLimitPerIndex``, which FailIndex needs.
    """
    part = fields.nested("podFailurePolicy")
    if part is None:
        return None
    rules = part.mappings("rules", most=_READ_AT_MOST)
    if len(rules) > MOST_RULES:
        notes.too_many(part.at("rules"), len(rules), MOST_RULES)
    part.finish()
    rules_read = [_read_rule(rule, notes, containers, per_index=per_index) for rule in rules]
    return tuple(rule for rule in rules_read if rule is not None)


def _read_rule(fields: Fields, notes: ManifestNotes, containers: Collection[str], *, per_index: bool) -> PodRule | None:
    before = len(notes.problems)
    action = _read_action(fields, notes, per_index=per_index)
    exit_codes, container = _read_exit_codes(fields, notes, containers)
    conditions = _read_conditions(fields, notes)
    has_codes, has_conditions = fields.has("onExitCodes"), bool(fields.value.get("onPodConditions"))
    if has_codes and has_conditions:
        both = "specifying both OnExitCodes and OnPodConditions is not supported"
        notes.error(fields.path, f"Invalid value: {both}")
    elif not has_codes and not has_conditions:
        none = "specifying one of OnExitCodes and OnPodConditions is required"
        notes.error(fields.path, f"Invalid value: {none}")
    name, reason = fields.text("name") or "", fields.text("setConditionReason") or ""
    fields.finish()
    if len(notes.problems) > before or action is None:
        return None
    return PodRule(action, exit_codes, container, conditions, name=name, reason=reason)


def _read_action(fields: Fields, notes: ManifestNotes, *, per_index: bool) -> PodAction | None:
    if not fields.raw("action"):
        notes.required(fields.at("action"), f"valid values: {bracketed(PodAction)}")
        return None
    action = one_of(fields, notes, "action", PodAction)
    if action is PodAction.FAIL_INDEX and not per_index:
        notes.invalid(fields.at("action"), action.value, "requires the backoffLimitPerIndex to be set")
    return action


def _read_exit_codes(
    fields: Fields, notes: ManifestNotes, containers: Collection[str]
) -> tuple[ExitCodes | None, str | None]:
    part = fields.nested("onExitCodes")
    if part is None:
        return None, None
    operator = None
    if not part.raw("operator"):
        notes.required(part.at("operator"), f"valid values: {bracketed(ExitCodeOperator)}")
    else:
        operator = one_of(part, notes, "operator", ExitCodeOperator)
    container = part.text("containerName")
    if container is not None and container not in containers:
        allowed = "must be one of the container or initContainer names in the pod template"
        notes.invalid(part.at("containerName"), container, allowed)
    values = _read_values(part, notes, operator)
    part.finish()
    return None if operator is None else ExitCodes(operator, values, ContainerScope.ANY_FAILED), container


def _read_values(part: Fields, notes: ManifestNotes, operator: ExitCodeOperator | None) -> frozenset[int]:
    path = part.at("values")
    values = part.items("values", most=_READ_AT_MOST) or []
    for place, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int):
            part.mistyped(f"values[{place}]", value, "a whole number")
            return frozenset()
    if not values:
        notes.invalid(path, [], "at least one value is required")
    elif len(values) > MOST_VALUES:
        notes.too_many(path, len(values), MOST_VALUES)
    seen: set[int] = set()
    for place, value in enumerate(values):
        if value == 0 and operator is ExitCodeOperator.IN:
            notes.invalid(f"{path}[{place}]", 0, "must not be 0 for the In operator")
        if value in seen:
            notes.duplicate(f"{path}[{place}]", value)
        seen.add(value)
    if any(before > after for before, after in pairwise(values)):
        notes.invalid(path, values, "must be ordered")
    return frozenset(seen)


def _read_conditions(fields: Fields, notes: ManifestNotes) -> frozenset[tuple[str, str]]:
    patterns = fields.mappings("onPodConditions", most=_READ_AT_MOST)
    if len(patterns) > MOST_PATTERNS:
        notes.too_many(fields.at("onPodConditions"), len(patterns), MOST_PATTERNS)
    conditions = set()
    for pattern in patterns:
        type_ = str(pattern.raw("type") or "")
        for message in qualified_name(type_):
            notes.invalid(pattern.at("type"), type_, message)
        # The API server fills in True before it validates.
        status = one_of(pattern, notes, "status", _ConditionStatus) or _ConditionStatus.TRUE
        pattern.finish()
        conditions.add((type_, status.value))
    return frozenset(conditions)


def read_success_rules(
    fields: Fields, notes: ManifestNotes, *, completions: int | None, indexed: bool
) -> tuple[SuccessRule, ...]:
    """Read ``successPolicy``."""
    part = fields.nested("successPolicy")
    if part is None:
        return ()
    if not indexed:
        notes.error(part.path, "Invalid value: requires indexed completion mode")
    path = part.at("rules")
    rules = part.mappings("rules", most=_READ_AT_MOST)
    if not rules:
        notes.required(path, "at least one rules must be specified when the successPolicy is specified")
    if len(rules) > MOST_RULES:
        notes.too_many(path, len(rules), MOST_RULES)
    part.finish()
    return tuple(_read_success_rule(rule, notes, completions or 0) for rule in rules)


def _read_success_rule(fields: Fields, notes: ManifestNotes, completions: int) -> SuccessRule:
    text = fields.raw("succeededIndexes")
    needed = count(fields, notes, "succeededCount")
    fields.finish()
    if text is None and not fields.has("succeededCount"):
        notes.required(fields.path, "at least one of succeededCount or succeededIndexes must be specified")
    indexes = None if text is None else _read_indexes(fields, notes, str(text), completions)
    path = fields.at("succeededCount")
    if needed is not None and needed > completions:
        most = f"must be less than or equal to {completions} (the number of specified completions)"
        notes.invalid(path, needed, most)
    if needed is not None and indexes is not None and needed > len(indexes):
        listed = "the number of indexes in the specified succeededIndexes field"
        notes.invalid(path, needed, f"must be less than or equal to {len(indexes)} ({listed})")
    return SuccessRule(indexes, needed)


def _read_indexes(fields: Fields, notes: ManifestNotes, text: str, completions: int) -> frozenset[int] | None:
    path = fields.at("succeededIndexes")
    if len(text) > LONGEST_INDEXES:
        notes.error(path, f"Too long: may not be more than {LONGEST_INDEXES} bytes")
        return None
    try:
        return parse_indexes(text, completions)
    except ValueError as error:
        notes.invalid(path, text, f"error parsing succeededIndexes: {error}")
        return None
