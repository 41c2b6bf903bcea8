"""Reads Armada's retry policies and compiles them into the native model.

Three forms: the design document's ``metadata`` and ``spec`` (``armadaproject.io/v1``), the shipped flat form
(``armadaproject.io/v1beta1``), and a bare mapping. Messages keep upstream's wording, which its users search for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.dialects.native.envelope import close_envelope, open_envelope, take_kind
from holdfast.dialects.native.policy import RuleDialect, read_policy_fields
from holdfast.dialects.reading import Fields, shown
from holdfast.domain.failure import FailureCondition
from holdfast.domain.policy.model import Action, ExitCodeOperator
from holdfast.domain.record import Struct, evolve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.policy.model import RetryPolicy
    from holdfast.errors import Problem


ARMADA_NESTED = "armadaproject.io/v1"
ARMADA_FLAT = "armadaproject.io/v1beta1"
CONDITION_ALIASES = {
    "LeaseReturned": FailureCondition.LAUNCH_FAILED.value,
    "LeaseExpired": FailureCondition.EXECUTOR_LOST.value,
}
"""Armada's names for Holdfast's conditions."""
_ARMADA = RuleDialect(condition_aliases=tuple(CONDITION_ALIASES.items()))
_ACTIONS = ("Fail", "Retry")
_ACTION_PREFIX = "retry_action_"
_ACTION_NUMBERS = {1: Action.FAIL, 2: Action.RETRY}
_MATCHERS = (
    "onCategory",
    "onFailureCategory",
    "onConditions",
    "onExitCodes",
    "onTerminationMessage",
    "onLog",
    "onCauses",
    "onSignals",
    "ranShorterThan",
    "ranLongerThan",
)


class Form(Struct, frozen=True):
    """The meaning of omitted fields in one form of Armada's policy."""

    absent_limit: int | None
    """``retryLimit`` if omitted: 0 in protobuf, inherited in the design document."""
    needs_default_action: bool


NESTED = Form(absent_limit=None, needs_default_action=False)
FLAT = Form(absent_limit=0, needs_default_action=True)
BARE = Form(absent_limit=None, needs_default_action=True)
"""Fields without an envelope, as in the prototypes and their tests."""


def read_action(value: object) -> Action | None:
    """Read an action in any of Armada's spellings: ``Fail``, ``RETRY``, ``RETRY_ACTION_FAIL``, 1, 2."""
    if isinstance(value, int) and not isinstance(value, bool):
        return _ACTION_NUMBERS.get(value)
    if not isinstance(value, str):
        return None
    return {"fail": Action.FAIL, "retry": Action.RETRY}.get(value.lower().removeprefix(_ACTION_PREFIX))


def read_nested_policy_manifest(value: Mapping[str, Any], *, path: str, problems: list[Problem]) -> RetryPolicy | None:
    """Read the design document's form; ``None`` when anything was wrong."""
    before = len(problems)
    opened = open_envelope(Fields(value, path, problems))
    policy = _read_fields(opened.spec, opened.name or "", NESTED) if opened.spec is not None else None
    if opened.metadata is not None:
        close_envelope(evolve(opened, spec=None))
    return policy if len(problems) == before else None


def read_flat_policy_manifest(value: Mapping[str, Any], *, path: str, problems: list[Problem]) -> RetryPolicy | None:
    """Read the shipped form; ``None`` when anything was wrong."""
    return read_bare_policy(value, path=path, problems=problems, form=FLAT)


def read_bare_policy(
    value: Mapping[str, Any], *, path: str, problems: list[Problem], form: Form = BARE
) -> RetryPolicy | None:
    """Read a policy with its name among its fields; ``None`` if anything is wrong."""
    before = len(problems)
    root = Fields(value, path, problems)
    name = root.name("name", required=True)
    take_kind(root)
    rest = {key: item for key, item in value.items() if key not in {"apiVersion", "kind", "name"}}
    policy = _read_fields(Fields(rest, path, problems), name or "", form)
    return policy if len(problems) == before else None


def _read_fields(fields: Fields, name: str, form: Form) -> RetryPolicy:
    """Check what upstream checks, with its messages, then read the rest as a native policy."""
    spec = dict(fields.value)
    if isinstance(rules := spec.get("rules"), list):
        spec["rules"] = [_checked_rule(rule, fields, i) for i, rule in enumerate(rules)]
    spec["defaultAction"] = _default_action(fields, form)
    if spec.get("retryLimit") is None:
        spec["retryLimit"] = form.absent_limit
    native = Fields(spec, fields.path, fields.problems)
    policy = read_policy_fields(native, name, _ARMADA)
    if form is not NESTED:
        take_kind(native)
        native.raw("name")
    native.finish()
    return policy


def _default_action(fields: Fields, form: Form) -> str:
    value = fields.value.get("defaultAction")
    if value is None and not form.needs_default_action:
        return Action.FAIL
    action = read_action(value)
    if action is None:
        complaint = "" if value is None else f"unknown action {shown(value)}: "
        message = f"{complaint}must set a default action (Fail or Retry); defaultAction must be Fail or Retry"
        fields.problem("defaultAction", message, allowed=_ACTIONS)
    return action or Action.FAIL


def _checked_rule(rule: object, fields: Fields, index: int) -> dict[str, Any]:
    """Check one rule with upstream's messages; reported fields are corrected, so that nothing reports them again."""
    reader = Fields(rule if isinstance(rule, dict) else {}, fields.at(f"rules[{index}]"), fields.problems)
    if not isinstance(rule, dict):
        reader.problem("", "rule must not be nil" if rule is None else f"rule must be a mapping, not {shown(rule)}")
        return {"action": Action.FAIL.value}
    checked = dict(rule)
    action = read_action(rule.get("action"))
    if action is None:
        message = f"unknown action {shown(rule['action'])}: " if rule.get("action") is not None else ""
        reader.problem("action", f"{message}action must be Fail or Retry", allowed=_ACTIONS)
    checked["action"] = (action or Action.FAIL).value
    _check_matchers(reader)
    for name, check in (("onExitCodes", _check_exit_codes), ("onTerminationMessage", _check_message)):
        if isinstance(rule.get(name), dict) and not check(reader):
            del checked[name]
    return checked


def _check_matchers(rule: Fields) -> None:
    if not any(rule.value.get(name) not in (None, "", [], {}) for name in _MATCHERS):
        message = (
            "must have at least one match field (on_category must be set, or another at least one matcher must be set)"
        )
        rule.problem("", message, allowed=_MATCHERS)
    elif rule.has("onSubcategory") and not (rule.has("onCategory") or rule.has("onFailureCategory")):
        rule.problem("onSubcategory", "onSubcategory requires onCategory to be set: on_category must be set")


def _check_exit_codes(rule: Fields) -> bool:
    codes = rule.value["onExitCodes"]
    operator, values = codes.get("operator"), codes.get("values")
    allowed = [option.value for option in ExitCodeOperator]
    sound = True
    if operator not in allowed:
        message = f'OnExitCodes operator must be "In" or "NotIn", got {shown(operator)}'
        rule.problem("onExitCodes.operator", message, allowed=allowed)
        sound = False
    if not values:
        rule.problem("onExitCodes.values", "OnExitCodes values must not be empty")
        sound = False
    return sound


def _check_message(rule: Fields) -> bool:
    if rule.value["onTerminationMessage"].get("pattern"):
        return True
    rule.problem("onTerminationMessage.pattern", "OnTerminationMessage pattern must not be empty")
    return False
