"""Names rules that have no name by what they match, so that they keep their name wherever they stand.

Counters follow names. If a rule were named by its index, it would take over another's count as soon as a rule is
inserted above it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from holdfast.domain.record import evolve

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.domain.policy.model import Rule

_LONGEST_WORDS = 40
_DIGITS = 8
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


def name_rules(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Name the rules that have no name; the second of two equal ones ends in ``-2``, and so on."""
    names = {rule.name for rule in rules if rule.name}
    seen: Counter[str] = Counter()
    rules_named = []
    for rule in rules:
        name = rule.name or content_name(rule)
        if not rule.name:
            seen[name] += 1
            while (free := name if seen[name] == 1 else f"{name}-{seen[name]}") in names:
                seen[name] += 1
            name = free
            names.add(name)
        rules_named.append(rule if rule.name else evolve(rule, name=name))
    return tuple(rules_named)


def content_name(rule: Rule) -> str:
    """Name a rule by its matchers and its action; its limit and delays may change."""
    content = _content(rule)
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    words = _NOT_IN_NAMES.sub("-", "-".join(_words(rule)).lower()).strip("-")[:_LONGEST_WORDS].rstrip("-")
    return f"{words or 'any'}-{sha256(text.encode()).hexdigest()[:_DIGITS]}"


def _content(rule: Rule) -> dict[str, Any]:
    codes = rule.exit_codes
    every: dict[str, Any] = {
        "action": rule.action.value,
        "exitCodes": None if codes is None else [codes.operator.value, codes.scope.value, sorted(codes.values)],
        "message": rule.termination_message,
        "log": rule.log,
        "signals": None if rule.signals is None else sorted(rule.signals),
        "container": rule.container_name,
        "init": rule.include_init_containers or None,
        "shorter": rule.ran_shorter_than_s,
        "longer": rule.ran_longer_than_s,
    }
    for key, texts in (
        ("conditions", rule.conditions),
        ("categories", rule.categories),
        ("subcategories", rule.subcategories),
        ("causes", rule.causes),
    ):
        every[key] = None if texts is None else sorted(texts)
    return {key: value for key, value in every.items() if value is not None}


def _words(rule: Rule) -> Iterator[str]:
    """Yield the words of a rule's name."""
    yield from sorted(rule.conditions or ())
    yield from sorted(rule.categories or ())
    yield from sorted(rule.subcategories or ())
    yield from sorted(rule.causes or ())
    if rule.exit_codes is not None:
        yield from ("exit", *map(str, sorted(rule.exit_codes.values)))
    if rule.signals is not None:
        yield from ("signal", *map(str, sorted(rule.signals)))
    if rule.termination_message is not None:
        yield "message"
    if rule.log is not None:
        yield "log"
