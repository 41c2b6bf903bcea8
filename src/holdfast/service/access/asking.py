"""Checks the caller's rights before an operation runs.

Each operation declares with ``@asks`` the right it needs. That refuses callers who have the right to nothing of the
kind; an operation on a piece of work also checks the right to that piece, with ``require``.
"""

from __future__ import annotations

from functools import update_wrapper
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, ParamSpec, Protocol, TypeVar

from holdfast.domain.access.grants import Right
from holdfast.domain.audit import Act, AuditEntry
from holdfast.domain.rights import refusal_of
from holdfast.errors import Forbidden, Refused
from holdfast.service.refusals import record_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.domain.audit import Caller
    from holdfast.domain.rights import Refusal
    from holdfast.domain.terms.kinds import SubjectName
    from holdfast.ports.events import AuditStore
    from holdfast.service.steering.control import Steering

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


class OfAKind(Protocol):
    """Operations on work of one kind."""

    rules: ClassVar[Steering[Any]]


K = TypeVar("K", bound=OfAKind)
REQUIRED_RIGHT = "asks"
"""The attribute of an operation that names its right and its kind."""
ACTS = {
    Right.SUBMIT: Act.CREATE,
    Right.WATCH: Act.READ,
    Right.LOGS: Act.READ,
    Right.CANCEL: Act.CANCEL,
    Right.PREEMPT: Act.PREEMPT,
    Right.REPRIORITIZE: Act.REPRIORITIZE,
    Right.CHANGE: Act.UPDATE,
}
"""The act that the audit log records when a right is refused."""
RIGHTS = {
    **dict.fromkeys(Act, Right.CHANGE),
    **dict.fromkeys((Act.CANCEL, Act.DELETE), Right.CANCEL),
    Act.PREEMPT: Right.PREEMPT,
    Act.REPRIORITIZE: Right.REPRIORITIZE,
}
"""The right that each act on existing work needs."""
SUBJECT = "subject"
"""The attribute that names the kind for all operations of a class."""
BY_ACT = "by act"
"""Stands for the right and the kind of an operation that takes an act, which determines both."""


def asks(
    right: Right, kind: SubjectName | None = None
) -> Callable[[Callable[Concatenate[S, Caller, P], R]], Callable[Concatenate[S, Caller, P], R]]:
    """Make an operation refuse callers who have the right to nothing of a kind; by default the kind of its class.

    Raises:
        Forbidden: The caller does not have the right.
        Refused: The caller's work could not run, because no account is known for it.
    """

    def asking(operation: Callable[Concatenate[S, Caller, P], R]) -> Callable[Concatenate[S, Caller, P], R]:
        def asked(self: S, caller: Caller, /, *args: P.args, **named: P.kwargs) -> R:
            _require(self, caller, right, kind or getattr(self, SUBJECT))
            if right is Right.SUBMIT and caller.unable:
                raise Refused(caller.unable, hint="name an account for it in the server's HOLDFAST_ACCOUNTS")
            return operation(self, caller, *args, **named)

        setattr(asked, REQUIRED_RIGHT, (right, kind))
        return update_wrapper(asked, operation)

    return asking


def asks_by_act(
    operation: Callable[Concatenate[K, Caller, Act, P], R],
) -> Callable[Concatenate[K, Caller, Act, P], R]:
    """Make an operation that takes an act refuse callers who may do that to nothing of its kind.

    Raises:
        Forbidden: The caller does not have the right.
    """

    def asked(self: K, caller: Caller, act: Act, /, *args: P.args, **named: P.kwargs) -> R:
        _require(self, caller, RIGHTS[act], self.rules.kind.info.subject)
        return operation(self, caller, act, *args, **named)

    setattr(asked, REQUIRED_RIGHT, BY_ACT)
    return update_wrapper(asked, operation)


def _require(operations: object, caller: Caller, right: Right, kind: SubjectName) -> None:
    refused = refusal_of(caller.principal, right, kind)
    if refused is not None:
        raise forbidden(_store_of(operations), caller, ACTS[right], kind, "", refused)


def forbidden(store: AuditStore, caller: Caller, act: Act, kind: SubjectName, name: str, refused: Refusal) -> Forbidden:
    """Write a refusal to the audit log, and return it as an error."""
    error = Forbidden(refused.message, hint=refused.hint)
    record_once(store, AuditEntry(caller, act, kind, name, outcome=error.code, detail=error.message))
    return error


def _store_of(operations: Any) -> AuditStore:  # noqa: ANN401 - has a store, or a backend with one
    store: AuditStore = operations.store if hasattr(operations, "store") else operations.backend.store
    return store
