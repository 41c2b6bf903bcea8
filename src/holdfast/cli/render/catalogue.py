"""Tables of queues, retry policies, failure categories, notifiers, nodes, GPUs and settings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from holdfast.cli.render.words import age, pairs, when
from holdfast.domain.units import format_amount

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.cli.render.words import Table
    from holdfast.wire.catalogue import DeviceView, NodeView, SettingsView
    from holdfast.wire.entries import CategoryView, EntryView, NotifierView, PolicyView, QueueView


_WORD = re.compile("(?<=[a-z])(?=[A-Z])")
"""The place between two words of a field's name."""


def _text(value: object, absent: str = "") -> str:
    if value is None:
        return absent
    return ",".join(str(item) for item in value) if isinstance(value, list) else str(value)


def entry_table(entries: Sequence[EntryView]) -> Table:
    """Tabulate entries of a kind that has no table of its own, with the fields of their manifests."""
    fields = list(dict.fromkeys(name for entry in entries for name in entry.spec))
    columns = ("NAME", *(_WORD.sub(" ", name).upper() for name in fields), "SUBMITTED BY")
    return columns, [
        (entry.name, *(_cell(entry.spec.get(name, "")) for name in fields), entry.submitted_by) for entry in entries
    ]


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ",".join(f"{name}={_cell(part)}" for name, part in value.items())
    return _text(value, "null")


def queue_table(queues: Sequence[QueueView]) -> Table:
    """Tabulate queues."""
    columns = ("NAME", "DOMAIN", "WEIGHT", "PAUSED", "MAX JOBS", "RETRY POLICIES")
    rows = [
        (
            queue.name,
            _text(queue.spec.get("domain"), "default"),
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
    columns = ("NAME", "FROM", "PRECEDENCE", "RULES", "SUBCATEGORIES", "HINT")
    rows = [
        (
            category.name,
            "built-in" if category.built_in else "you",
            _text(category.spec.get("precedence"), "0"),
            str(len(category.spec.get("rules") or ())),
            ", ".join(dict.fromkeys(rule["subcategory"] for rule in _rules(category) if rule.get("subcategory"))),
            _text(category.spec.get("hint")),
        )
        for category in categories
    ]
    return columns, rows


def kind_table(categories: Sequence[CategoryView]) -> Table:
    """Tabulate each kind of failure, in order of evaluation, with advice."""
    rows = [
        (
            "/".join(filter(None, (category.name, rule.get("subcategory")))),
            "built-in" if category.built_in else "you",
            _text(rule.get("suggestedAction")),
            _text(rule.get("hint"), _text(category.spec.get("hint"))),
        )
        for category in categories
        for rule in _rules(category)
    ]
    return ("FAILURE", "FROM", "SUGGESTED", "HINT"), rows


def _rules(category: CategoryView) -> Sequence[dict[str, Any]]:
    return category.spec.get("rules") or ()


def notifier_table(notifiers: Sequence[NotifierView]) -> Table:
    """Tabulate notifiers."""
    rows = [(notifier.name, str(notifier.spec.get("type")), _where(notifier.spec)) for notifier in notifiers]
    return ("NAME", "TYPE", "WHERE"), rows


def _where(spec: Mapping[str, Any]) -> str:
    url = spec.get("url")
    if isinstance(url, dict):
        return "secret, in " + " ".join(f"{place} {name}" for place, name in url.items())
    words = spec.get("command") or spec.get("to") or ()
    return str(url) if url else (" " if spec.get("command") else ", ").join(words)


def node_table(nodes: Sequence[NodeView], *, now_s: float) -> Table:
    """Tabulate nodes with their usage; ages are counted to ``now_s``."""
    columns = ("NAME", "STATE", "CPU", "MEMORY", "GPU", "RUNS", "ENGINE", "SEEN")
    rows = [
        (node.name, node.state, *_usage(node), str(node.runs), node.engine, age(node.seen_at, now_s)) for node in nodes
    ]
    return columns, rows


def _usage(node: NodeView) -> tuple[str, str, str]:
    """Write how much of a node's cores, memory and GPUs is in use, and how much it has."""
    used, capacity = node.used, node.capacity
    return (f"{used.cpu}/{capacity.cpu}", f"{used.memory}/{capacity.memory}", f"{used.gpu:g}/{capacity.gpu:g}")


def wide_node_table(nodes: Sequence[NodeView]) -> Table:
    """Tabulate nodes in full."""
    columns = ("NAME", "STATE", "EXECUTOR", "CPU", "MEMORY", "GPU", "RUNS", "ENGINE", "LABELS", "SEEN", "REASON")
    rows = [
        (
            node.name,
            node.state,
            node.executor,
            *_usage(node),
            str(node.runs),
            node.engine,
            pairs(node.labels),
            when(node.seen_at),
            node.reason,
        )
        for node in nodes
    ]
    return columns, rows


def device_table(devices: Sequence[DeviceView], *, wide: bool = False) -> Table:
    """Tabulate GPUs with the jobs that have them; ``wide`` adds their places."""
    columns = ("DEVICE", "TYPE", "MEMORY", "STATE", "USED", "JOBS", "REASON")
    rows = [
        (
            device.id,
            device.type,
            "" if device.memory == "0" else device.memory,
            device.state,
            f"{device.used:g}",
            ",".join(dict.fromkeys(run.name for run in device.runs)),
            device.reason,
            *((device.node, device.executor, str(device.index)) if wide else ()),
        )
        for device in devices
    ]
    return (*columns, "NODE", "EXECUTOR", "INDEX") if wide else columns, rows


def settings_table(settings: SettingsView) -> Table:
    """Tabulate the settings, one a row."""
    backoff = ", ".join(f"{key} {value}" for key, value in settings.default_backoff.items())
    rows = [
        ("globalMaxRetries", _text(settings.global_max_retries, "unlimited")),
        ("defaultBackoff", backoff),
        ("defaultPolicyName", _text(settings.default_policy_name, "none")),
        ("retryShare", f"{settings.retry_share:g}"),
        ("builtinPolicy", settings.builtin_policy),
        *((f"fluster.{name}", str(value)) for name, value in settings.fluster.items()),
        ("sessionRetries", _cell(settings.session_retries)),
        *((f"sessionRetryDefault.{name}", _cell(value)) for name, value in settings.session_retry_default.items()),
        *(
            (f"handlerLimits.{handler}.{name}", _text(value, "unlimited"))
            for handler, limits in settings.handler_limits.items()
            for name, value in limits.items()
        ),
    ]
    rows += [(f"access.{role}", ", ".join(names)) for role, names in settings.access.items()]
    rows.append(("othersSee", settings.others_see))
    rows += [(f"resources.{name}", format_amount(round(amount * 1000))) for name, amount in settings.resources.items()]
    return ("SETTING", "VALUE"), rows
