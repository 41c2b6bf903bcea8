"""Retry policies: create, update, read and delete them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import grpc

from holdfast.api.armada._generated import submit
from holdfast.api.armada.calls import answers
from holdfast.api.armada.plain import fill, plain
from holdfast.api.armada.refusals import ArmadaRefusal, refuse
from holdfast.errors import InvalidPolicy, NotFound
from holdfast.service.manifests import armada
from holdfast.service.operations.catalogue import Policies

if TYPE_CHECKING:
    from holdfast.api.connect.calls import Rpc
    from holdfast.domain.policy.model import RetryPolicy

_SERVICE = "api.RetryPolicyService"


@answers("CreateRetryPolicy", _SERVICE)
def create_policy(asked: Rpc, sent: submit.RetryPolicy) -> None:
    """Create a policy, or replace the one of its name, as upstream does."""
    Policies(asked.backend.store).put(asked.caller, _read(sent))


@answers("UpdateRetryPolicy", _SERVICE)
def update_policy(asked: Rpc, sent: submit.RetryPolicy) -> None:
    """Replace a policy, which must be there."""
    policy = _read(sent)
    try:
        Policies(asked.backend.store).put(asked.caller, policy, create=False)
    except NotFound as error:
        told = f'error: could not find retry policy "{sent.name}"'
        raise ArmadaRefusal(grpc.StatusCode.NOT_FOUND, told) from error


@answers("DeleteRetryPolicy", _SERVICE)
def delete_policy(asked: Rpc, sent: submit.RetryPolicyDeleteRequest) -> None:
    """Delete a policy and detach it from the queues that name it; one that is not there is deleted already."""
    _require_name(sent.name)
    with suppress(NotFound):
        Policies(asked.backend.store).delete(asked.caller, sent.name, detach=True)


@answers("GetRetryPolicy", _SERVICE)
def get_policy(asked: Rpc, sent: submit.RetryPolicyGetRequest) -> submit.RetryPolicy:
    """Read a policy."""
    _require_name(sent.name)
    try:
        return _message(Policies(asked.backend.store).get(asked.caller, sent.name))
    except NotFound as error:
        told = f'error: could not find retry policy "{sent.name}"'
        raise ArmadaRefusal(grpc.StatusCode.NOT_FOUND, told) from error


@answers("GetRetryPolicies", _SERVICE)
def get_policies(asked: Rpc, _sent: submit.RetryPolicyListRequest) -> submit.RetryPolicyList:
    """Read all policies, by name."""
    policies = Policies(asked.backend.store).list(asked.caller)
    return submit.RetryPolicyList(retry_policies=map(_message, policies))


def _require_name(name: str) -> None:
    if not name:
        told = "retry policy name must not be empty"
        refuse(told)


def _read(sent: submit.RetryPolicy) -> RetryPolicy:
    try:
        return armada.read_policy(plain(sent))
    except InvalidPolicy as error:
        told = f"invalid retry policy: {error.message}"
        refuse(told, error.problems)


def _message(policy: RetryPolicy) -> submit.RetryPolicy:
    found = submit.RetryPolicy()
    fill(found, armada.policy_of(policy))
    return found
