"""What tables say of queues, retry policies, failure categories, nodes and settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.cli.render.words import pairs, when

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.render.words import Table
    from holdfast.wire.catalogue import CategoryView, NodeView, PolicyView, QueueView, SettingsView


def _text(value: object, absent: str = "") -> str:
    if value is None:
        return absent
    return ",".join(str(item) for item in value) if isinstance(value, list) else str(value)


def queue_table(queues: Sequence[QueueView]) -> Table:
    """Tabulate queues."""
    columns = ("NAME", "WEIGHT", "PAUSED", "MAX JOBS", "RETRY POLICIES")
    rows = [
        (
            queue.name,
            _text(queue.spec.get("weight"), "1"),
            "yes" if queue.spec.get("paused") else "no",
            _text(queue.spec.get("maxRunningJobs"), "unlimited"),
            _text(queue.spec.get("retryPolicies")),
        )
        for queue in queues
    ]
    return columns, rows


def policy_table(policies: Sequence[PolicyView]) -> Table:
    """Tabulate retry policies."""
    columns = ("NAME", "REVISION", "LIMIT", "DEFAULT", "RULES")
    rows = [
        (
            policy.name,
            str(policy.revision),
            _text(policy.spec.get("retryLimit"), "inherited"),
            _text(policy.spec.get("defaultAction"), "Fail"),
            ", ".join(_rule(place, rule) for place, rule in enumerate(policy.spec.get("rules") or ())),
        )
        for policy in policies
    ]
    return columns, rows


def _rule(place: int, rule: dict[str, Any]) -> str:
    return f"{rule.get('name') or f'rule{place}'}:{rule.get('action')}"


def category_table(categories: Sequence[CategoryView]) -> Table:
    """Tabulate failure categories, in order of evaluation."""
    columns = ("NAME", "PRECEDENCE", "RULES", "HINT")
    rows = [
        (
            category.name,
            _text(category.spec.get("precedence"), "0"),
            str(len(category.spec.get("rules") or ())),
            _text(category.spec.get("hint")),
        )
        for category in categories
    ]
    return columns, rows


def node_table(nodes: Sequence[NodeView]) -> Table:
    """Tabulate nodes with what is used of them."""
    columns = ("NAME", "EXECUTOR", "CPU", "MEMORY", "GPU", "RUNS", "ENGINE", "LABELS", "SEEN")
    rows = [
        (
            node.name,
            node.executor,
            f"{node.used.cpu}/{node.capacity.cpu}",
            f"{node.used.memory}/{node.capacity.memory}",
            f"{node.used.gpu}/{node.capacity.gpu}",
            str(node.runs),
            node.engine,
            pairs(node.labels),
            when(node.seen_at),
        )
        for node in nodes
    ]
    return columns, rows


def settings_table(settings: SettingsView) -> Table:
    """Tabulate what the operator set, one setting a row."""
    backoff = ", ".join(f"{key} {value}" for key, value in settings.default_backoff.items())
    rows = [
        ("globalMaxRetries", _text(settings.global_max_retries, "unlimited")),
        ("defaultBackoff", backoff),
        ("defaultPolicyName", _text(settings.default_policy_name, "none")),
        *(
            (f"handlerLimits.{handler}.{name}", _text(value, "unlimited"))
            for handler, limits in settings.handler_limits.items()
            for name, value in limits.items()
        ),
    ]
    return ("SETTING", "VALUE"), rows
