"""Retry policies: create, update, read and delete them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.api.armada._generated import submit
from holdfast.api.armada.calls import CALLS
from holdfast.api.armada.mapping import fill, plain
from holdfast.api.connect.refusals import Code, Rejected, refuse
from holdfast.errors import InvalidPolicy, NotFound
from holdfast.service.manifests import armada
from holdfast.service.operations.catalogue import Policies

if TYPE_CHECKING:
    from holdfast.api.connect.calls import Rpc
    from holdfast.domain.policy.model import RetryPolicy

_SERVICE = "api.RetryPolicyService"


@CALLS.answers("CreateRetryPolicy", _SERVICE)
def create_policy(call: Rpc, message: submit.RetryPolicy) -> None:
    """Create a policy or replace it, as upstream does."""
    Policies(call.backend.store).put(call.caller, _read(message))


@CALLS.answers("UpdateRetryPolicy", _SERVICE)
def update_policy(call: Rpc, message: submit.RetryPolicy) -> None:
    """Replace a policy, which must exist."""
    policy = _read(message)
    try:
        Policies(call.backend.store).put(call.caller, policy, create=False)
    except NotFound as error:
        detail = f'error: could not find retry policy "{message.name}"'
        raise Rejected(Code.NOT_FOUND, detail) from error


@CALLS.answers("DeleteRetryPolicy", _SERVICE)
def delete_policy(call: Rpc, request: submit.RetryPolicyDeleteRequest) -> None:
    """Delete a policy and detach it from the queues that name it; a missing one counts as deleted."""
    _require_name(request.name)
    with suppress(NotFound):
        Policies(call.backend.store).delete(call.caller, request.name, detach=True)


@CALLS.answers("GetRetryPolicy", _SERVICE)
def get_policy(call: Rpc, request: submit.RetryPolicyGetRequest) -> submit.RetryPolicy:
    """Read a policy."""
    _require_name(request.name)
    try:
        return _message(Policies(call.backend.store).get(call.caller, request.name))
    except NotFound as error:
        message = f'error: could not find retry policy "{request.name}"'
        raise Rejected(Code.NOT_FOUND, message) from error


@CALLS.answers("GetRetryPolicies", _SERVICE)
def get_policies(call: Rpc, _request: submit.RetryPolicyListRequest) -> submit.RetryPolicyList:
    """Read all policies, by name."""
    policies = Policies(call.backend.store).list(call.caller)
    return submit.RetryPolicyList(retry_policies=map(_message, policies))


def _require_name(name: str) -> None:
    if not name:
        message = "retry policy name must not be empty"
        refuse(message)


def _read(message: submit.RetryPolicy) -> RetryPolicy:
    try:
        return armada.read_policy(plain(message))
    except InvalidPolicy as error:
        detail = f"invalid retry policy: {error.message}"
        refuse(detail, error.problems)


def _message(policy: RetryPolicy) -> submit.RetryPolicy:
    message = submit.RetryPolicy()
    fill(message, armada.policy_of(policy))
    return message
