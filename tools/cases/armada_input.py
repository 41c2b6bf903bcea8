"""Checks what Armada's readers accept and refuse: policies, error categories, action spellings, files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.dialects.armada.categories import read_error_categories
from holdfast.dialects.armada.policy import BARE, FLAT, NESTED, Form, read_action, read_bare_policy
from holdfast.dialects.documents import read_documents
from holdfast.dialects.manifests import read_manifest
from holdfast.errors import HoldfastError, Problem
from tools.cases.results import Mismatch, Skip

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.policy.model import RetryPolicy
    from tools.cases.results import Case

_FORMS = {"head": FLAT, "post-snapshot": FLAT, "design": NESTED}


def form_of(case: Case) -> Form:
    """Pick the reading of fields left out: protobuf's for what is shipped, the document's for the design."""
    return _FORMS.get(str(case.get("status")), BARE)


def read_case_policies(case: Case, problems: list[Problem]) -> list[RetryPolicy]:
    """Read the policies of a case; those that are wrong are left out."""
    found = []
    for place, value in enumerate(case["policy"]["policies"]):
        path = f"policies[{place}]"
        if not isinstance(value, dict):
            problems.append(Problem(path, f"retry policy must not be nil, but a mapping, not {value!r}"))
            continue
        policy = read_bare_policy(value, path=path, problems=problems, form=form_of(case))
        if policy is not None:
            found.append(policy)
    return found


def check_validation(case: Case) -> list[Mismatch]:
    """Check that an input is accepted, or refused for the expected reason."""
    policy: Mapping[str, Any] = case["policy"]
    problems: list[Problem] = []
    if "policies" in policy:
        read_case_policies(case, problems)
    elif "errorCategories" in policy:
        read_error_categories(policy["errorCategories"], problems=problems)
    elif "action" in policy:
        return _check_spelling(policy["action"], case["expect"])
    elif "file" in policy:
        return check_file(case)
    else:
        msg = f"validates {sorted(policy)}, which needs Armada's front door, not built yet"
        raise Skip(msg)
    return _judged(case["expect"], [str(problem) for problem in problems])


def check_file(case: Case) -> list[Mismatch]:
    """Check what a policy file leads to."""
    text = case["policy"].get("file")
    if not isinstance(text, str):
        msg = "no checker carries out command lines"
        raise Skip(msg)
    try:
        for document in read_documents(text):
            if document.value.get("kind") != "RetryPolicy":
                return _judged(case["expect"], ["kind must be RetryPolicy"])
            read_manifest(document)
    except HoldfastError as error:
        return _judged(case["expect"], [str(error)])
    return _judged(case["expect"], [])


def _judged(expect: Mapping[str, Any], messages: list[str]) -> list[Mismatch]:
    got = "Reject" if messages else "Accept"
    if got != expect["action"]:
        return [Mismatch("action", expect["action"], f"{got} {messages}")]
    reason = str(expect.get("reason", ""))
    if messages and not any(reason.casefold() in message.casefold() for message in messages):
        return [Mismatch("reason", reason, messages)]
    return []


def _check_spelling(value: object, expect: Mapping[str, Any]) -> list[Mismatch]:
    action = read_action(value)
    got = "Reject" if action is None else "Accept"
    if got != expect["action"]:
        return [Mismatch("action", expect["action"], got)]
    if action is not None and expect.get("value", action) != action:
        return [Mismatch("value", expect["value"], action.value)]
    return []
