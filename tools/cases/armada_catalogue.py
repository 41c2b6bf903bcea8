"""Checks Armada's cases of storage and cache by the door's own calls, on a store, and by the controller's catalogue."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any

from holdfast.api.armada import policies, queues
from holdfast.api.armada._generated import submit
from holdfast.api.connect.calls import Rpc
from holdfast.api.connect.refusals import Rejected
from holdfast.app.time import SortableIds, SystemClock
from holdfast.controller.policy_catalog import PolicyCatalog
from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Caller
from holdfast.domain.policy.model import RetryPolicy
from holdfast.domain.record import evolve
from holdfast.errors import Unavailable
from holdfast.service.operations.backend import Backend
from tools.cases.results import Mismatch, Skip, differences
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from holdfast.ports.catalogue import Catalogue
    from tools.cases.results import Case

_OWNER = Principal("cases", roles=(Role.ADMIN,))
_EXPECTED = {"action", "reason", "sideEffects", "names", "detached", "queues", "retryPolicies"}
_REFRESH = re.compile(r"refresh -> (?:\[(.*)\]|(API down))")
_STEP = re.compile(r"(create|update|delete|get|cordon|uncordon|list)(?: ([\w-]+))?(?: \[([\w, -]*)\])?")
_QUOTED = re.compile(r'"([^"]*)"')


class _NoLogs:
    """No job here prints anything."""

    def read(self, *_arguments: object, **_options: object) -> bytes:
        return b""


class Door:
    """The door's calls about queues and policies, on a store of their own."""

    def __init__(self) -> None:
        """Begin with nothing stored."""
        self.store = MemoryStore()
        backend = Backend(self.store, SystemClock(), SortableIds(), _NoLogs(), _OWNER)  # type: ignore[arg-type]
        self._asked = Rpc(backend, Caller(_OWNER, 0.0, "cases", "cases"))
        self.refused: Rejected | None = None
        self.listed: list[str] = []

    def policy(self, *names: str) -> None:
        """Create policies."""
        for name in names:
            policies.create_policy(self._asked, _policy(name))

    def queue(self, name: str, names: Iterable[str]) -> None:
        """Create a queue with policies."""
        queues.create_queue(self._asked, submit.Queue(name=name, priority_factor=1.0, retry_policies=names))

    def steps(self, steps: Sequence[str]) -> None:
        """Do what the steps say until one is refused."""
        for step in steps:
            found = _STEP.fullmatch(step)
            if found is None:
                msg = f"no checker knows the step {step!r}"
                raise Skip(msg)
            try:
                self._step(found[1], found[2] or "", found[3])
            except Rejected as error:
                self.refused = error
                return

    def _step(self, verb: str, name: str, attached: str | None) -> None:
        asked = self._asked
        if verb in {"cordon", "uncordon"}:
            call: Callable[[Rpc, Any], None] = queues.cordon_queue if verb == "cordon" else queues.uncordon_queue
            request = submit.QueueCordonRequest if verb == "cordon" else submit.QueueUncordonRequest
            call(asked, request(name=name))
        elif attached is not None:
            names = [one.strip() for one in attached.split(",") if one.strip()]
            self.policy(*names)
            self.queue(name, names)
        elif verb == "list":
            found = policies.get_policies(asked, submit.RetryPolicyListRequest())
            self.listed = [policy.name for policy in found.retry_policies]
        elif verb == "delete":
            policies.delete_policy(asked, submit.RetryPolicyDeleteRequest(name=name))
        elif verb == "get":
            policies.get_policy(asked, submit.RetryPolicyGetRequest(name=name))
        else:
            (policies.create_policy if verb == "create" else policies.update_policy)(asked, _policy(name))

    def call(self, method: str, sent: Any) -> Any:  # noqa: ANN401 - messages of the door
        """Make a call about policies by its name; return its answer, or the sentence of its refusal."""
        calls: dict[str, Callable[[Rpc, Any], object]] = {
            "CreateRetryPolicy": policies.create_policy,
            "UpdateRetryPolicy": policies.update_policy,
            "GetRetryPolicy": policies.get_policy,
            "GetRetryPolicies": policies.get_policies,
        }
        try:
            return calls[method](self._asked, sent)
        except Rejected as error:
            return error.message

    def policies_of(self, name: str) -> list[str]:
        """List the policies of a queue."""
        return list(queues.get_queue(self._asked, submit.QueueGetRequest(name=name)).retry_policies)

    def try_queue(self, name: str, names: Iterable[str]) -> None:
        """Create a queue with policies, or note why that is refused."""
        try:
            self.queue(name, names)
        except Rejected as error:
            self.refused = error

    def queue_names(self) -> set[str]:
        """List the queues there are."""
        return {*self.store.catalogue().queues}


