"""Reads and writes failure categories."""

from __future__ import annotations

from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, Any

from holdfast.dialects.native.envelope import Opened, close_envelope, take_kind
from holdfast.dialects.native.matchers import (
    never_matched,
    read_conditions,
    read_exit_codes,
    read_pattern,
    write_exit_codes,
)
from holdfast.dialects.reading import LONGEST_NAME, Fields, shown
from holdfast.domain.category import CategoryRule, FailureCategory
from holdfast.domain.policy.model import Action, ContainerScope

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.errors import Problem

MOST_RULES = 1000
MOST_PRECEDENCE = 1_000_000
MATCHERS = ("onExitCodes", "onConditions", "onTerminationMessage", "onLog", "onPodError", "onPodEvents")


class KubernetesEventType(StrEnum):
    """The two types of Kubernetes events."""

    NORMAL = "Normal"
    WARNING = "Warning"


class ArmadaPodAction(StrEnum):
    """What Armada's executor does with the pod."""

    RETAIN = "Retain"
    DELETE = "Delete"


def read_category_manifest(value: Mapping[str, Any], *, path: str, problems: list[Problem]) -> FailureCategory | None:
    """Read a failure category; ``None`` when anything was wrong."""
    before = len(problems)
    root = Fields(value, path, problems)
    take_kind(root)
    metadata, spec = root.nested("metadata", required=True), root.nested("spec", required=True)
    root.finish()
    name = read_category_name(metadata, "name", required=True) if metadata else None
    if spec is None:
        return None
    category = FailureCategory(
        name=name or "",
        rules=tuple(_read_rule(part) for part in spec.mappings("rules", most=MOST_RULES)),
        precedence=spec.integer("precedence", low=-MOST_PRECEDENCE, high=MOST_PRECEDENCE) or 0,
        hint=spec.text("hint") or "",
        pod_action=spec.choice("podAction", ArmadaPodAction) or ArmadaPodAction.RETAIN,
    )
    if not spec.value.get("rules"):
        spec.problem("rules", "must have at least one rule")
    close_envelope(Opened(metadata, spec, name))
    return category if len(problems) == before else None


def category_warnings(category: FailureCategory, path: str) -> list[Problem]:
    """List what is legal but dubious: what no failure has."""
    rules = enumerate(category.rules)
    warnings = (never_matched(rule.exit_codes, rule.container_name, f"{path}.rules[{i}]") for i, rule in rules)
    return list(chain.from_iterable(warnings))


def read_category_name(fields: Fields, field: str, *, required: bool = False) -> str | None:
    """Read a category's or subcategory's name: printable, at most 63 characters, no spaces around."""
    value = fields.text(field, required=required)
    if value is None:
        return None
    if len(value) > LONGEST_NAME:
        fields.problem(field, f"{shown(value)} must be at most {LONGEST_NAME} characters")
    elif not value.isprintable() or value != value.strip() or "/" in value:
        fields.problem(field, f"{shown(value)} is not a valid name", hint="letters, digits, '-', '_' and '.' are safe")
    return value


def _read_rule(fields: Fields) -> CategoryRule:
    event = read_pod_event(fields)
    rule = CategoryRule(
        exit_codes=read_exit_codes(fields, scope=ContainerScope.ANY_FAILED),
        conditions=read_conditions(fields),
        termination_message=read_pattern(fields, "onTerminationMessage"),
        log=read_pattern(fields, "onLog"),
        pod_error=read_pattern(fields, "onPodError"),
        pod_event=event[0],
        pod_event_type=event[1],
        pod_event_reason=event[2],
        container_name=fields.text("containerName", longest=LONGEST_NAME),
        subcategory=read_category_name(fields, "subcategory") or "",
        hint=fields.text("hint") or "",
        suggests=fields.choice("suggestedAction", Action),
    )
    if not any(fields.has(name) for name in MATCHERS):
        fields.problem("", "must have at least one matcher", allowed=MATCHERS)
    fields.finish()
    return rule


def read_pod_event(fields: Fields) -> tuple[str | None, str, str]:
    """Read ``onPodEvents: {regexp, type, reason}`` into pattern, type and reason."""
    part = fields.nested("onPodEvents")
    if part is None:
        return None, "", ""
    pattern = part.pattern("regexp")
    kind = part.choice("type", KubernetesEventType, required=True)
    reason = part.text("reason") or ""
    part.finish()
    return pattern, kind or "", reason


def write_category(category: FailureCategory) -> dict[str, Any]:
    """Write a category's ``spec``; it reads back equal."""
    spec: dict[str, Any] = {"precedence": category.precedence, "rules": [_write_rule(rule) for rule in category.rules]}
    if category.hint:
        spec["hint"] = category.hint
    if category.pod_action != ArmadaPodAction.RETAIN:
        spec["podAction"] = str(category.pod_action)
    return spec


def _write_rule(rule: CategoryRule) -> dict[str, Any]:
    written: dict[str, Any] = {}
    if rule.exit_codes is not None:
        written["onExitCodes"] = write_exit_codes(rule.exit_codes)
    if rule.conditions is not None:
        written["onConditions"] = sorted(rule.conditions)
    patterns = {"onTerminationMessage": rule.termination_message, "onLog": rule.log, "onPodError": rule.pod_error}
    written |= {field: {"pattern": pattern} for field, pattern in patterns.items() if pattern is not None}
    if rule.pod_event is not None:
        written["onPodEvents"] = {"regexp": rule.pod_event, "type": str(rule.pod_event_type)}
        if rule.pod_event_reason:
            written["onPodEvents"]["reason"] = rule.pod_event_reason
    texts = {"containerName": rule.container_name, "subcategory": rule.subcategory, "hint": rule.hint}
    if rule.suggests is not None:
        texts["suggestedAction"] = rule.suggests.value
    return written | {field: text for field, text in texts.items() if text}
