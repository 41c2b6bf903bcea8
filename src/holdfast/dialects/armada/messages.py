"""Converts retry policies to and from the messages of Armada's API: the shipped fields, and those of the document.

In the shipped field a limit of 0 and a missing one are the same and mean never; a separate field says that the limit is
inherited. Fields that neither has are kept as JSON, so that a policy survives reading and writing.
Source: Armada's document, "RetryPolicy Resource"; the shipped validation of policies, whose messages these are.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from holdfast.dialects.armada.policy import BARE, FLAT, read_bare_policy
from holdfast.dialects.native.writing import write_policy
from holdfast.domain.policy.model import Action
from holdfast.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.policy.model import RetryPolicy

LONGEST_NAME = 63
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_ACTIONS = {Action.FAIL.value: 1, Action.RETRY.value: 2}
_RULE = (
    ("name", "name"),
    ("conditions", "onConditions"),
    ("exitCodes", "onExitCodes"),
    ("terminationMessage", "onTerminationMessage"),
    ("onFailureCategory", "onFailureCategory"),
    ("containerName", "containerName"),
    ("includeInitContainers", "includeInitContainers"),
    ("retryLimit", "retryLimit"),
    ("antiAffinity", "antiAffinity"),
    ("onSubcategory", "onSubcategory"),
)
"""Fields of a rule in the API and in a manifest."""
_BACKOFF = ("initialDelay", "maxDelay", "multiplier")
_RULE_PATH = re.compile(r"rules\[(\d+)\]\.?(.*)")


def read_policy_message(value: Mapping[str, Any], problems: list[Problem]) -> RetryPolicy | None:
    """Read a policy; ``None`` when anything was wrong."""
    name = str(value.get("name") or "")
    message = _name_told(name)
    if message is not None:
        problems.append(Problem("name", message))
        return None
    kept = _kept(value.get("nativeSpec"))
    spec: dict[str, Any] = {**kept.get("spec", {}), "name": name, "defaultAction": value.get("defaultAction")}
    spec["rules"] = [_rule(rule, kept.get("rules", {})) for rule in value.get("rules") or []]
    if "backoff" in value:
        spec["backoff"] = {**(spec.get("backoff") or {}), **value["backoff"]}
    if "antiAffinity" in value:
        spec["antiAffinity"] = value["antiAffinity"]
    inherited = value.get("inheritRetryLimit") is True
    if not inherited:
        spec["retryLimit"] = value.get("retryLimit", 0)
    return read_bare_policy(spec, path="", problems=problems, form=BARE if inherited else FLAT)


def _kept(text: object) -> dict[str, Any]:
    try:
        kept = json.loads(str(text or "{}"))
    except ValueError:
        return {}
    return kept if isinstance(kept, dict) else {}


def _name_told(name: str) -> str | None:
    if not name:
        return "retry policy name must not be empty"
    if len(name) > LONGEST_NAME:
        return f'retry policy name "{name}" must be at most {LONGEST_NAME} characters'
    if not _NAME.fullmatch(name):
        return (
            f"retry policy name \"{name}\" is invalid: must consist of lowercase alphanumeric characters or '-', and "
            "must start and end with an alphanumeric character"
        )
    return None


def _rule(value: Mapping[str, Any], kept: Mapping[str, Any]) -> dict[str, Any]:
    rule: dict[str, Any] = {**kept.get(str(value.get("name") or ""), {}), "action": value.get("action")}
    for ours, theirs in _RULE:
        if ours in value:
            rule[theirs] = value[ours]
    if category := value.get("onCategory"):
        rule["onCategory"] = [category]
    if "onSubcategory" in rule and isinstance(rule["onSubcategory"], str):
        rule["onSubcategory"] = [rule["onSubcategory"]]
    if "backoff" in value:
        rule["backoff"] = {**(rule.get("backoff") or {}), **value["backoff"]}
    if mutate := value.get("mutate"):
        rule["mutate"] = _mutation(mutate, rule.get("mutate") or {})
    return rule


def _mutation(value: Mapping[str, Any], kept: Mapping[str, Any]) -> dict[str, Any]:
    mutation: dict[str, Any] = {**kept}
    if (value.get("affinity") or {}).get("avoidSameNode"):
        mutation["affinity"] = {"avoidSameNode": True}
    memory = (value.get("resources") or {}).get("memory")
    if memory is not None:
        before = (mutation.get("resources") or {}).get("memory") or {}
        mutation["resources"] = {"memory": {**before, **memory}}
    return mutation


def sentence(name: str, problem: Problem) -> str:
    """Word a problem of a policy as upstream does."""
    match = _RULE_PATH.fullmatch(problem.path)
    if match is None:
        if problem.path == "defaultAction":
            return f'retry policy "{name}" must set a default action (Fail or Retry)'
        return problem.message if problem.path == "name" else f'retry policy "{name}" {problem.path}: {problem.message}'
    index, rest = match.groups()
    if rest == "action":
        message = "action must be Fail or Retry"
    elif not rest:
        message = "on_category must be set" if "on_category must be set" in problem.message else problem.message
    else:
        message = f"{rest}: {problem.message}"
    return f'retry policy "{name}" rule {index}: {message}'


def write_policy_message(policy: RetryPolicy) -> dict[str, Any]:
    """Write a policy; it reads back equal."""
    spec = write_policy(policy)
    written: dict[str, Any] = {"name": policy.name, "defaultAction": _ACTIONS[spec.pop("defaultAction")]}
    if policy.retry_limit is None:
        written["inheritRetryLimit"] = True
    else:
        written["retryLimit"] = spec.pop("retryLimit")
    rules, kept = [], {}
    for rule in spec.pop("rules", ()):
        message, rest = _rule_message(rule)
        rules.append(message)
        if rest:
            kept[rule["name"]] = rest
    written["rules"] = rules
    if "backoff" in spec:
        written["backoff"], spec["backoff"] = _split(spec["backoff"], _BACKOFF)
    if "antiAffinity" in spec:
        written["antiAffinity"] = spec.pop("antiAffinity")
    left = {key: value for key, value in (("spec", _without_empty(spec)), ("rules", kept)) if value}
    if left:
        written["nativeSpec"] = json.dumps(left, sort_keys=True)
    return written


def _rule_message(rule: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a rule as the API's fields, and the rest without a field."""
    rest = {key: value for key, value in rule.items() if key not in {"name", "action"}}
    message: dict[str, Any] = {"name": rule["name"]}
    if rule["action"] in _ACTIONS:
        message["action"] = _ACTIONS[rule["action"]]
    else:
        message["action"], rest["action"] = _ACTIONS[Action.RETRY.value], rule["action"]
    categories: Sequence[str] = rest.pop("onCategory", ())
    if len(categories) == 1:
        message["onCategory"] = categories[0]
    elif categories:
        message["onFailureCategory"] = list(categories)
    subcategories: Sequence[str] = rest.get("onSubcategory", ())
    if len(subcategories) == 1:
        message["onSubcategory"] = rest.pop("onSubcategory")[0]
    for ours, theirs in _RULE:
        if ours not in message and theirs in rest and theirs != "onSubcategory":
            message[ours] = rest.pop(theirs)
    if "backoff" in rest:
        message["backoff"], rest["backoff"] = _split(rest["backoff"], _BACKOFF)
    if "mutate" in rest:
        message["mutate"], rest["mutate"] = _mutation_message(rest["mutate"])
    return message, _without_empty(rest)


def _mutation_message(mutation: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    message = {key: value for key, value in mutation.items() if key == "affinity"}
    memory = (mutation.get("resources") or {}).get("memory")
    if memory is None:
        return message, {}
    shown, rest = _split(memory, ("factor", "static"))
    if "static" in shown:
        shown["static"] = str(shown["static"])
    return {**message, "resources": {"memory": shown}}, {"resources": {"memory": rest}} if rest else {}


def _split(value: Mapping[str, Any], names: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    shown = {key: str(part) if key.endswith("Delay") else part for key, part in value.items() if key in names}
    return shown, {key: part for key, part in value.items() if key not in names}


def _without_empty(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: part for key, part in value.items() if part not in ({}, [], None)}
