"""Retry policies: create, update, delete and get them; and ``create -f``, which takes queues, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from holdfast.cli.armada import queues
from holdfast.cli.armada.failure import Failed
from holdfast.cli.armada.line import ArmadaCommand, Flag, FlagKind
from holdfast.domain.record import evolve

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.api.armada._generated.submit import Queue
    from holdfast.api.armada._generated.submit import RetryPolicy as Message
    from holdfast.cli.armada.invocation import Invocation
    from holdfast.dialects.documents import Document
    from holdfast.domain.policy.model import RetryPolicy
    from holdfast.errors import Problem

SERVICE = "api.RetryPolicyService"
KIND = "RetryPolicy"
NESTED = "armadaproject.io/v1"
VERSIONS = (queues.VERSION, NESTED)
"""The shipped form, and that of the design document."""
_KINDS = (queues.KIND, KIND)
_LIST = "retryPolicies"


def _create(asked: Invocation) -> int:
    for policy in _in_file(asked):
        _put(asked, policy, "creat", "create", "CreateRetryPolicy", "Created")
    return 0


def _update(asked: Invocation) -> int:
    for policy in _in_file(asked):
        _put(asked, policy, "updat", "update", "UpdateRetryPolicy", "Updated")
    return 0


def _in_file(asked: Invocation) -> list[RetryPolicy]:
    """Read the policies of the file, all of them before anything is done with one."""
    from holdfast.cli.armada.files import read_file

    file = asked.flags["file"]
    documents = read_file(file, "file {} error: {}")
    _require_some(documents, file)
    found = []
    for document in documents:
        value = document.value
        if value.get("apiVersion") not in VERSIONS:
            told = f'file {file} error: apiVersion must be "{queues.VERSION}"'
            raise Failed(told, f'  or "{NESTED}", the form of the design document')
        if value.get("kind") != KIND:
            told = f'file {file} error: kind must be "{KIND}"'
            raise Failed(told)
        found += policies_in(document, file, asked.note)
    return found


def _require_some(documents: Sequence[Document], file: str) -> None:
    if not documents:
        told = f"Failed to parse file {file} because: EOF"
        raise Failed(told)


def policies_in(document: Document, file: str, note: Callable[[str], None]) -> list[RetryPolicy]:
    """Read the policy of a document, or the policies of one that ``get retry-policies`` wrote.

    Raises:
        Failed: It is not valid.
    """
    listed = document.value.get(_LIST)
    if not isinstance(listed, list) or "name" in document.value:
        return [_policy_in(document, file, note)]
    for place, one in enumerate(listed):
        if not isinstance(one, dict):
            told = f"file {file} error: {_LIST}[{place}] must be a mapping, not {one!r}"
            raise Failed(told)
    head = {key: one for key, one in document.value.items() if key != _LIST}
    return [_policy_in({**head, **one}, file, note) for one in listed]


def _policy_in(document: Document | Mapping[str, Any], file: str, note: Callable[[str], None]) -> RetryPolicy:
    from holdfast.dialects.documents import Document
    from holdfast.dialects.manifests import read_one
    from holdfast.domain.policy.model import RetryPolicy

    read = read_one(document)
    if not isinstance(read.manifest, RetryPolicy):
        value = document.value if isinstance(document, Document) else document
        told = f"file {file} error: {_told(value, read.problems)}"
        raise Failed(told, *(f"  {one}" for one in read.problems))
    for warning in read.warnings:
        note(f"warning: {file}: {warning}")
    return read.manifest


def _told(value: Mapping[str, Any], problems: Sequence[Problem]) -> str:
    from holdfast.dialects.armada.messages import sentence

    first, metadata = problems[0], value.get("metadata")
    name = value.get("name") or (metadata.get("name") if isinstance(metadata, dict) else None)
    path = first.path.removeprefix("spec.")
    return f"invalid retry policy: {sentence(str(name or ''), evolve(first, path=path))}" if path else first.message


def _put(asked: Invocation, policy: RetryPolicy, begin: str, verb: str, method: str, done: str) -> None:
    otherwise = f"error {begin}ing retry policy {policy.name}: {verb} retry policy request failed: {{}}"
    asked.call(SERVICE, method, _message(policy), otherwise)
    asked.out(f"{done} retry policy {policy.name}")


def _message(policy: RetryPolicy) -> Message:
    from holdfast.api.armada._generated.submit import RetryPolicy as Message
    from holdfast.api.armada.plain import fill
    from holdfast.service.manifests.armada import policy_of

    sent = Message()
    fill(sent, policy_of(policy))
    return sent


def create_resources(asked: Invocation) -> int:
    """Create the queues and retry policies of a file, once all of it has been read."""
    return _each(asked, queues.create, ("creat", "create", "CreateRetryPolicy", "Created"))


def update_resources(asked: Invocation) -> int:
    """Update the queues and retry policies of a file, once all of it has been read."""
    return _each(asked, queues.update, ("updat", "update", "UpdateRetryPolicy", "Updated"))


def _each(
    asked: Invocation, put_queue: Callable[[Invocation, Queue], None], put_policy: tuple[str, str, str, str]
) -> int:
    from holdfast.domain.policy.model import RetryPolicy

    for one in _resources(asked):
        if isinstance(one, RetryPolicy):
            _put(asked, one, *put_policy)
        else:
            put_queue(asked, one)
    return 0


def _resources(asked: Invocation) -> Sequence[Queue | RetryPolicy]:
    """Read what is in the file; nothing of it is to be done if this is to be tried only."""
    from holdfast.cli.armada.files import read_file

    file = asked.flags["file"]
    documents = read_file(file)
    _require_some(documents, file)
    for document in documents:
        version, kind = document.value.get("apiVersion"), document.value.get("kind")
        if version not in VERSIONS:
            _refuse_value(file, f"invalid version: {version}", VERSIONS)
        if kind not in _KINDS:
            _refuse_value(file, f"invalid kind: {kind}", _KINDS)
    found: list[Queue | RetryPolicy] = []
    for document in documents:
        if document.value["kind"] == queues.KIND:
            found.append(queues.queue_in(document.value, file, asked.note))
        else:
            found += policies_in(document, file, asked.note)
    return () if asked.flags["dry-run"] else found


def _refuse_value(file: str, what: str, valid: Sequence[str]) -> NoReturn:
    told = f"Failed to parse file {file} because: {what}. Valid values: [{' '.join(valid)}]"
    raise Failed(told)


def _delete(asked: Invocation) -> int:
    from holdfast.api.armada._generated.submit import RetryPolicyDeleteRequest

    name = asked.words[0]
    otherwise = f"error deleting retry policy {name}: delete retry policy request failed: {{}}"
    asked.call(SERVICE, "DeleteRetryPolicy", RetryPolicyDeleteRequest(name=name), otherwise)
    asked.out(f"Deleted retry policy {name} (or it did not exist)")
    return 0


def _get(asked: Invocation) -> int:
    from holdfast.api.armada._generated.submit import RetryPolicyGetRequest
    from holdfast.dialects.yaml_writing import write_yaml

    name = asked.words[0]
    otherwise = f"error getting retry policy {name}: get retry policy request failed: {{}}"
    found = asked.call(SERVICE, "GetRetryPolicy", RetryPolicyGetRequest(name=name), otherwise)
    asked.document(write_yaml(_document(found)))
    return 0


def _get_all(asked: Invocation) -> int:
    from holdfast.api.armada._generated.submit import RetryPolicyListRequest
    from holdfast.dialects.yaml_writing import write_yaml

    otherwise = "error getting retry policies: get retry policies request failed: {}"
    answer = asked.call(SERVICE, "GetRetryPolicies", RetryPolicyListRequest(), otherwise)
    documents = [_document(one) for one in answer.retry_policies]
    flat = [one for one in documents if one["apiVersion"] == queues.VERSION]
    listed = [{key: part for key, part in one.items() if key not in {"apiVersion", "kind"}} for one in flat]
    parts: list[dict[str, Any]] = [{"apiVersion": queues.VERSION, "kind": KIND, _LIST: listed}]
    parts += [one for one in documents if one["apiVersion"] != queues.VERSION]
    asked.document("---\n".join(map(write_yaml, parts)))
    return 0


def _document(found: Message) -> dict[str, Any]:
    """Write a policy as ``create -f`` takes it: flat, or as the document has it where its limit is inherited."""
    from holdfast.api.armada.plain import plain
    from holdfast.dialects.native.writing import write_policy
    from holdfast.service.manifests.armada import read_policy

    policy = read_policy(plain(found))
    spec = write_policy(policy)
    if policy.retry_limit is None:
        return {"apiVersion": NESTED, "kind": KIND, "metadata": {"name": policy.name}, "spec": spec}
    return {"apiVersion": queues.VERSION, "kind": KIND, "name": policy.name, **spec}


_FILE = Flag("file", FlagKind.TEXT, "The file that describes the retry policy.", "f", required=True)
_NAME, _ALIASES = "<name>", ("retrypolicy",)
CREATE = ArmadaCommand(
    "retry-policy", "Create a retry policy from a file, or replace it", _create, flags=(_FILE,), aliases=_ALIASES
)
UPDATE = ArmadaCommand("retry-policy", "Update a retry policy from a file", _update, flags=(_FILE,), aliases=_ALIASES)
DELETE = ArmadaCommand("retry-policy", "Delete a retry policy", _delete, _NAME, 1, aliases=_ALIASES)
GET = ArmadaCommand("retry-policy", "Show a retry policy, as create -f takes it", _get, _NAME, 1, aliases=_ALIASES)
GET_ALL = ArmadaCommand("retry-policies", "Show all retry policies", _get_all, aliases=("retrypolicies",))
RESOURCE_FLAGS = (
    Flag("file", FlagKind.TEXT, "The file that describes queues or retry policies.", "f", required=True),
    Flag("dry-run", FlagKind.FLAG, "Say what is wrong with the file, and change nothing."),
)
