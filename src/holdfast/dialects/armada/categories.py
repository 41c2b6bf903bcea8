"""Reads Armada's ``errorCategories`` and compiles them into failure categories, in the order of the config."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.dialects.native.category import ArmadaPodAction, KubernetesEventType
from holdfast.dialects.native.matchers import MOST_EXIT_CODES, MOST_NAMES, read_codes
from holdfast.dialects.reading import LONGEST_NAME, LONGEST_PATTERN, Fields, regex_error, shown
from holdfast.domain.category import CategoryRule, FailureCategory
from holdfast.domain.failure import FailureCondition
from holdfast.domain.policy.model import ContainerScope, ExitCodeOperator, ExitCodes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.errors import Problem

MOST_CATEGORIES = 1000
MOST_RULES = 1000
CONDITIONS = (
    FailureCondition.OOM_KILLED.value,
    FailureCondition.EVICTED.value,
    FailureCondition.DEADLINE_EXCEEDED.value,
)
"""The conditions that Armada's executor can observe on a pod."""
MATCHERS = ("onConditions", "onExitCodes", "onTerminationMessage", "onPodError", "onPodEvents")


@dataclass(frozen=True, slots=True)
class ErrorCategories:
    """A compiled configuration."""

    categories: tuple[FailureCategory, ...] = ()
    """In order of evaluation."""
    default_category: str = ""
    default_subcategory: str = ""
    enabled: bool = True


def read_error_categories(
    value: Mapping[str, Any], *, path: str = "errorCategories", problems: list[Problem]
) -> ErrorCategories | None:
    """Read the configuration; ``None`` when anything was wrong."""
    before = len(problems)
    fields = Fields(value, path, problems)
    enabled = fields.flag("enabled", default=True)
    parts = fields.mappings("categories", most=MOST_CATEGORIES)
    categories = tuple(_read_category(part, place) for place, part in enumerate(parts))
    category, subcategory = _short(fields, "defaultCategory"), _short(fields, "defaultSubcategory")
    names = [item.name for item in categories]
    for place, name in enumerate(names):
        if name and name in names[:place]:
            fields.problem(f"categories[{place}].name", f"duplicate category name {shown(name)}")
    fields.finish()
    compiled = ErrorCategories(categories, category, subcategory, enabled=enabled)
    return compiled if len(problems) == before else None


def _short(fields: Fields, name: str, label: str | None = None) -> str:
    value = fields.raw(name)
    if value is None or value == "" or not fields.check_text(name, value):
        return ""
    text = str(value)
    if len(text) > LONGEST_NAME:
        fields.problem(name, f"{label or name} {shown(text)} must be at most {LONGEST_NAME} characters")
    return text


def _read_category(fields: Fields, place: int) -> FailureCategory:
    name = _short(fields, "name", "category name")
    if not name:
        fields.problem("name", "category must have a name")
    rules = tuple(_read_rule(part) for part in fields.mappings("rules", most=MOST_RULES))
    if not fields.value.get("rules"):
        fields.problem("rules", f"category {shown(name)} must have at least one rule")
    action = fields.choice("action", ArmadaPodAction) or ArmadaPodAction.RETAIN
    fields.finish()
    return FailureCategory(name, rules, precedence=place, pod_action=action)


def _read_rule(fields: Fields) -> CategoryRule:
    matchers = [name for name in MATCHERS if fields.value.get(name) not in (None, [])]
    for name in MATCHERS:
        fields.raw(name)
    if len(matchers) != 1:
        message = f"rule must specify {'only one' if matchers else 'one'} of {', '.join(MATCHERS)}"
        fields.problem("", message, allowed=MATCHERS)
    event = _read_events(fields)
    rule = CategoryRule(
        exit_codes=_read_exit_codes(fields),
        conditions=_read_conditions(fields),
        termination_message=_read_regex(fields, "onTerminationMessage"),
        pod_error=_read_regex(fields, "onPodError"),
        pod_event=event[0],
        pod_event_type=event[1],
        pod_event_reason=event[2],
        container_name=fields.text("containerName", longest=LONGEST_NAME)
        if fields.value.get("containerName")
        else None,
        subcategory=_short(fields, "subcategory"),
        hint=fields.text("hint") or "" if fields.value.get("hint") else "",
    )
    for name in ("containerName", "hint"):
        fields.raw(name)
    fields.finish()
    return rule


def _read_conditions(fields: Fields) -> frozenset[str] | None:
    names = fields.texts("onConditions", most=MOST_NAMES)
    for i, name in enumerate(names or ()):
        if name not in CONDITIONS:
            valid = ", ".join(CONDITIONS)
            fields.problem(f"onConditions[{i}]", f"unknown condition {shown(name)}, valid values: {valid}")
    return frozenset(names) if names else None


def _read_exit_codes(fields: Fields) -> ExitCodes | None:
    part = fields.nested("onExitCodes")
    if part is None:
        return None
    operator = part.raw("operator")
    allowed = [option.value for option in ExitCodeOperator]
    if operator not in allowed:
        part.problem("operator", f'invalid exit code operator {shown(operator)}, must be "In" or "NotIn"')
    values = part.items("values", most=MOST_EXIT_CODES)
    if not values:
        part.problem("values", "exit code matcher requires at least one value")
    codes = read_codes(part, values or [])
    part.finish()
    return ExitCodes(ExitCodeOperator(operator), codes, ContainerScope.ANY_FAILED) if operator in allowed else None


def _read_regex(fields: Fields, name: str) -> str | None:
    part = fields.nested(name)
    if part is None:
        return None
    pattern = _compiled(part, "pattern", name)
    part.finish()
    return pattern


def _compiled(part: Fields, field: str, matcher: str) -> str | None:
    pattern = part.text(field, required=True, longest=LONGEST_PATTERN)
    if pattern is not None and (wrong := regex_error(pattern)):
        part.problem(field, f"invalid {matcher} regex {shown(pattern)}: {wrong}", hint="the syntax is RE2's")
        return None
    return pattern


def _read_events(fields: Fields) -> tuple[str | None, str, str]:
    part = fields.nested("onPodEvents")
    if part is None:
        return None, "", ""
    pattern = _compiled(part, "regexp", "onPodEvents")
    kind = part.raw("type")
    allowed = [option.value for option in KubernetesEventType]
    if kind not in allowed:
        part.problem("type", f"invalid onPodEvents type {shown(kind)}", allowed=allowed)
    reason = part.text("reason") if part.value.get("reason") else None
    part.raw("reason")
    part.finish()
    return pattern, str(kind), reason or ""
