"""Writes the built-in policy's rules, and the fields of a session's retry policy."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from holdfast.domain.failure_catalogue import BUILT_IN
from holdfast.domain.policy.builtin import INFRASTRUCTURE
from holdfast.domain.policy.decide import delay_s
from holdfast.domain.policy.model import Backoff
from holdfast.domain.sessions.policy import SessionRetryPolicy, compiled, document, effective
from holdfast.domain.units import format_duration
from tools.docs.source import definitions, markdown, member_docs, table

if TYPE_CHECKING:
    from holdfast.domain.policy.model import Rule


def built_in() -> str:
    """List the rules with what they inherit."""
    head = ["Rule", "Conditions", "Limit", "First delay", "At most", "Avoids the node"]
    return table(head, [_row(rule) for rule in INFRASTRUCTURE.rules])


def _row(rule: Rule) -> list[object]:
    backoff = rule.backoff or INFRASTRUCTURE.backoff or Backoff()
    return [
        f"`{INFRASTRUCTURE.name}/{rule.name}`",
        ", ".join(f"`{condition}`" for condition in sorted(rule.conditions or ())),
        INFRASTRUCTURE.retry_limit if rule.retry_limit is None else rule.retry_limit,
        format_duration(backoff.initial_s) if backoff.initial_s else "none",
        format_duration(backoff.max_s) if backoff.initial_s and backoff.max_s else "-",
        rule.anti_affinity or INFRASTRUCTURE.anti_affinity,
    ]


def failure_catalogue() -> str:
    """List every kind of failure that the catalogue tells apart; ``holdfast categories`` has the hints."""
    return definitions(
        (f"`{category.name}`", ", ".join(f"`{rule.subcategory}`" for rule in category.rules)) for category in BUILT_IN
    )


def session_fields() -> str:
    """List the fields of a session's retry policy with what applies where no document sets them."""
    defaults, docs = document(effective()), member_docs(SessionRetryPolicy)
    rows = [[f"`{name}`", markdown(docs[name]), _default(value)] for name, value in defaults.items()]
    return table(["Field", "Meaning", "Default"], rows)


_EXAMPLES: tuple[dict[str, Any], ...] = (
    {"backoff": "exponential"},
    {"backoff": "exponential", "max_retry_delay": None},
    {"backoff": "exponential", "backoff_multiplier": 0.5},
)


def session_delays() -> str:
    """Show the delays of some policies without jitter."""
    rows = []
    for example in _EXAMPLES:
        (rule,) = compiled(effective(example, {"jitter": "none"})).rules
        delays = [delay_s(rule.backoff or Backoff(), n, seed="") for n in range(1, 9)]
        rows.append([f"`{json.dumps(example)}`", ", ".join(map(format_duration, delays))])
    return table(["Fields", "Delays without jitter"], rows)


def _default(value: object) -> str:
    return "all of them" if isinstance(value, list) else f"`{json.dumps(value)}`"