def _policy(name: str) -> submit.RetryPolicy:
    return submit.RetryPolicy(name=name, retry_limit=1, default_action=submit.RETRY_ACTION_FAIL)


def check_storage(case: Case) -> list[Mismatch]:
    """Do what a case says by the door's calls, and compare what is there then."""
    expect, policy = case["expect"], case["policy"]
    if unknown := (expect.keys() - _EXPECTED) | (policy.keys() - {"steps", "queues", "queue"}):
        msg = f"says {', '.join(sorted(unknown))}, which no checker knows"
        raise Skip(msg)
    door, before = Door(), dict(policy.get("queues") or {})
    door.policy(*dict.fromkeys(name for names in before.values() for name in names))
    for name, names in before.items():
        door.queue(name, names)
    queue = _carry_out(door, policy, expect)
    got: dict[str, object] = {
        "action": "Accept" if door.refused is None else "Reject",
        "names": door.listed,
        "queues": {name: door.policies_of(name) for name in before},
        "detached": [name for name, names in before.items() if door.policies_of(name) != names],
        "retryPolicies": door.policies_of(queue) if queue in door.queue_names() else [],
    }
    return [*differences({key: expect[key] for key in expect.keys() & got.keys()}, got), *_refusal(expect, door, queue)]


def _carry_out(door: Door, policy: Mapping[str, Any], expect: Mapping[str, Any]) -> str:
    """Do what a case says; return the queue it is about, if any."""
    steps = policy.get("steps") or ()
    if "queue" in policy:
        wanted = policy["queue"]["retryPolicies"]
        absent = {"ghost", *_QUOTED.findall(str(expect.get("reason", "")))}  # a refusal names those that do not exist
        door.policy(*(name for name in dict.fromkeys(wanted) if name not in absent))
        door.try_queue("q", wanted)
        return "q"
    if steps and not isinstance(steps[0], str):
        for names in steps:
            door.policy(*(names or ()))
            door.try_queue("q", names or ())
        return "q"
    door.steps(steps)
    found = [match[2] for step in steps if (match := _STEP.fullmatch(step)) and match[3] is not None]
    return found[0] if found else ""


def _refusal(expect: Mapping[str, Any], door: Door, queue: str) -> list[Mismatch]:
    """Compare why it was refused, and that nothing came of it."""
    found = []
    reason, error = expect.get("reason"), door.refused
    if reason is not None:
        told = "" if error is None else f"{queues.go_status(error)} {error.message}"
        if str(reason) not in told:
            found.append(Mismatch("reason", reason, told))
    if str(expect.get("sideEffects", "none")).startswith("none") is False:
        msg = f"no checker knows the side effects {expect['sideEffects']!r}"
        raise Skip(msg)
    if "sideEffects" in expect and queue in door.queue_names():
        found.append(Mismatch("sideEffects", expect["sideEffects"], f"there is a queue {queue}"))
    return found


class _Fading(MemoryStore):
    """A store that can be away, and have entries that cannot be read."""

    away = False
    broken: tuple[str, ...] = ()

    def catalogue(self) -> Catalogue:
        if self.away:
            raise Unavailable
        return evolve(super().catalogue(), unreadable={f"retry policy {name}": "it is broken" for name in self.broken})


def check_cache(case: Case) -> list[Mismatch]:
    """Have the controller read policies as a case says, and compare what it goes by then."""
    log, store = logging.getLogger("holdfast"), _Fading()
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        return _cached(case, store)
    finally:
        log.setLevel(before)


def _cached(case: Case, store: _Fading) -> list[Mismatch]:
    catalog = PolicyCatalog(store)
    failed = False
    for step in case["policy"].get("steps") or ():
        match = _REFRESH.fullmatch(step)
        if match is None:
            msg = f"no checker knows the step {step!r}"
            raise Skip(msg)
        names = [name.strip() for name in (match[1] or "").split(",") if name.strip()]
        store.away, store.broken = False, tuple(name for name in names if name.startswith("bad"))
        for name in names:
            if name not in store.broken:
                store.put_entry(RetryPolicy(name))
        store.put_settings(evolve(store.catalogue().settings, retry_share=1 / (3 + store.catalogue().version)), None)
        store.away = match[2] is not None
        try:
            catalog.read()
            failed = bool(catalog.catalogue.unreadable)
        except Unavailable:
            failed = True
    got = {"served": sorted(catalog.catalogue.policies), "action": "Error" if failed else "Accept"}
    if unknown := case["expect"].keys() - got.keys():
        msg = f"expects {', '.join(sorted(unknown))}, which no checker knows"
        raise Skip(msg)
    return differences(case["expect"], got)
